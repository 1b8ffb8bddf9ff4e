"""For every syntax: what is rendered comes back, however the stream is split."""

import json
import math
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from parser_renderers import SYNTAXES, Call, Mark, Parts, Syntax, message
from parser_runs import Heard, hear
from parser_vocabulary import TestVocabulary

from helios.engine.messages import FinishReason
from helios.frontend.parsers import parser_factory
from helios.frontend.parsing import ParserRequest, ToolDefinition

FEW = settings(
    derandomize=True,
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
LETTERS = st.characters(codec="utf-8", exclude_characters="\x00")
KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
KINDS |= {list: "array", dict: "object"}


def spellings(syntax: Syntax) -> list[str]:
    """Everything that means something in a syntax, spelled in ordinary text."""
    tools = syntax.frontend.tool_syntax
    assert tools is not None
    pairs = (tools.block, tools.call, tools.key, tools.value)
    markers = [text for pair in pairs for text in (pair.open, pair.close)]
    return [
        text for text in (*markers, *syntax.tokens, tools.tag_end, "\n", " ", "{", "}", '"') if text
    ]


def texts(syntax: Syntax, *, trimmed: bool = False) -> st.SearchStrategy[str]:
    """Text with quotes, braces, other alphabets, and the spellings of markers."""
    piece = st.one_of(
        st.text(LETTERS, max_size=6),
        st.sampled_from(spellings(syntax)),
        st.sampled_from(
            ["\\", "\\n", "'", '"', "]]>", "```", "日本", "🌦️", "null", "5", "\r\n", "\t"]
        ),
    )
    joined = st.lists(piece, max_size=6).map("".join)
    return joined.map(str.strip) if trimmed else joined


def values(syntax: Syntax) -> st.SearchStrategy[object]:
    """Argument values, numbers past 2^53 and deep nesting included."""
    scalars = st.one_of(
        texts(syntax),
        st.integers(-(10**25), 10**25),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        st.none(),
    )
    keys = st.from_regex(syntax.keys, fullmatch=True)
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
        max_leaves=8,
    )


@st.composite
def messages(draw: st.DrawFn, syntax: Syntax) -> tuple[str, str, list[Call]]:
    """Reasoning, content and calls that a syntax can write."""
    keys = st.from_regex(syntax.keys, fullmatch=True)
    names = st.from_regex(syntax.names, fullmatch=True)
    arguments = st.dictionaries(keys, values(syntax).filter(syntax.writes), max_size=4)
    calls = draw(st.lists(st.builds(Call, names, arguments), max_size=3))
    reasons = syntax.think or syntax.name in ("xtml", "atem", "harmony")
    reasoning = draw(texts(syntax, trimmed=True)) if reasons else ""
    content = draw(texts(syntax, trimmed=True)) if syntax.around else ""
    assume(not _opens_something(syntax, content))
    return reasoning, content, calls


def _opens_something(syntax: Syntax, content: str) -> bool:
    """Whether content spells an opener that is no token, which only its meaning could undo."""
    tools = syntax.frontend.tool_syntax
    assert tools is not None
    openers = {tools.block.open, tools.call.open} - {"", *syntax.tokens}
    untokened = [o for o in openers if not any(token in o for token in syntax.tokens)]
    return any(opener in content for opener in untokened)


def definitions(calls: list[Call]) -> tuple[ToolDefinition, ...]:
    """Tools whose schemas say the type of every value."""
    tools: dict[str, dict[str, object]] = {}
    for call in calls:
        properties = tools.setdefault(call.name, {})
        for key, value in call.arguments.items():
            properties.setdefault(key, {"type": KINDS[type(value)]})
    return tuple(
        ToolDefinition(name, {"type": "object", "properties": properties})
        for name, properties in tools.items()
    )


def tokens_of(vocabulary: TestVocabulary, parts: Parts) -> list[int]:
    tokens: list[int] = []
    for part in parts:
        if isinstance(part, Mark):
            token = vocabulary.token_id(part.spelling)
            assert token is not None
            tokens.append(token)
        else:
            tokens += part.encode()
    return tokens


def split(tokens: list[int], cuts: list[int]) -> list[list[int]]:
    edges = sorted({0, len(tokens), *(cut % (len(tokens) + 1) for cut in cuts)})
    return [tokens[a:b] for a, b in pairwise(edges)]


