"""Where a rendered prompt may be cut so that its prefix is worth a snapshot."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from helios.contract.syntax import PrefixBoundaryRule
from helios.errors import RequestError

MOST_PER_RULE = 4  # each costs a rendering; the latest messages are the ones that grow

Render = Callable[[Sequence[Mapping[str, Any]], bool], str]


def find_boundaries(
    rules: Sequence[PrefixBoundaryRule],
    messages: Sequence[Mapping[str, Any]],
    render: Render,
    text: str,
    ends: Sequence[int],
) -> tuple[int, ...]:
    """Token counts, ascending. `text` is the whole prompt and `ends` where its tokens end in it.

    A rule holds after a message of its role where the conversation up to there, rendered by
    itself, begins the whole prompt and ends where a token does.
    """
    found: set[int] = set()
    for rule in rules:
        for count in _counts(rule, messages):
            with suppress(RequestError):  # a template may refuse a conversation cut short
                head = render(messages[:count], rule.generation_prompt)
                if text.startswith(head):
                    found.add(_tokens_to(len(head), ends))
    return tuple(sorted(found - {0}))


def _counts(rule: PrefixBoundaryRule, messages: Sequence[Mapping[str, Any]]) -> list[int]:
    counts = [number for number, message in enumerate(messages, 1) if message["role"] == rule.role]
    return counts[-1:] if rule.last_only else counts[-MOST_PER_RULE:]


def _tokens_to(length: int, ends: Sequence[int]) -> int:
    """How many tokens make up exactly the first `length` characters, or 0."""
    count = bisect_left(ends, length)
    exact = count < len(ends) and ends[count] == length
    while exact and count + 1 < len(ends) and ends[count + 1] == length:
        count += 1  # the bytes of one character may be several tokens
    return count + 1 if exact else 0
