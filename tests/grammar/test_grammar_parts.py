"""The small pieces: patterns, parts of schemas, lists of fields, tokens, monitors, caches."""

import json
import re
from typing import Any

import pytest
from grammar_syntaxes import CASES
from grammar_walks import WalkTokens, allowed_tokens
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from helios.errors import DeviceError, RequestError
from helios.frontend.grammar.answers import Answer, AnswerKind, write_answer
from helios.frontend.grammar.commas import listed
from helios.frontend.grammar.compiled import CompiledGrammars
from helios.frontend.grammar.lark import Writer, either, literal, repeated, separated, sequence
from helios.frontend.grammar.patterns import searched
from helios.frontend.grammar.schemas import (
    COMPACT,
    children,
    document,
    read_schema,
    resolve,
    rooted,
)
from helios.frontend.grammar.values import RawText, split
from helios.frontend.grammar.vocabulary import GrammarVocabulary
from helios.frontend.stops import StopMonitor

WALKER = CASES["plain"].walker()


def accepts(lark: str, text: str) -> bool:
    answer = Answer(AnswerKind.GRAMMAR, lark, "grammar")
    return WALKER.allows(WALKER.constraints.answer(answer), list(text.encode()))


# ---- expressions -----------------------------------------------------------------------------


def test_expressions() -> None:
    assert sequence("a", "", "b") == "a b"
    assert either("a", "a") == "a"
    assert either("a", "b", "") == "((a | b))?"
    assert repeated("", 0, 3) == repeated("a", 0, 0) == separated("a", ",", 0, 0) == ""
    assert repeated("a", 1, 1) == "a"
    assert json.loads(literal("\x7f\n☕")) == "\x7f\n☕"


@given(st.lists(st.booleans(), max_size=5), st.data())
@settings(max_examples=60, derandomize=True, deadline=None)
def test_fields_between_commas(required: list[bool], data: st.DataObject) -> None:
    writer = Writer()
    names = "abcde"[: len(required)]
    fields = [(literal(n), r) for n, r in zip(names, required, strict=True)]
    start = listed(writer, fields, literal(","))
    lark = json.loads(writer.grammar(start or '""'))["grammars"][0]["lark_grammar"]
    chosen = data.draw(st.lists(st.sampled_from(names or "x"), unique=True, max_size=5))
    musts = {n for n, r in zip(names, required, strict=True) if r}
    valid = chosen == sorted(chosen) and musts <= set(chosen) <= set(names)
    assert accepts(lark, ",".join(chosen)) == valid


@pytest.mark.parametrize(
    "pattern",
    ["b", "^a", "c$", "^abc$", "^(a|b)", "a|b", "[$^]", r"\$", "^$", "", "[^]a]b", "a/b"],
)
@given(st.text("abc$^/\n", max_size=5))
@settings(max_examples=25, derandomize=True, deadline=None)
def test_patterns_match_anywhere(pattern: str, text: str) -> None:
    whole = searched(pattern, "x").replace("\\/", "/")
    # Python's `$` also matches before a last newline; JSON Schema's does not.
    expected = re.search(re.sub(r"(?<![\\\[])\$$", r"\\Z", pattern), text) is not None
    assert (re.fullmatch(whole, text) is not None) == expected


@pytest.mark.parametrize("pattern", ["a^b", "^a|b$", "(^a)b$", "a$|b"])
def test_anchors_within_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(RequestError) as caught:
        searched(pattern, "tools[0].x.pattern")
    assert caught.value.field == "tools[0].x.pattern"


# ---- schemas ---------------------------------------------------------------------------------


def test_references_lead_to_the_moved_root() -> None:
    root = {
        "properties": {
            "tree": {"$ref": "#/$defs/tree"},
            "$ref": {"const": {"$ref": "#/$defs/tree"}},
            "odd/name": {"$ref": "#/properties/tree"},
        },
        "$defs": {
            "tree": {"properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}
        },
    }
    for name in ("tree", "odd/name"):
        whole = rooted(root, root["properties"][name])
        assert Draft202012Validator(whole).is_valid({"kids": [{"kids": []}]})
        assert not Draft202012Validator(whole).is_valid({"kids": [{"kids": 1}]})
    assert rooted(root, {"type": "string"}) == {"type": "string"}
    named = rooted(root, {"properties": root["properties"]})
    assert Draft202012Validator(named).is_valid({"$ref": {"$ref": "#/$defs/tree"}})


def test_references_resolve_or_stay() -> None:
    root: dict[str, Any] = {
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "null"}, "c": {"$ref": "#/$defs/c"}}
    }
    assert resolve({"$ref": "#/$defs/a", "description": "x"}, root) == {"type": "null"}
    for stuck in (
        {"$ref": "#/$defs/c"},
        {"$ref": "#/$defs/no"},
        {"$ref": "#/$defs/a", "enum": [1]},
    ):
        assert "$ref" in resolve(stuck, root)
    assert resolve(True, root) == {}
    assert resolve(False, root) == {"anyOf": []}


def test_reading_does_not_change_the_request() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "format": "x"}}}
    before = json.dumps(schema)
    read = read_schema(schema, "x", closed=True)
    assert json.dumps(schema) == before
    assert read["additionalProperties"] is False
    assert list(document(read, COMPACT)) == ["x-guidance", *read]
    assert [steps for steps, _ in children(read)] == [
        ("properties", "a"),
        ("additionalProperties",),
    ]


