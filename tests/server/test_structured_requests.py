"""Demands on an answer's form: what requests may say, and what the engine is asked."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from serving import EOS, WORDS, Serving, frontend
from test_tools_endpoint import SYNTAX, TEMPLATE, TOOLS, Make

from helios.errors import RequestError
from helios.frontend.grammar.answers import AnswerKind
from helios.frontend.grammar.constraints import Constraints, ToolChoice
from helios.frontend.grammar.schemas import FREE
from helios.frontend.parsers import marks_of, parser_factory
from helios.frontend.parsing import ToolDefinition
from helios.server.protocol.chat import ChatRequest
from helios.server.structured import answer_of, chat_demands

CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"
HI = [{"role": "user", "content": "hi"}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
NAMED = {"type": "function", "function": {"name": "weather"}}


def request(**fields: Any) -> ChatRequest:
    return msgspec.convert({"model": "small", "messages": HI, **fields}, ChatRequest)


def allowed(mode: str, *names: str) -> dict[str, Any]:
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


@pytest.mark.parametrize(
    ("fields", "kind", "source", "where"),
    [
        (
            {"response_format": {"type": "json_object"}},
            AnswerKind.JSON,
            {"type": "object"},
            "response_format.schema",
        ),
        (
            {"response_format": {"type": "json_object", "schema": SCHEMA}},
            AnswerKind.JSON,
            SCHEMA,
            "response_format.schema",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}},
            AnswerKind.JSON,
            SCHEMA,
            "response_format.json_schema.schema",
        ),
        (
            {"structured_outputs": {"json": SCHEMA}},
            AnswerKind.JSON,
            SCHEMA,
            "structured_outputs.json",
        ),
        (
            {"structured_outputs": {"json_object": True}},
            AnswerKind.JSON,
            {"type": "object"},
            "structured_outputs.json_object",
        ),
        ({"structured_outputs": {"regex": "a"}}, AnswerKind.REGEX, "a", "structured_outputs.regex"),
        (
            {"structured_outputs": {"choice": ["a"]}},
            AnswerKind.CHOICE,
            ["a"],
            "structured_outputs.choice",
        ),
        (
            {"structured_outputs": {"grammar": "g"}},
            AnswerKind.GRAMMAR,
            "g",
            "structured_outputs.grammar",
        ),
        ({"guided_json": SCHEMA}, AnswerKind.JSON, SCHEMA, "guided_json"),
        ({"guided_regex": "a"}, AnswerKind.REGEX, "a", "guided_regex"),
        ({"guided_choice": ["a"]}, AnswerKind.CHOICE, ["a"], "guided_choice"),
        ({"guided_grammar": "g"}, AnswerKind.GRAMMAR, "g", "guided_grammar"),
    ],
)
def test_demands_by_every_name(
    fields: dict[str, Any], kind: AnswerKind, source: Any, where: str
) -> None:
    answer = answer_of(request(**fields))
    assert answer is not None
    assert (answer.kind, answer.source, answer.where) == (kind, source, where)
    assert not answer.closed
    assert answer.whitespace == FREE


def test_no_demand() -> None:
    for fields in ({}, {"response_format": {"type": "text"}}, {"structured_outputs": None}):
        assert answer_of(request(**fields)) is None


def test_how_schemas_are_read() -> None:
    strict = {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": SCHEMA}}
    answer = answer_of(request(response_format=strict))
    assert answer is not None
    assert answer.closed
    outputs = {
        "json": SCHEMA,
        "disable_additional_properties": True,
        "disable_any_whitespace": True,
    }
    answer = answer_of(request(structured_outputs=outputs))
    assert answer is not None
    assert answer.closed
    assert answer.whitespace.none
    outputs = {"json": SCHEMA, "whitespace_pattern": " *"}
    answer = answer_of(request(structured_outputs=outputs))
    assert answer is not None
    assert answer.whitespace.pattern == " *"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"response_format": {}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
            "response_format.json_schema.schema",
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": {}, "strict": 1},
                }
            },
            "response_format.json_schema.strict",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "s": 1}}},
            "response_format.json_schema.s",
        ),
        (
            {"response_format": {"type": "json_object", "json_schema": {}}},
            "response_format.json_schema",
        ),
        ({"structured_outputs": {}}, "structured_outputs"),
        ({"structured_outputs": {"regex": "a", "choice": ["a"]}}, "structured_outputs"),
        ({"guided_regex": "a", "guided_choice": ["a"]}, "guided_choice"),
        ({"response_format": {"type": "json_object"}, "guided_regex": "a"}, "guided_regex"),
    ],
)
def test_demands_that_are_none(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestError) as caught:
        answer_of(request(**fields))
    assert caught.value.field == field


OFFERED = (ToolDefinition("weather"), ToolDefinition("time"))
DECLARED = [{"type": "function", "function": {"name": tool.name}} for tool in OFFERED]


@pytest.mark.parametrize(
    ("choice", "who", "names", "single"),
    [
        (None, ToolChoice.AUTO, None, False),
        ("auto", ToolChoice.AUTO, None, False),
        ("required", ToolChoice.REQUIRED, None, False),
        (NAMED, ToolChoice.REQUIRED, {"weather"}, True),
        (allowed("auto", "time"), ToolChoice.AUTO, {"time"}, False),
        (allowed("required", "time", "weather"), ToolChoice.REQUIRED, {"time", "weather"}, False),
    ],
)
def test_tool_choices(choice: Any, who: ToolChoice, names: Any, single: bool) -> None:
    demands = chat_demands(request(tools=DECLARED, tool_choice=choice), OFFERED)
    assert (demands.choice, demands.names, demands.single) == (who, names, single)
    one = request(tools=DECLARED, tool_choice=choice, parallel_tool_calls=False)
    assert chat_demands(one, OFFERED).single


def test_nothing_to_keep_silent_about() -> None:
    assert chat_demands(request(tool_choice="none"), ()).mode is None
    assert chat_demands(request(tool_choice="none", tools=DECLARED), ()).mode is not None


@pytest.mark.parametrize(
    ("choice", "field"),
    [
        ("always", "tool_choice"),
        ({"type": "custom"}, "tool_choice.type"),
        ({"type": "function"}, "tool_choice.function.name"),
        ({"type": "function", "function": {"name": "rain"}}, "tool_choice.function.name"),
        (allowed("never", "time"), "tool_choice.allowed_tools.mode"),
        (allowed("auto"), "tool_choice.allowed_tools.tools"),
        (allowed("auto", "time", "rain"), "tool_choice.allowed_tools.tools[1].function.name"),
        ({"type": "allowed_tools"}, "tool_choice.allowed_tools.tools"),
    ],
)
def test_tool_choices_that_are_none(choice: Any, field: str) -> None:
    with pytest.raises(RequestError) as caught:
        chat_demands(request(tools=DECLARED, tool_choice=choice), OFFERED)
    assert caught.value.field == field


def constrained(make_serving: Make, text: str) -> Serving:
    model = replace(
        frontend(TEMPLATE, parser_factory(SYNTAX, WORDS), tools_supported=True),
        constraints=Constraints(SYNTAX, WORDS, marks_of(SYNTAX, WORDS)),
    )
    return make_serving(text=text, model=model)


def test_an_answer_is_text_whatever_it_holds(make_serving: Make) -> None:
    answer = '{"a": "<tool_call> </think>"}'
    serving = constrained(make_serving, answer)
    choice = serving.chat(response_format={"type": "json_object"})["choices"][0]
    assert choice["message"]["content"] == answer
    asked = serving.engine.submitted[-1]
    assert asked.grammar is not None
    monitor = serving.service.model.frontend.monitor(asked)
    for token in WORDS.encode('{"a'):
        assert monitor.mask()[token // 8] >> token % 8 & 1
        assert not monitor.accept(token)


def test_plain_requests_have_no_grammar(make_serving: Make) -> None:
    serving = constrained(make_serving, "hi")
    for fields in ({}, {"tools": TOOLS}, {"tools": TOOLS, "tool_choice": "auto"}):
        serving.chat(**fields)
        assert serving.engine.submitted[-1].grammar is None
        assert serving.engine.submitted[-1].sampling.logit_bias == ()


def test_silence_about_tools_costs_a_ban_where_the_opener_is_a_token(make_serving: Make) -> None:
    serving = constrained(make_serving, "hi")
    serving.chat(tools=TOOLS, tool_choice="none", logit_bias={"3": 2.0})
    asked = serving.engine.submitted[-1]
    opener = WORDS.token_id("<tool_call>")
    assert asked.grammar is None
    assert dict(asked.sampling.logit_bias) == {3: 2.0, opener: -1e9}


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": {"type": "json_object"}},
        {"structured_outputs": {"choice": ["a"]}},
        {"tools": TOOLS, "tool_choice": "required"},
        {"tools": TOOLS, "tool_choice": NAMED},
    ],
)
def test_string_stops_exclude_structured_output(make_serving: Make, fields: dict[str, Any]) -> None:
    serving = constrained(make_serving, "hi")
    response = serving.post(CHAT, {"model": "small", "messages": HI, "stop": "x", **fields})
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "stop"
    assert serving.engine.submitted == []


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        (
            {"response_format": {"type": "json_object", "schema": {"not": {}}}},
            "response_format.schema.not",
        ),
        ({"structured_outputs": {"regex": "("}}, "structured_outputs.regex"),
        ({"guided_choice": []}, "guided_choice"),
    ],
)
@pytest.mark.parametrize("path", [CHAT, TEXT])
def test_what_can_not_be_followed_is_named(
    make_serving: Make, path: str, fields: dict[str, Any], param: str
) -> None:
    serving = constrained(make_serving, "hi")
    text = {"messages": HI} if path == CHAT else {"prompt": "hi"}
    response = serving.post(path, {"model": "small", **text, **fields})
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert serving.engine.submitted == []


def test_a_tool_that_can_not_be_followed_is_named(make_serving: Make) -> None:
    serving = constrained(make_serving, "hi")
    bad = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"not": {}}}}}
    tools = [*TOOLS, {"type": "function", "function": bad}]
    body = {"model": "small", "messages": HI, "tools": tools}
    assert serving.post(CHAT, body).status_code == 200
    response = serving.post(CHAT, {**body, "tool_choice": "required"})
    assert response.status_code == 400
    param = f"tools[{len(TOOLS)}].function.parameters.properties.a.not"
    assert response.json()["error"]["param"] == param


def test_completions_take_demands_as_well(make_serving: Make) -> None:
    serving = constrained(make_serving, "yes")
    body = {"model": "small", "prompt": "hi", "structured_outputs": {"choice": ["yes", "no"]}}
    response = serving.post(TEXT, body)
    assert response.status_code == 200, response.text
    asked = serving.engine.submitted[-1]
    assert asked.eos_tokens == (EOS,)
    monitor = serving.service.model.frontend.monitor(asked)
    assert not monitor.mask()[ord("z") // 8] >> ord("z") % 8 & 1
