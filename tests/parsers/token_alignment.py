"""Which spelled markers of a recorded output were generated as tokens.

Fixtures carry the ids of the model's own tokenizer. Its ordinary tokens can't be decoded here, but
its control tokens are known by number, and that is enough to tell a marker from its spelling.
"""

import re
from collections.abc import Sequence
from functools import cache

_CONTROL_TOKENS: list[tuple[str, dict[int, str]]] = [
    (
        r"gpt-oss",
        {
            200002: "<|return|>",
            200003: "<|constrain|>",
            200005: "<|channel|>",
            200006: "<|start|>",
            200007: "<|end|>",
            200008: "<|message|>",
            200012: "<|call|>",
        },
    ),
    (
        r"Kimi-K3",
        {163586: "<|end_of_msg|>", 163587: "<|open|>", 163588: "<|close|>", 163589: "<|sep|>"},
    ),
    (r"Mistral-7B-Instruct-v0.3", {5: "[TOOL_CALLS]"}),
    (
        r"mistralai/",
        {9: "[TOOL_CALLS]", 32: "[ARGS]", 33: "[CALL_ID]", 34: "[THINK]", 35: "[/THINK]"},
    ),
]


def control_tokens(repo: str) -> dict[int, str] | None:
    """The control tokens of a tokenizer by id; None where every spelled marker is its token."""
    return next((ids for pattern, ids in _CONTROL_TOKENS if re.search(pattern, repo)), None)


def spelled_in_text(
    occurrences: Sequence[tuple[int, int, str]],
    ids: Sequence[int],
    control: dict[int, str],
    size: int,
) -> list[int]:
    """The numbers of those occurrences (start, end, spelling) that are no tokens.

    Control tokens match occurrences in order; between two of them there are ordinary tokens
    exactly where there is text, and never more tokens than bytes. `size` is the text's length.
    """
    tokens, gaps, gap = [], [], 0
    for token in ids:
        if token in control:
            tokens.append(control[token])
            gaps.append(gap)
            gap = 0
        else:
            gap += 1
    gaps.append(gap)

    @cache
    def match(token: int, occurrence: int, text_from: int) -> tuple[int, ...] | None:
        if token == len(tokens):
            rest = size - text_from
            fits = (gaps[token] == 0) == (rest == 0)
            return tuple(range(occurrence, len(occurrences))) if fits else None
        for number in range(occurrence, len(occurrences)):
            start, end, spelling = occurrences[number]
            room = start - text_from
            if spelling == tokens[token] and (gaps[token] == 0) == (room == 0):
                later = match(token + 1, number + 1, end)
                if later is not None and gaps[token] <= 4 * room:
                    return (*range(occurrence, number), *later)
        return None

    found = match(0, 0, 0)
    assert found is not None, "the ids do not fit the text"
    return list(found)