def test_union_types_split_into_text_and_json() -> None:
    for schema in (
        {"type": ["string", "integer"], "minimum": 5, "maxLength": 3},
        {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "integer", "minimum": 5}]},
    ):
        parts = split(schema, {}, "x")
        assert [(raw.most, raw.unlike) for raw in parts.raw] == [(3, frozenset({"integer"}))]
        assert parts.other is not None
        assert Draft202012Validator(parts.other).is_valid(5)
        assert not Draft202012Validator(parts.other).is_valid("abc")
    assert split({"enum": ["a", 1, "b"]}, {}, "x").raw[0].texts == ("a", "b")
    assert split({"type": "string"}, {}, "x").raw == (RawText(),)
    assert split({"type": "boolean"}, {}, "x").raw == ()
    anything = split({}, {}, "x")
    assert anything.raw
    assert anything.other is not None


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"type": "string"}, {"minLength": 2}]},
        {"anyOf": [{"type": "string"}], "pattern": "a"},
        {"type": "string", "minLength": "2"},
        {"$ref": "#/$defs/no", "type": "string"},
    ],
)
def test_parts_that_neither_text_nor_json_can_be(schema: dict[str, Any]) -> None:
    with pytest.raises(RequestError):
        split(schema, {}, "x")


# ---- monitors and the cache ------------------------------------------------------------------


def key_of(answer: Answer) -> str:
    key = WALKER.constraints.answer(answer).key
    assert key is not None
    return key


def test_a_mask_has_one_bit_per_token() -> None:
    key = key_of(Answer(AnswerKind.REGEX, "[ab]", "x"))
    monitor = WALKER.constraints.monitor(key, ends=frozenset({WALKER.tokens.eos}))
    mask = monitor.mask()
    assert mask is not None
    assert len(mask) == (WALKER.tokens.id_limit + 31) // 32 * 4
    assert sorted(map(chr, allowed_tokens(monitor))) == ["a", "b"]
    assert not monitor.accept(ord("a"))
    assert allowed_tokens(monitor) == [WALKER.tokens.eos]


def test_monitors_do_not_share_their_place() -> None:
    key = key_of(Answer(AnswerKind.REGEX, "ab", "x"))
    first, second = (WALKER.constraints.monitor(key, ends=frozenset({1})) for _ in range(2))
    first.accept(ord("a"))
    assert allowed_tokens(second) == [*b"a", *[t for t in allowed_tokens(second) if t >= 256]]
    assert ord("b") in allowed_tokens(first)


def test_without_end_tokens_the_response_stops_by_itself() -> None:
    key = key_of(Answer(AnswerKind.REGEX, "ab?", "x"))
    monitor = WALKER.constraints.monitor(key, ends=frozenset())
    assert not monitor.accept(ord("a"))
    assert monitor.accept(ord("b"))
    other = WALKER.constraints.monitor(key, ends=frozenset())
    other.accept(ord("a"))
    assert other.accept(WALKER.tokens.eos)


def test_the_least_output_can_not_lock_a_response() -> None:
    """The device bans end tokens before the minimum; where only they are left it must stop."""
    key = key_of(Answer(AnswerKind.CHOICE, ["ab"], "x"))
    ends = frozenset({WALKER.tokens.eos})
    monitor = WALKER.constraints.monitor(key, ends=ends, minimum=9)
    assert not monitor.accept(ord("a"))
    assert monitor.accept(ord("b"))


def test_string_stops_beside_a_grammar() -> None:
    key = key_of(Answer(AnswerKind.REGEX, "[a-z ]*", "x"))
    stops = StopMonitor(WALKER.tokens, ["stop"])
    monitor = WALKER.constraints.monitor(key, ends=frozenset(), stops=stops)
    assert [monitor.accept(byte) for byte in b"no stop"] == [False] * 6 + [True]
    assert stops.matched == "stop"


def test_text_without_a_choice_is_not_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoder would make tokens of markers that are text here."""
    asked: list[str] = []
    tokens = WalkTokens(["<tool_call>"])
    monkeypatch.setattr(tokens, "encode", asked.append)
    vocabulary = GrammarVocabulary(tokens, (), (tokens.eos,))
    compiled = CompiledGrammars(vocabulary)
    for schema in ({"const": "<tool_call>"}, {"properties": {"<tool_call>": {}}, "type": "object"}):
        writer = Writer()
        key = compiled.add(writer, write_answer(writer, Answer(AnswerKind.JSON, schema, "x")))
        matcher = compiled.matcher(key)
        for byte in json.dumps(schema.get("const", {"<tool_call>": 1})).encode():
            matcher.compute_bitmask()
            assert matcher.consume_token(byte)
    assert not [text for text in asked if isinstance(text, str)]


def test_a_token_that_was_not_allowed_is_an_error() -> None:
    key = key_of(Answer(AnswerKind.REGEX, "a", "x"))
    monitor = WALKER.constraints.monitor(key, ends=frozenset({1}))
    with pytest.raises(DeviceError):
        monitor.accept(ord("b"))


def test_grammars_are_kept_and_compiled_again() -> None:
    tokens = WalkTokens([])
    vocabulary = GrammarVocabulary(tokens, (), (tokens.eos,))
    compiled = CompiledGrammars(vocabulary, kept=2)

    def add(regex: str) -> str:
        writer = Writer()
        return compiled.add(writer, write_answer(writer, Answer(AnswerKind.REGEX, regex, "x")))

    keys = [add(regex) for regex in "abc"]
    assert add("a") == keys[0]
    assert len(set(keys)) == 3
    for key, byte in zip(keys, b"abc", strict=True):
        assert compiled.matcher(key).consume_token(byte)
