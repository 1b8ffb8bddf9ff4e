"""Engine events become deltas: nothing lost, nothing shown that should not be."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tokenizers import CALL, END, START, byte_level, sentence_piece

from helios.engine.messages import (
    Event,
    Failed,
    FailureKind,
    Finished,
    FinishReason,
    PromptScores,
    TokenLogprob,
    Tokens,
)
from helios.frontend.output import Broken, End, Output, OutputPipeline, Presentation, Step
from helios.frontend.parsing import (
    ContentDelta,
    Delta,
    OutputParser,
    Piece,
    PlainParser,
    ReasoningDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from helios.frontend.tokenizer import Tokenizer

WORDS = Tokenizer(byte_level())
EOS = WORDS.token_id(END) or 0
TEXT = "Gravity is a fundamental concept — 数学 🙂!"


def pipeline(parser: OutputParser | None = None, **changes: Any) -> OutputPipeline:
    presentation = Presentation(eos=frozenset({EOS}), **changes)
    return OutputPipeline(WORDS, parser or PlainParser(), presentation)


def finished(reason: FinishReason = FinishReason.EOS, **changes: Any) -> Finished:
    return Finished(1, reason, 3, 4, **changes)


def steps(tokens: Sequence[int], size: int = 1) -> list[Event]:
    return [Tokens(1, tuple(tokens[at : at + size])) for at in range(0, len(tokens), size)]


def shown(outputs: Sequence[Output]) -> str:
    deltas = [delta for output in outputs if isinstance(output, Step) for delta in output.deltas]
    return "".join([delta.text for delta in deltas if isinstance(delta, ContentDelta)])


class Thinking(PlainParser):
    """A text between two tool markers is reasoning."""

    def __init__(self) -> None:
        self._marker = WORDS.token_id(CALL)
        self._inside = False

    def feed(self, pieces: Sequence[Piece]) -> list[Delta]:
        deltas: list[Delta] = []
        for piece in pieces:
            if piece.token == self._marker:
                self._inside = not self._inside
            elif piece.text:
                kind = ReasoningDelta if self._inside else ContentDelta
                deltas.append(kind(piece.text))
        return deltas


def test_reasoning_tokens_exclude_delimiters_that_are_tokens() -> None:
    marker = WORDS.token_id(CALL)
    assert marker is not None
    thought = WORDS.encode(TEXT)
    tokens = [marker, *thought, marker, *WORDS.encode("🙃 yes"), EOS]
    for cut, counted in ((len(tokens), len(thought)), (9, 8), (1, 0)):
        (*_, end) = pipeline(Thinking()).feed([*steps(tokens[:cut]), finished()])
        assert isinstance(end, End)
        assert end.reasoning_tokens == counted
    (*_, end) = pipeline().feed([*steps(tokens), finished()])
    assert isinstance(end, End)
    assert end.reasoning_tokens == 0


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_text_is_shown_without_the_end_token(size: int) -> None:
    tokens = [*WORDS.encode(TEXT), EOS]
    outputs = pipeline().feed([*steps(tokens, size), finished()])
    assert shown(outputs) == TEXT
    assert outputs[-1] == End("stop", 3, 4, 0)


def test_special_tokens_are_dropped_and_others_stay() -> None:
    start, call = WORDS.token_id(START), WORDS.token_id(CALL)
    assert start is not None
    assert call is not None
    tokens = [*WORDS.encode("a"), start, call, EOS, *WORDS.encode("b")]
    assert shown(pipeline().feed([*steps(tokens), finished()])) == f"a{CALL}b"


def test_a_parser_sees_the_special_tokens_that_it_declares() -> None:
    start = WORDS.token_id(START) or 0

    class Recorder(PlainParser):
        special_tokens = frozenset({start, EOS})
        seen: list[Piece]

        def __init__(self) -> None:
            self.seen = []

        def feed(self, pieces: Sequence[Piece]) -> list[Delta]:
            self.seen += pieces
            return []

    parser = Recorder()
    pipeline(parser).feed([*steps([start, EOS]), finished()])
    assert parser.seen == [Piece(START, start), Piece(END, EOS)]


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        (FinishReason.EOS, "stop"),
        (FinishReason.STOP, "stop"),
        (FinishReason.LENGTH, "length"),
    ],
)
def test_finish_reasons(reason: FinishReason, word: str) -> None:
    assert pipeline().feed([finished(reason)]) == [End(word, 3, 4, 0)]


def test_unfinished_bytes_show_at_the_end() -> None:
    first = WORDS.token_id("ð") or 0
    outputs = pipeline().feed([*steps([first]), finished(FinishReason.LENGTH)])
    assert shown(outputs) == "\ufffd"


@pytest.mark.parametrize("size", [1, 3, 100])
def test_string_stops(size: int) -> None:
    events = steps(WORDS.encode(TEXT), size)
    end = finished(FinishReason.STOP, stop="mental")
    outputs = pipeline(stop_strings=("concept", "mental")).feed([*events, end])
    assert shown(outputs) == "Gravity is a funda"


def test_an_unmatched_prefix_is_shown_at_the_end() -> None:
    events = steps(WORDS.encode("one two"))
    stops = pipeline(stop_strings=("two three",))
    assert shown(stops.feed(events)) == "one"  # whole tokens wait, here the one of " t"
    assert shown(stops.feed([finished()])) == " two"


def test_token_stops_are_held_until_the_engine_decides() -> None:
    a, b, c = (WORDS.token_id(letter) or 0 for letter in "abc")
    matched = finished(FinishReason.STOP, stop=(b, c))
    stops = ((b, c), (c,))
    assert shown(pipeline(stop_tokens=stops).feed([*steps([a, b, c]), matched])) == "a"
    single = finished(FinishReason.STOP, stop=c)
    assert shown(pipeline(stop_tokens=stops).feed([*steps([a, a, c]), single])) == "aa"
    # The engine ran on: what looked like a stop was too early to count.
    assert shown(pipeline(stop_tokens=stops).feed([*steps([b, c, a]), finished()])) == "bca"
    assert shown(pipeline(stop_tokens=stops).feed([*steps([a, b]), finished()])) == "ab"


def scores(tokens: Sequence[int]) -> tuple[TokenLogprob, ...]:
    return tuple(TokenLogprob(-float(number)) for number in range(len(tokens)))


def test_scores_go_with_shown_tokens() -> None:
    a, b = (WORDS.token_id(letter) or 0 for letter in "ab")
    tokens = (a, b, EOS)
    outputs = pipeline(logprobs=True).feed([Tokens(1, tokens, scores(tokens)), finished()])
    assert isinstance(outputs[0], Step)
    assert outputs[0].scored == [(a, TokenLogprob(-0.0)), (b, TokenLogprob(-1.0))]


def test_scores_of_stopped_tokens_are_dropped() -> None:
    a, b, c = (WORDS.token_id(letter) or 0 for letter in "abc")
    tokens = (a, b, c)
    event = Tokens(1, tokens, scores(tokens))
    for options, stop in (({"stop_strings": ("bc",)}, "bc"), ({"stop_tokens": ((b, c),)}, (b, c))):
        end = finished(FinishReason.STOP, stop=stop)
        outputs = pipeline(logprobs=True, **options).feed([event, end])
        scored = [s for output in outputs if isinstance(output, Step) for s in output.scored]
        assert scored == [(a, TokenLogprob(-0.0))]


def test_observation_counts_every_token() -> None:
    tokens = (*WORDS.encode("a"), EOS)
    event = Tokens(1, tokens, timestamps_ns=(5, 6))
    outputs = pipeline(observe=True, stop_strings=("a",)).feed([event])
    assert isinstance(outputs[0], Step)
    assert (outputs[0].tokens, outputs[0].timestamps_ns) == (tokens, (5, 6))
    assert pipeline(stop_strings=("a",)).feed([event]) == []


def test_failures_and_prompt_scores_pass_through() -> None:
    scored = PromptScores(1, (TokenLogprob(-1.0),))
    failed = Failed(1, FailureKind.ADMISSION, "too large")
    assert pipeline().feed([scored, failed]) == [scored, Broken(FailureKind.ADMISSION, "too large")]
    cancelled = pipeline().feed([finished(FinishReason.CANCELLED)])
    assert isinstance(cancelled[0], Broken)


def test_leading_space_of_a_text_that_starts() -> None:
    sentences = Tokenizer(sentence_piece())
    tokens = sentences.encode("Hello a")
    for starts, text in ((True, "Hello a"), (False, " Hello a")):
        presentation = Presentation(starts_text=starts)
        outputs = OutputPipeline(sentences, PlainParser(), presentation).feed(steps(tokens))
        assert shown(outputs) == text


class Script:
    """A parser that says what it is told, one list a piece, and the last at the end."""

    special_tokens: frozenset[int] = frozenset()

    def __init__(self, deltas: list[Delta]) -> None:
        self._deltas = deltas

    def feed(self, pieces: Sequence[Piece]) -> list[Delta]:
        return []

    def finish(self, reason: FinishReason) -> list[Delta]:
        return self._deltas


def calls(*complete: bool) -> list[Delta]:
    deltas: list[Delta] = []
    for index, whole in enumerate(complete):
        deltas += [ToolCallStart(index, f"id{index}", "f"), ToolCallArguments(index, "{}")]
        if whole:
            deltas.append(ToolCallEnd(index))
    return deltas


@pytest.mark.parametrize(
    ("complete", "reason", "word"),
    [
        ((True,), FinishReason.EOS, "tool_calls"),
        ((True, True), FinishReason.EOS, "tool_calls"),
        ((True,), FinishReason.LENGTH, "length"),
        ((True,), FinishReason.STOP, "stop"),
        ((False,), FinishReason.EOS, "stop"),
        ((True, False), FinishReason.EOS, "stop"),
        ((), FinishReason.EOS, "stop"),
    ],
)
def test_only_whole_calls_that_ended_normally_finish_as_calls(
    complete: tuple[bool, ...], reason: FinishReason, word: str
) -> None:
    outputs = pipeline(Script(calls(*complete))).feed([finished(reason)])
    assert isinstance(outputs[-1], End)
    assert outputs[-1].reason == word


def test_a_single_call_where_parallel_ones_are_not_wanted() -> None:
    outputs = pipeline(Script(calls(True, False)), single_call=True).feed([finished()])
    assert isinstance(outputs[0], Step)
    assert outputs[0].deltas == calls(True)
    assert isinstance(outputs[1], End)
    assert outputs[1].reason == "tool_calls"


@settings(max_examples=200, derandomize=True, deadline=None)
@given(data=st.data())
def test_any_split_shows_the_same(data: st.DataObject) -> None:
    tokens = data.draw(st.lists(st.integers(0, WORDS.vocabulary - 1), max_size=30))
    stops = tuple(data.draw(st.lists(st.text("aeð <", min_size=1, max_size=3), max_size=2)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(tokens)), max_size=6)))
    whole = pipeline(stop_strings=stops)
    split = pipeline(stop_strings=stops)
    parts: list[Event] = [
        Tokens(1, tuple(tokens[start:stop]))
        for start, stop in zip([0, *cuts], [*cuts, len(tokens)], strict=True)
    ]
    end = finished(FinishReason.LENGTH)
    together = whole.feed([Tokens(1, tuple(tokens)), end])
    assert shown(split.feed([*parts, end])) == shown(together)