class Bench:
    """One syntax, its vocabulary and parsers."""

    def __init__(self, syntax: Syntax) -> None:
        self.syntax = syntax
        self.vocabulary = TestVocabulary(syntax.tokens)
        self._build = {
            whole: parser_factory(syntax.frontend, self.vocabulary, whole_calls=whole)
            for whole in (True, False)
        }

    def run(
        self,
        groups: list[list[int]],
        calls: list[Call],
        *,
        whole_calls: bool = True,
        reason: FinishReason = FinishReason.EOS,
    ) -> Heard:
        assert self.syntax.frontend.assistant is not None
        tools = definitions(calls) or (ToolDefinition("unused"),)
        request = ParserRequest(self.syntax.frontend.assistant.open, tools)
        return hear(self._build[whole_calls](request), self.vocabulary, groups, reason)


BENCHES = {syntax.name: Bench(syntax) for syntax in SYNTAXES}


def same(one: object, other: object) -> bool:
    """Equality that tells 1 from true and 0.0 from -0.0 apart, but not 1 from 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, float) or isinstance(other, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return type(one) is type(other) and one == other


def schema_conflict(calls: list[Call]) -> bool:
    """Whether one parameter of one tool has values of several types."""
    seen: dict[tuple[str, str], type] = {}
    return any(
        seen.setdefault((call.name, key), type(value)) is not type(value)
        for call in calls
        for key, value in call.arguments.items()
    )


@pytest.mark.parametrize("name", BENCHES)
def test_round_trip(name: str):
    bench = BENCHES[name]

    @FEW
    @given(messages(bench.syntax), st.lists(st.integers(0, 10**6), max_size=12))
    def check(written: tuple[str, str, list[Call]], cuts: list[int]) -> None:
        reasoning, content, calls = written
        assume(not schema_conflict(calls))
        assume(bench.syntax.around or calls or not content)
        tokens = tokens_of(bench.vocabulary, message(bench.syntax, reasoning, content, calls))
        runs = [
            bench.run([tokens], calls),
            bench.run([[token] for token in tokens], calls),
            bench.run(split(tokens, cuts), calls),
            bench.run([[token] for token in tokens], calls, whole_calls=False),
        ]
        for heard in runs:
            assert heard.content == content
            assert heard.reasoning == reasoning
            assert heard.names == [call.name for call in calls]
            assert heard.ended == set(range(len(calls)))
            for call, arguments in zip(calls, heard.arguments, strict=True):
                assert same(json.loads(arguments), call.arguments), arguments
            assert heard.arguments == runs[0].arguments

    check()


@pytest.mark.parametrize("name", BENCHES)
def test_a_cut_message_has_no_call_that_was_not_finished(name: str):
    bench = BENCHES[name]

    @FEW
    @given(messages(bench.syntax), st.integers(0, 10**6))
    def check(written: tuple[str, str, list[Call]], cut: int) -> None:
        reasoning, content, calls = written
        assume(calls and not schema_conflict(calls))
        tokens = tokens_of(bench.vocabulary, message(bench.syntax, reasoning, content, calls))
        shown = tokens[: cut % len(tokens)]
        heard = bench.run([[token] for token in shown], calls, reason=FinishReason.LENGTH)
        assert len(heard.names) == len(heard.ended) <= len(calls)
        for call, (made, arguments) in zip(calls, heard.calls, strict=False):
            assert made == call.name
            assert same(json.loads(arguments), call.arguments)
        early = bench.run([shown], calls, reason=FinishReason.LENGTH, whole_calls=False)
        assert early.calls == heard.calls

    check()


@pytest.mark.parametrize("name", [name for name in BENCHES if name != "mistral list"])
def test_arguments_are_sent_as_they_are_read(name: str):
    """Mistral's lists put the call's id behind the arguments, so these alone must wait."""
    bench = BENCHES[name]
    call = Call("book", {"note": "a table by the window, " * 20})
    tokens = tokens_of(bench.vocabulary, message(bench.syntax, "", "", [call]))
    build = parser_factory(bench.syntax.frontend, bench.vocabulary, whole_calls=False)
    assert bench.syntax.frontend.assistant is not None
    parser = build(ParserRequest(bench.syntax.frontend.assistant.open, definitions([call])))
    heard, decoder = Heard(), bench.vocabulary.decoder()
    for token in tokens[: len(tokens) * 3 // 4]:
        heard.hear(parser.feed(decoder.feed([token])))
    assert heard.names == ["book"]
    assert len(heard.arguments[0]) > len(call.arguments["note"]) // 2
    assert not heard.ended
