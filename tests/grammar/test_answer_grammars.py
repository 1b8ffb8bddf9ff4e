"""Demands on an answer's text, one by one."""

import json
import re
from typing import Any

import pytest
from grammar_syntaxes import CASES
from grammar_walks import Walker, tokens_text
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from helios.errors import RequestError
from helios.frontend.grammar.answers import MAX_CHOICES, Answer, AnswerKind
from helios.frontend.grammar.constraints import Demands
from helios.frontend.grammar.schemas import Whitespace

WALKER = CASES["plain"].walker()
WHERE = "structured_outputs.x"


def allows(kind: AnswerKind, source: Any, text: str, **options: Any) -> bool:
    constraint = WALKER.constraints.answer(Answer(kind, source, WHERE, **options))
    return WALKER.allows(constraint, list(text.encode()))


def walked(answer: Answer, seed: int, restless: int = 60) -> str:
    constraint = WALKER.constraints.answer(answer)
    return tokens_text(WALKER.tokens, WALKER.walk(constraint, seed, restless=restless)[:-1])


@pytest.mark.parametrize(
    ("regex", "yes", "no"),
    [
        ("[0-9]{3}-[0-9]{4}", ["555-0123"], ["", "555-012", "555-01234", " 555-0123"]),
        ("^(yes|no)$", ["yes", "no"], ["maybe", "yesno"]),
        ("a/b", ["a/b"], ["a\\/b"]),
        (r"a\/b", ["a/b"], []),
        ("a\nb", ["a\nb"], ["ab"]),
        (r"\w+ü?", ["abü", "ab"], ["", "ab!"]),
        ("(?i)rome", ["ROME", "rome"], ["paris"]),
        ("", [""], ["a"]),
    ],
)
def test_regular_expressions(regex: str, yes: list[str], no: list[str]) -> None:
    for text in yes:
        assert allows(AnswerKind.REGEX, regex, text), text
    for text in no:
        assert not allows(AnswerKind.REGEX, regex, text), text


@given(st.lists(st.text(max_size=12), min_size=1, max_size=6), st.text(max_size=12))
@settings(max_examples=60, derandomize=True, deadline=None)
def test_choices_are_exactly_the_choices(choices: list[str], other: str) -> None:
    for choice in choices:
        assert allows(AnswerKind.CHOICE, choices, choice)
    assert allows(AnswerKind.CHOICE, choices, other) == (other in choices)


SUMS = 'start: sum\nsum: sum "+" NUMBER | NUMBER\nNUMBER: /[0-9]+/\n%ignore " "\n'
GBNF = 'root ::= "the " colour\ncolour ::= "red" | "green"\n'


def test_grammars() -> None:
    for text, yes in (("1", True), ("1 + 22+3", True), ("1+", False), ("+1", False)):
        assert allows(AnswerKind.GRAMMAR, SUMS, text) == yes
    for text, yes in (("the red", True), ("the blue", False)):
        assert allows(AnswerKind.GRAMMAR, GBNF, text) == yes


def test_names_of_a_grammar_are_its_own() -> None:
    walker = CASES["json-tags"].walker()
    answer = Answer(AnswerKind.GRAMMAR, 'start: r0 T1\nr0: "a"\nT1: "b"\n', WHERE)
    constraint = walker.constraints.constrain(Demands(answer=answer), CASES["json-tags"].prompt)
    assert walker.allows(constraint, [*b"ab"])


@pytest.mark.parametrize(
    ("schema", "yes", "no"),
    [
        ({"type": "object"}, ["{}", '{"a": [1, {"b": null}]}'], ["", "[]", "{", "1"]),
        ({"enum": [1, "a", None, [2]]}, ["1", '"a"', "null", "[2]"], ["2", "a"]),
        ({"type": "integer", "minimum": -3, "maximum": 12}, ["-3", "0", "12"], ["13", "1.5"]),
        ({"type": "string", "pattern": "^a+b$"}, ['"aab"'], ['"b"', "aab"]),
        ({"type": "array", "items": {"type": "boolean"}, "maxItems": 1}, ["[]", "[true]"], ["[1]"]),
        (True, ["1", "{}", '"x"'], ["x"]),
        ('{"type": "null"}', ["null"], ["1"]),
    ],
)
def test_schemas(schema: Any, yes: list[str], no: list[str]) -> None:
    for text in yes:
        assert allows(AnswerKind.JSON, schema, text), text
    for text in no:
        assert not allows(AnswerKind.JSON, schema, text), text


