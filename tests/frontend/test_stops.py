"""String stops against a slow search, and token stops."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tokenizers import CALL, END, byte_level

from helios.errors import RequestError
from helios.frontend.detokenizer import Detokenizer
from helios.frontend.matching import Automaton
from helios.frontend.parsing import Piece
from helios.frontend.stops import (
    StopFilter,
    StopMonitor,
    StopScanner,
    check_sequences,
    check_stops,
    check_tokens,
)
from helios.frontend.tokenizer import Tokenizer

WORDS = Tokenizer(byte_level())
EXAMPLES = settings(max_examples=300, derandomize=True, deadline=None)
NARROW = st.text("ab", min_size=1, max_size=5)


def first_match(text: str, stops: Sequence[str]) -> tuple[int, str] | None:
    """Where the first completed match starts; of those that end together, the longest."""
    for end in range(1, len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            longest = max(found, key=len)
            return end - len(longest), longest
    return None


def shown(texts: Sequence[str], stops: Sequence[str]) -> tuple[str, str | None]:
    stop = StopFilter(StopScanner(stops), lambda token: False)
    pieces = [kept for number, text in enumerate(texts) for kept in stop.feed(Piece(text, number))]
    if stop.matched is None:
        pieces += stop.finish()
    return "".join([piece.text for piece in pieces]), stop.matched


@EXAMPLES
@given(texts=st.lists(st.text("abc", max_size=4), max_size=12), stops=st.lists(NARROW, min_size=1))
def test_cuts_where_a_slow_search_does(texts: list[str], stops: list[str]) -> None:
    whole = "".join(texts)
    match = first_match(whole, stops)
    assert shown(texts, stops) == (
        (whole, None) if match is None else (whole[: match[0]], match[1])
    )


@EXAMPLES
@given(text=st.text("ab", max_size=24), stops=st.lists(NARROW, min_size=1, max_size=4))
def test_nothing_is_shown_too_early(text: str, stops: list[str]) -> None:
    """What is shown is never taken back, and never holds a stop."""
    stop = StopFilter(StopScanner(stops), lambda token: False)
    seen = ""
    for number, character in enumerate(text):
        seen += "".join([piece.text for piece in stop.feed(Piece(character, number))])
        match = first_match(text[: number + 1], stops)
        limit = number + 1 if match is None else match[0]
        assert text[:limit].startswith(seen)
    assert all(wanted not in seen for wanted in stops)


@EXAMPLES
@given(
    tokens=st.lists(st.integers(0, WORDS.vocabulary - 1), max_size=30),
    stops=st.lists(st.text("ae ð�.", min_size=1, max_size=3), min_size=1, max_size=4),
    minimum=st.integers(0, 4),
)
def test_monitor_and_filter_agree(tokens: list[int], stops: list[str], minimum: int) -> None:
    end = frozenset({WORDS.token_id(END) or 0})
    monitor = StopMonitor(WORDS, stops, minimum=minimum, silent=end)
    stop = StopFilter(StopScanner(stops, minimum=minimum, silent=end), WORDS.is_added)
    detokenizer = Detokenizer(WORDS)
    for token in tokens:
        for piece in detokenizer.feed((token,)):
            stop.feed(piece)
        assert monitor.accept(token) == (stop.matched is not None)
        if stop.matched is not None:
            break
    assert monitor.matched == stop.matched
    assert monitor.mask() is None


def test_a_match_cuts_within_a_token() -> None:
    assert shown(["one two", " three"], ["wo th"]) == ("one t", "wo th")


def test_pending_bytes_wait_for_their_character() -> None:
    tokens = WORDS.encode("a🙂b")
    monitor = StopMonitor(WORDS, ["🙂"])
    answers = [monitor.accept(token) for token in tokens]
    assert answers.index(True) == len(tokens) - 2


def test_end_tokens_have_no_text_to_match() -> None:
    end = WORDS.token_id(END)
    assert end is not None
    monitor = StopMonitor(WORDS, ["<|im_end|>"], silent=frozenset({end}))
    assert not monitor.accept(end)
    assert any(monitor.accept(token) for token in WORDS.encode("<|im_end") + WORDS.encode("|>"))


def test_a_delimiter_that_a_stop_cuts_goes_altogether() -> None:
    call = WORDS.token_id(CALL)
    assert call is not None
    stop = StopFilter(StopScanner(["call>"]), WORDS.is_added)
    assert stop.feed(Piece("x", 5)) == [Piece("x", 5)]
    assert stop.feed(Piece(CALL, call)) == []
    assert stop.matched == "call>"


def test_an_end_token_amid_a_possible_match_is_no_part_of_it() -> None:
    stop = StopFilter(StopScanner(["abc"], silent=frozenset({9})), lambda token: False)
    for piece in (Piece("xab", 1), Piece("<end>", 9)):
        assert stop.feed(piece) == []
    assert stop.feed(Piece("c", 2)) == [Piece("x", 1)]
    assert stop.matched == "abc"


def test_nothing_stops_before_the_minimum() -> None:
    stop = StopFilter(StopScanner(["a"], minimum=2), lambda token: False)
    assert [piece.text for text in "aaa" for piece in stop.feed(Piece(text, 1))] == ["a", "a"]
    assert stop.matched == "a"


class CountingList(list[int]):
    reads = 0

    def __getitem__(self, index: Any) -> Any:
        self.reads += 1
        return super().__getitem__(index)


def test_matching_takes_linear_time() -> None:
    """Counted in links followed, not on a clock."""
    automaton = Automaton(["a" * 1000 + "b", "a" * 999 + "c"])
    links = automaton._failure = CountingList(automaton._failure)
    text = ("a" * 1000 + "d") * 20
    state = 0
    for character in text:
        state = automaton.step(state, character)
    assert 0 < links.reads <= len(text)


@EXAMPLES
@given(
    patterns=st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=5),
    stream=st.lists(st.integers(0, 2), max_size=20),
)
def test_automaton_knows_what_may_begin(patterns: list[list[int]], stream: list[int]) -> None:
    automaton = Automaton(patterns)
    state = 0
    for end, symbol in enumerate(stream, 1):
        state = automaton.step(state, symbol)
        suffixes = [stream[end - size : end] for size in range(end, 0, -1)]
        held = [s for s in suffixes if any(p[: len(s)] == s for p in patterns)]
        found = [s for s in suffixes if s in patterns]
        assert automaton.depth[state] == (len(held[0]) if held else 0)
        match = automaton.match[state]
        assert (patterns[match] if match >= 0 else None) == (found[0] if found else None)


@pytest.mark.parametrize("stop", [None, []])
def test_no_stops(stop: list[str] | None) -> None:
    assert check_stops(stop) == ()


def test_stops_within_limits() -> None:
    assert check_stops("a") == ("a",)
    assert check_stops(["a" * 4093, "é", "b"]) == ("a" * 4093, "é", "b")
    assert check_sequences([[1] * 64] * 16, 2) == ((1,) * 64,) * 16


@pytest.mark.parametrize("stop", ["", ["a", ""], ["a"] * 5, ["a" * 4096, "b"], "é" * 2049])
def test_stops_over_limits(stop: str | list[str]) -> None:
    with pytest.raises(RequestError, match="stop"):
        check_stops(stop)


@pytest.mark.parametrize(
    ("sequences", "field"),
    [
        ([[]], "stop_token_sequences[0]"),
        ([[1], [1] * 65], "stop_token_sequences[1]"),
        ([[1]] * 17, "stop_token_sequences"),
        ([[1, 5]], "stop_token_sequences[0][1]"),
    ],
)
def test_sequences_over_limits(sequences: list[list[int]], field: str) -> None:
    with pytest.raises(RequestError) as caught:
        check_sequences(sequences, 5)
    assert caught.value.field == field


@pytest.mark.parametrize("token", [-1, 5])
def test_tokens_outside_the_vocabulary(token: int) -> None:
    with pytest.raises(RequestError, match=r"stop_token_ids\[1\]"):
        check_tokens([0, token], 5, "stop_token_ids")
