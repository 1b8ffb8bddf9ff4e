"""Whatever a model writes: nothing raises, splits don't matter, and only real calls end."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parser_renderers import Call, message
from parser_runs import Heard
from test_round_trips import BENCHES, Bench, spellings, split, tokens_of

from helios.engine.messages import FinishReason

EXAMPLE = Call("book", {"guests": 4, "note": "window", "tags": ["a"], "more": {"b": None}})
REASONS = st.sampled_from([FinishReason.EOS, FinishReason.STOP, FinishReason.LENGTH])


def outputs(bench: Bench) -> st.SearchStrategy[list[int]]:
    """Bytes, control tokens, spelled markers, and whole and broken pieces of real messages."""
    real = tokens_of(bench.vocabulary, message(bench.syntax, "why", "text", [EXAMPLE, EXAMPLE]))
    slices = st.tuples(st.integers(0, len(real)), st.integers(0, len(real))).map(
        lambda ends: real[min(ends) : max(ends)]
    )
    spelled = st.sampled_from(spellings(bench.syntax)).map(lambda text: list(text.encode()))
    control = st.sampled_from(sorted(bench.vocabulary.special_tokens) or [10]).map(lambda t: [t])
    json_like = st.sampled_from(['{"name": "book"', '"arguments": {', "}", "[", ", ", "book("])
    pieces = st.one_of(
        slices,
        spelled,
        control,
        json_like.map(lambda text: list(text.encode())),
        st.binary(max_size=4).map(list),
    )
    return st.lists(pieces, max_size=8).map(lambda parts: [t for part in parts for t in part])


def told(heard: Heard) -> tuple[str, str, list[str], list[str]]:
    return heard.content, heard.reasoning, heard.names, heard.arguments


@pytest.mark.parametrize("name", BENCHES)
def test_any_output(name: str):
    bench = BENCHES[name]

    @settings(
        derandomize=True,
        max_examples=40,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(outputs(bench), REASONS, st.lists(st.integers(0, 10**6), max_size=6))
    def check(tokens: list[int], reason: FinishReason, cuts: list[int]) -> None:
        whole = bench.run([tokens], [EXAMPLE], reason=reason)
        assert told(bench.run([[t] for t in tokens], [EXAMPLE], reason=reason)) == told(whole)
        assert told(bench.run(split(tokens, cuts), [EXAMPLE], reason=reason)) == told(whole)
        assert whole.ended == set(range(len(whole.names)))
        for arguments in whole.arguments:
            assert isinstance(json.loads(arguments), dict)
        text = "".join([whole.content, whole.reasoning, *whole.names, *whole.arguments])
        assert not any("\ud800" <= letter <= "\udfff" for letter in text), "private characters"
        early = bench.run(split(tokens, cuts), [EXAMPLE], reason=reason, whole_calls=False)
        assert early.calls == whole.calls

    check()