def test_whitespace() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]}
    pretty = '{\n  "a": [\n    1,\n    2\n  ]\n}'
    spacious = '{  "a": [] }'
    tight, usual = '{"a":[1,2]}', '{"a": [1, 2]}'
    for text in (pretty, tight, usual):
        assert allows(AnswerKind.JSON, schema, text), text
    assert not allows(AnswerKind.JSON, schema, spacious)
    for text, yes in ((tight, True), (usual, False), (pretty, False)):
        assert allows(AnswerKind.JSON, schema, text, whitespace=Whitespace(none=True)) == yes
    assert allows(AnswerKind.JSON, schema, spacious, whitespace=Whitespace(" +"))


def test_formats_that_nobody_enforces_are_notes() -> None:
    schema = {"type": "string", "format": "password"}
    assert allows(AnswerKind.JSON, schema, '"hunter2"')
    assert not allows(AnswerKind.JSON, {"type": "string", "format": "date"}, '"hunter2"')


def test_closed_objects() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "object", "properties": {"c": {}}}},
    }
    more = '{"a": 1, "other": 2}'
    assert allows(AnswerKind.JSON, schema, more)
    assert not allows(AnswerKind.JSON, schema, more, closed=True)
    assert not allows(AnswerKind.JSON, schema, '{"b": {"d": 1}}', closed=True)
    assert allows(AnswerKind.JSON, {"type": "object"}, more, closed=True)
    assert allows(AnswerKind.JSON, {**schema, "additionalProperties": {}}, more, closed=True)


def test_combined_objects_are_not_closed() -> None:
    """Two closed halves of one object would forbid each other's properties."""
    halves = [
        {"properties": {name: {"type": "integer"}}, "required": [name], "type": "object"}
        for name in "ab"
    ]
    assert allows(AnswerKind.JSON, {"allOf": halves}, '{"a": 1, "b": 2}', closed=True)


def test_a_request_can_not_loosen_its_grammar() -> None:
    schema = {"x-guidance": {"lenient": True}, "type": "array", "uniqueItems": True}
    with pytest.raises(RequestError):
        allows(AnswerKind.JSON, schema, "[]")


@given(st.integers(0, 10**6))
@settings(max_examples=40, derandomize=True, deadline=None)
def test_walks_conform(seed: int) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 10},
            "born": {"type": "string", "format": "date"},
            "score": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
            "tree": {"$ref": "#/$defs/tree"},
        },
        "required": ["name", "tree"],
        "additionalProperties": False,
        "$defs": {
            "tree": {
                "type": "object",
                "properties": {
                    "leaf": {"enum": ["oak", 1, None]},
                    "branches": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 2},
                },
                "required": ["branches"],
                "additionalProperties": False,
            }
        },
    }
    answer = Answer(AnswerKind.JSON, schema, WHERE)
    Draft202012Validator(schema).validate(json.loads(walked(answer, seed)))


@given(st.integers(0, 10**6))
@settings(max_examples=20, derandomize=True, deadline=None)
def test_walks_match(seed: int) -> None:
    regex = r"[A-Z][a-z]{2,8}( [0-9]{1,3})?\.?"
    assert re.fullmatch(regex, walked(Answer(AnswerKind.REGEX, regex, WHERE), seed))


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        (AnswerKind.REGEX, "(?=a)b"),
        (AnswerKind.REGEX, r"(a)\1"),
        (AnswerKind.REGEX, "["),
        (AnswerKind.REGEX, 5),
        (AnswerKind.CHOICE, []),
        (AnswerKind.CHOICE, ["a"] * (MAX_CHOICES + 1)),
        (AnswerKind.CHOICE, ["a", 1]),
        (AnswerKind.CHOICE, "ab"),
        (AnswerKind.GRAMMAR, "start: nowhere"),
        (AnswerKind.GRAMMAR, "this is no grammar"),
        (AnswerKind.GRAMMAR, 7),
        (AnswerKind.JSON, "{"),
        (AnswerKind.JSON, [1]),
        (AnswerKind.JSON, 7),
        (AnswerKind.JSON, False),
        (AnswerKind.REGEX, "(" * 5000 + ")" * 5000),
        (AnswerKind.CHOICE, ["x" * 300 + str(n) for n in range(4000)]),
    ],
)
def test_what_can_not_be_followed_is_named(kind: AnswerKind, source: Any) -> None:
    with pytest.raises(RequestError) as caught:
        WALKER.constraints.answer(Answer(kind, source, WHERE))
    assert caught.value.field == WHERE
    assert "\n" not in caught.value.message


