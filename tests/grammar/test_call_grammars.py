"""Every syntax: whatever the masks allow, the parser reads as calls that fit their schemas."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from grammar_syntaxes import CASES
from grammar_walks import Reply, Walker, tokens_text
from jsonschema import Draft202012Validator

from helios.errors import RequestError
from helios.frontend.grammar.answers import Answer, AnswerKind
from helios.frontend.grammar.constraints import Constraint, Demands, ToolChoice
from helios.frontend.parsing import ToolDefinition

SEEDS = 3
WEATHER = ToolDefinition(
    "get_weather",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "unit": {"type": "string", "enum": ["c", "f"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "when": {"type": ["string", "null"]},
            "here": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 3},
            "place": {"$ref": "#/$defs/place"},
            "mode": {"anyOf": [{"const": "fast"}, {"type": "integer", "minimum": 5}]},
        },
        "required": ["city", "tags"],
        "$defs": {
            "place": {
                "type": "object",
                "properties": {"lat": {"type": "number"}, "name": {"type": "string"}},
                "required": ["lat"],
                "additionalProperties": False,
            }
        },
    },
)
PING = ToolDefinition("ping", {"type": "object", "properties": {}})
ANYTHING = ToolDefinition("remember.it", {"type": "object"})
TOOLS = (WEATHER, PING, ANYTHING)
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["a", "n"],
    "additionalProperties": False,
}
ANSWER = Answer(AnswerKind.JSON, SCHEMA, "response_format.json_schema.schema")
WITH_TOOLS = [name for name, case in CASES.items() if case.tools is not None]

FORCED = Demands(choice=ToolChoice.REQUIRED, tools=TOOLS)
NAMED = replace(FORCED, names=frozenset({"get_weather"}), single=True)
EITHER = Demands(answer=ANSWER, tools=TOOLS)
STRICT = Demands(tools=(replace(WEATHER, strict=True), PING, ANYTHING))
SILENT = Demands(choice=ToolChoice.NONE)


@pytest.fixture(scope="module")
def walkers() -> dict[str, Walker]:
    return {name: case.walker() for name, case in CASES.items()}


def walks(walker: Walker, name: str, demands: Demands) -> Iterator[tuple[str, Reply]]:
    """Walks of a demand, as text and as the parser reads them."""
    prompt = CASES[name].prompt
    constraint = walker.constraints.constrain(demands, prompt)
    for seed in range(SEEDS):
        tokens = walker.walk(constraint, seed, restless=60)
        reply = walker.read(tokens, demands, prompt, constraint.structured)
        assert reply.complete
        check_calls(reply, demands)
        yield tokens_text(walker.tokens, tokens), reply


def check_calls(reply: Reply, demands: Demands) -> None:
    offered = {tool.name: dict(tool.parameters) for tool in demands.tools}
    for called, arguments in reply.calls:
        Draft202012Validator(offered[called]).validate(arguments)


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_required_calls_and_nothing_else(name: str, walkers: dict[str, Walker]) -> None:
    for text, reply in walks(walkers[name], name, FORCED):
        assert reply.calls, text
        assert not reply.content, text


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_a_named_function_is_called_once(name: str, walkers: dict[str, Walker]) -> None:
    for text, reply in walks(walkers[name], name, NAMED):
        assert [called for called, _ in reply.calls] == ["get_weather"], text
        assert not reply.content, text


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_calls_or_a_conforming_answer(name: str, walkers: dict[str, Walker]) -> None:
    for text, reply in walks(walkers[name], name, EITHER):
        if reply.calls:
            assert not reply.content, text
        else:
            Draft202012Validator(SCHEMA).validate(json.loads(reply.content))


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_strict_tools_keep_to_their_schemas(name: str, walkers: dict[str, Walker]) -> None:
    for _ in walks(walkers[name], name, STRICT):
        pass


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_no_calls_where_none_are_wanted(name: str, walkers: dict[str, Walker]) -> None:
    """The opener's token is banned; where text can spell the opener, a grammar keeps it away."""
    walker = walkers[name]
    constraint = walker.constraints.constrain(SILENT, CASES[name].prompt)
    syntax = walker.frontend.tool_syntax
    assert syntax is not None
    if constraint.key is None:
        assert constraint.banned
        assert constraint.banned <= walker.tokens.special_tokens
    else:
        for seed in range(SEEDS):
            text = tokens_text(walker.tokens, walker.walk(constraint, seed, restless=60))
            assert not syntax.opener or syntax.opener not in text


