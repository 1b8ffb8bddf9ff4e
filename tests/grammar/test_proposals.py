"""Masks along proposals are those of accepting them one by one, and asking leaves no trace."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from grammar_syntaxes import CASES
from grammar_walks import allowed_tokens
from hundred_schemas import SCHEMAS
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.frontend.grammar.answers import Answer, AnswerKind
from helios.frontend.grammar.monitor import GrammarMonitor
from helios.frontend.stops import StopMonitor

WALKER = CASES["plain"].walker()
TOKENS = WALKER.tokens
ANSWERS = [
    *[Answer(AnswerKind.JSON, schema, "x") for schema in SCHEMAS[::9]],
    Answer(AnswerKind.REGEX, "[0-9]{3}-[0-9]{4}", "x"),
    Answer(AnswerKind.REGEX, "ab?", "x"),
    Answer(AnswerKind.REGEX, "(foo|bar)*", "x"),
    Answer(AnswerKind.CHOICE, ["left", "lefty", "right"], "x"),
    Answer(AnswerKind.GRAMMAR, 'start: "(" start ")" | /[a-z]+/\n', "x"),
]
KEYS = [WALKER.constraints.answer(answer).key or "" for answer in ANSWERS]


def monitor_of(key: str, ends: bool, minimum: int, stops: Sequence[str]) -> GrammarMonitor:
    return WALKER.constraints.monitor(
        key,
        ends=frozenset({TOKENS.eos} if ends else ()),
        minimum=minimum,
        stops=StopMonitor(TOKENS, stops) if stops else None,
    )


def stepwise(monitor: GrammarMonitor, proposals: Sequence[int]) -> list[bytes | None]:
    """The same by the plain calls: mask, accept, mask, … until something ends it."""
    masks: list[bytes | None] = [monitor.mask()]
    for token in proposals:
        if token not in allowed_tokens(monitor) or monitor.accept(token):
            break
        if token == TOKENS.eos:  # the scheduler ends the response here
            break
        masks.append(monitor.mask())
    return masks + [None] * (len(proposals) + 1 - len(masks))


@given(
    key=st.sampled_from(KEYS),
    ends=st.booleans(),
    minimum=st.sampled_from([0, 0, 5]),
    stops=st.sampled_from([(), (), ('":', "ab", "é"), ("f",)]),
    seed=st.integers(0, 1 << 30),
    widths=st.lists(st.integers(0, 5), min_size=1, max_size=12),
)
@settings(max_examples=150, derandomize=True, deadline=None)
def test_masks_along_proposals_are_those_of_accepting_them(
    key: str, ends: bool, minimum: int, stops: tuple[str, ...], seed: int, widths: list[int]
) -> None:
    chance = random.Random(seed)
    monitor = monitor_of(key, ends, minimum, stops)
    taken: list[int] = []

    def again() -> GrammarMonitor:
        """A fresh monitor that was told what was taken."""
        made = monitor_of(key, ends, minimum, stops)
        for token in taken:
            made.accept(token)
        return made

    for width in widths:
        proposals = draft(again(), width, chance)
        assert monitor.masks_along(proposals) == stepwise(again(), proposals)
        assert monitor.mask() == again().mask(), "asking left a trace"
        fresh = again()
        for token in proposals[: chance.randint(0, width)]:
            if token not in allowed_tokens(fresh) or token == TOKENS.eos:
                break
            taken.append(token)
            stop = fresh.accept(token)
            assert monitor.accept(token) == stop
            if stop:
                return
        assert monitor.mask() == fresh.mask()


def draft(monitor: GrammarMonitor, width: int, chance: random.Random) -> list[int]:
    """Proposals that a grammar mostly allows, and sometimes not."""
    proposals: list[int] = []
    for _ in range(width):
        choices = allowed_tokens(monitor)
        if not choices or chance.random() < 0.1:
            proposals.append(chance.randrange(TOKENS.id_limit))
            continue
        readable = [t for t in choices if 32 <= t < 127 or t >= 256] or choices
        token = chance.choice(readable)
        proposals.append(token)
        if token == TOKENS.eos or monitor.accept(token):
            break
    return proposals + [chance.randrange(TOKENS.id_limit) for _ in range(width - len(proposals))]


def test_proposals_behind_the_end_of_a_response_do_not_count() -> None:
    key = KEYS[ANSWERS.index(Answer(AnswerKind.REGEX, "ab?", "x"))]
    monitor = monitor_of(key, ends=True, minimum=0, stops=())
    masks = monitor.masks_along([ord("a"), TOKENS.eos, ord("b")])
    assert [mask is None for mask in masks] == [False, False, True, True]
    assert [mask is None for mask in monitor.masks_along(list(b"ab"))] == [False] * 3
    endless = monitor_of(key, ends=False, minimum=0, stops=())
    assert [mask is None for mask in endless.masks_along(list(b"ab"))] == [False, False, True]
    assert not monitor.accept(ord("a"))
    assert sorted(allowed_tokens(monitor)) == [ord("b"), TOKENS.eos]


def test_stops_are_only_matched_by_what_is_drawn() -> None:
    key = KEYS[ANSWERS.index(Answer(AnswerKind.REGEX, "(foo|bar)*", "x"))]
    monitor = monitor_of(key, ends=True, minimum=0, stops=("of",))
    masks = monitor.masks_along(list(b"foofoo"))
    assert [mask is None for mask in masks] == [*[False] * 4, *[True] * 3]
    for token in b"foobarfoo":
        assert not monitor.accept(token)
    assert monitor.accept(ord("f"))


@pytest.mark.parametrize("proposals", [[], [1, 2, 3]])
def test_string_stops_alone_forbid_nothing(proposals: list[int]) -> None:
    monitor = StopMonitor(TOKENS, ["é"])
    first, second = "é".encode()
    assert not monitor.accept(first)
    ahead: Any = monitor.copy()
    assert ahead.accept(second)
    assert monitor.masks_along(proposals) == [None] * (len(proposals) + 1)
    assert monitor.matched is None
    assert monitor.accept(second)