DEEP: dict[str, Any] = {"type": "string"}
for _ in range(100):
    DEEP = {"type": "array", "items": DEEP}


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        (
            {"properties": {"a": {"type": "array", "uniqueItems": True}}},
            ".properties.a.uniqueItems",
        ),
        ({"items": {"properties": {"x": {"pattern": "(?=a)"}}}}, ".items.properties.x.pattern"),
        ({"anyOf": [{"type": "string"}, {"type": "strong"}]}, ".anyOf[1].type"),
        ({"$defs": {"a": {"not": {}}}, "$ref": "#/$defs/a"}, ".$defs.a.not"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, ".properties.a"),
        ({"properties": {"a": {"$ref": "http://elsewhere/x"}}}, ".properties.a"),
        ({"if": {"type": "string"}, "then": {"minLength": 2}}, ".if"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, ""),
        (
            {
                "type": "object",
                "required": ["a"],
                "properties": {"a": {"type": "number", "minimum": 3, "maximum": 1}},
            },
            ".properties.a",
        ),
        (
            {"items": {"properties": dict.fromkeys(map(str, range(1001)), True)}},
            ".items.properties",
        ),
        ({"items": {"const": {"id": 2**64}}}, ".items.const"),
        ({"anyOf": [{"enum": [1, 2**53 + 1]}]}, ".anyOf[0].enum"),
    ],
)
def test_the_part_of_a_schema_is_named(schema: dict[str, Any], path: str) -> None:
    with pytest.raises(RequestError) as caught:
        WALKER.constraints.answer(Answer(AnswerKind.JSON, schema, WHERE))
    assert caught.value.field == WHERE + path


def test_a_schema_that_is_too_deep() -> None:
    with pytest.raises(RequestError) as caught:
        WALKER.constraints.answer(Answer(AnswerKind.JSON, DEEP, WHERE))
    assert caught.value.field.startswith(f"{WHERE}.items.items")


@pytest.mark.parametrize(
    "bounds",
    [
        {"minimum": 2**53 + 1, "maximum": 2**53 + 8},
        {"minimum": -(2**63), "maximum": 2**63 - 1},
        {"exclusiveMinimum": 2**60 - 1, "exclusiveMaximum": 2**60 + 1000},
    ],
)
def test_bounds_beyond_double_precision_are_kept(bounds: dict[str, int]) -> None:
    schema = {"type": "integer", **bounds}
    for seed in range(4):
        found = json.loads(walked(Answer(AnswerKind.JSON, schema, WHERE), seed, restless=30))
        Draft202012Validator(schema).validate(found)


def test_a_leading_space_belongs_to_some_tokenizers() -> None:
    walker: Walker = CASES["plain"].walker()
    answer = Answer(AnswerKind.CHOICE, ["yes"], WHERE)
    prompt = CASES["plain"].prompt
    plain = walker.constraints.constrain(Demands(answer=answer), prompt)
    assert not walker.allows(plain, [*b" yes"])
    stripping = CASES["plain"].walker(leading_strip=True)
    spaced = stripping.constraints.constrain(Demands(answer=answer), prompt)
    assert stripping.allows(spaced, [*b" yes"])
    continued = stripping.constraints.constrain(Demands(answer=answer), prompt, continues=True)
    assert not stripping.allows(continued, [*b" yes"])