@pytest.mark.parametrize("name", CASES)
def test_answers_conform(name: str, walkers: dict[str, Walker]) -> None:
    for text, reply in walks(walkers[name], name, Demands(answer=ANSWER)):
        assert not reply.calls, text
        Draft202012Validator(SCHEMA).validate(json.loads(reply.content))


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_parallel_calls(name: str, walkers: dict[str, Walker]) -> None:
    """Some walks call more than once, unless only one call is wanted."""
    counts = [
        len(
            walkers[name]
            .read(walk(walkers[name], name, seed), FORCED, CASES[name].prompt, False)
            .calls
        )
        for seed in range(12)
    ]
    assert max(counts) > 1


def walk(walker: Walker, name: str, seed: int) -> list[int]:
    demands = replace(FORCED, tools=(PING,))
    constraint = walker.constraints.constrain(demands, CASES[name].prompt)
    return walker.walk(constraint, seed, restless=200)


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_strict_text_may_hold_calls(name: str, walkers: dict[str, Walker]) -> None:
    """What a forced call writes is allowed behind text, or in its place."""
    walker, prompt = walkers[name], CASES[name].prompt
    forced = walker.constraints.constrain(replace(FORCED, tools=(PING,)), prompt)
    strict = walker.constraints.constrain(
        replace(STRICT, tools=(replace(PING, strict=True),)), prompt
    )
    for seed in range(SEEDS):
        called = walker.walk(forced, seed, restless=40)[:-1]
        assert walker.allows(strict, called)


@pytest.mark.parametrize("name", ["function-tags", "argument-tags", "dsml", "xtml", "atem"])
@pytest.mark.parametrize("key", ["", " a", "a\n"])
def test_keys_that_tags_can_not_hold(name: str, key: str, walkers: dict[str, Walker]) -> None:
    tool = ToolDefinition("f", {"type": "object", "properties": {key: {"type": "string"}}})
    demands = replace(FORCED, tools=(PING, tool))
    if name == "xtml":
        assert walkers[name].constraints.constrain(demands, CASES[name].prompt).key
        return
    with pytest.raises(RequestError) as caught:
        walkers[name].constraints.constrain(demands, CASES[name].prompt)
    assert caught.value.field == f"tools[1].function.parameters.properties.{key}"


@pytest.mark.parametrize("name", ["function-tags", "pythonic", "sections", "atem", "harmony"])
def test_names_that_a_syntax_can_not_hold(name: str, walkers: dict[str, Walker]) -> None:
    demands = replace(FORCED, tools=(PING, ToolDefinition("two words", PING.parameters)))
    with pytest.raises(RequestError) as caught:
        walkers[name].constraints.constrain(demands, CASES[name].prompt)
    assert caught.value.field == "tools[1].function.name"


def test_json_can_hold_any_name(walkers: dict[str, Walker]) -> None:
    tool = ToolDefinition('ab "c" ü', PING.parameters)
    demands = replace(FORCED, tools=(tool,))
    for _, reply in walks(walkers["json-tags"], "json-tags", demands):
        assert {called for called, _ in reply.calls} == {tool.name}


def test_limited_tools(walkers: dict[str, Walker]) -> None:
    """Allowed tools on auto limit the calls, not the text."""
    demands = replace(FORCED, choice=ToolChoice.AUTO, names=frozenset({"ping"}))
    walker = walkers["json-tags"]
    constraint = walker.constraints.constrain(demands, CASES["json-tags"].prompt)
    head = walker.tokens.encode('Well <tool_call>\n{"name": "')
    assert follows(walker, constraint, [*head, *b"ping"])
    assert not follows(walker, constraint, [*head, *b"get_weather"])


def follows(walker: Walker, constraint: Constraint, tokens: list[int]) -> bool:
    """Whether a response may begin like this."""
    assert constraint.key is not None
    monitor = walker.constraints.monitor(constraint.key, ends=frozenset({walker.tokens.eos}))
    for token in tokens:
        mask = monitor.mask()
        assert mask is not None
        if not mask[token // 8] >> token % 8 & 1:
            return False
        monitor.accept(token)
    return True
