"""Conversations made regular, and what is wrong with those that can't be."""

import copy
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.errors import RequestError
from helios.frontend.declarations import definitions, normalise_tools
from helios.frontend.messages import MessageStyle, normalise_messages
from helios.frontend.parsing import ToolDefinition

STYLE = MessageStyle()
USER = {"role": "user", "content": "hi"}


def call(arguments: Any = "{}", **changes: Any) -> dict[str, Any]:
    function = {"name": "weather", "arguments": arguments}
    return {"id": "call_7", "type": "function", "function": function, **changes}


def one(message: Any, style: MessageStyle = STYLE) -> dict[str, Any]:
    return normalise_messages([message], style)[0]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("hello", "hello"),
        ("", ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        (["a", "b"], "a\nb"),
        ([], ""),
    ],
)
def test_content_becomes_a_text(content: Any, text: str) -> None:
    assert one({"role": "user", "content": content}) == {"role": "user", "content": text}


@pytest.mark.parametrize("role", ["assistant", "tool"])
@pytest.mark.parametrize("message", [{}, {"content": None}])
def test_some_roles_may_leave_content_out(role: str, message: dict[str, Any]) -> None:
    assert one({"role": role, **message})["content"] == ""


@pytest.mark.parametrize("calls", [None, []])
def test_no_calls_are_no_field(calls: Any) -> None:
    assert "tool_calls" not in one({"role": "assistant", "content": "x", "tool_calls": calls})


def test_arguments_become_a_mapping() -> None:
    big = 2**53 + 1
    message = {"role": "assistant", "tool_calls": [call(f'{{"n": {big}}}'), call({"a": 1})]}
    calls = one(message)["tool_calls"]
    assert [c["function"]["arguments"] for c in calls] == [{"n": big}, {"a": 1}]


def test_arguments_become_text_where_the_template_needs_it() -> None:
    message = {"role": "assistant", "tool_calls": [call('{"é":1}')]}
    calls = one(message, MessageStyle(arguments_as_text=True))["tool_calls"]
    assert calls[0]["function"]["arguments"] == '{"é": 1}'


def test_developers_speak_as_the_system_where_the_template_knows_no_developer() -> None:
    message = {"role": "developer", "content": "x"}
    assert one(message)["role"] == "system"
    assert one(message, MessageStyle(developer_role=True))["role"] == "developer"


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_is_read_under_its_common_names(name: str) -> None:
    message = one({"role": "assistant", "content": "x", name: "because"})
    assert message["reasoning_content"] == "because"


def test_tool_results_learn_their_functions_name() -> None:
    messages = [
        USER,
        {"role": "assistant", "tool_calls": [call()]},
        {"role": "tool", "tool_call_id": "call_7", "content": "dry"},
        {"role": "tool", "tool_call_id": "other", "content": "dry"},
    ]
    result = normalise_messages(messages, STYLE)
    assert result[2]["name"] == "weather"
    assert "name" not in result[3]


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("hi", "messages[1]"),
        (None, "messages[1]"),
        ({}, "messages[1].role"),
        ({"role": "robot", "content": ""}, "messages[1].role"),
        ({"role": ["user"], "content": ""}, "messages[1].role"),
        ({"role": "user"}, "messages[1].content"),
        ({"role": "user", "content": None}, "messages[1].content"),
        ({"role": "system", "content": 5}, "messages[1].content"),
        ({"role": "user", "content": [5]}, "messages[1].content[0]"),
        ({"role": "user", "content": [{"type": "text"}]}, "messages[1].content[0].text"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "messages[1].content[0].type"),
        ({"role": "user", "content": [{"text": "x"}]}, "messages[1].content[0].type"),
        ({"role": "user", "content": "", "name": 5}, "messages[1].name"),
        ({"role": "assistant", "function_call": {}}, "messages[1].function_call"),
        ({"role": "assistant", "audio": {"id": "a"}}, "messages[1].audio"),
        ({"role": "assistant", "reasoning": 5}, "messages[1].reasoning"),
        ({"role": "assistant", "tool_calls": {}}, "messages[1].tool_calls"),
        ({"role": "assistant", "tool_calls": [5]}, "messages[1].tool_calls[0]"),
        (
            {"role": "assistant", "tool_calls": [call(), call(type="custom")]},
            "messages[1].tool_calls[1].type",
        ),
        (
            {"role": "assistant", "tool_calls": [call(function=None)]},
            "messages[1].tool_calls[0].function",
        ),
        (
            {"role": "assistant", "tool_calls": [call(function={"name": ""})]},
            "messages[1].tool_calls[0].function.name",
        ),
        (
            {"role": "assistant", "tool_calls": [call(id=5)]},
            "messages[1].tool_calls[0].id",
        ),
    ],
)
def test_errors_name_the_message_and_its_field(message: Any, field: str) -> None:
    with pytest.raises(RequestError) as caught:
        normalise_messages([USER, message], STYLE)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "arguments", ["", " ", "{", "[]", "5", "null", '{"a": NaN}', "[" * 100_000, None, 5, []]
)
def test_malformed_arguments_name_the_message(arguments: Any) -> None:
    with pytest.raises(RequestError) as caught:
        normalise_messages([{"role": "assistant", "tool_calls": [call(arguments)]}], STYLE)
    assert caught.value.field == "messages[0].tool_calls[0].function.arguments"


def test_no_messages() -> None:
    with pytest.raises(RequestError, match="messages"):
        normalise_messages([], STYLE)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["role", "content", "tool_calls", "name", "type", "text", "function", "arguments", "reasoning"]
)
MESSAGES = st.lists(
    JSON | st.dictionaries(NAMES, JSON | st.sampled_from(["user", "assistant", "text"])),
    max_size=3,
)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(messages=MESSAGES)
def test_anything_is_normalised_or_refused(messages: list[Any]) -> None:
    before = copy.deepcopy(messages)
    with suppress(RequestError):
        result = normalise_messages(messages, STYLE)
        assert all(isinstance(message["content"], str) for message in result)
    assert messages == before  # the request's own objects are never changed


def tool(**changes: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", **changes}}


def test_tools_are_made_regular() -> None:
    tools = normalise_tools([tool(description="d", strict=True, extra=1)])
    function = {
        "name": "f",
        "description": "d",
        "parameters": {"type": "object", "properties": {}},
        "strict": True,
    }
    assert tools == [{"type": "function", "function": function}]
    assert definitions(tools) == (
        ToolDefinition("f", {"type": "object", "properties": {}}, strict=True),
    )
    assert normalise_tools(None) == []


@pytest.mark.parametrize(
    ("tools", "field"),
    [
        ([5], "tools[0]"),
        ([{"type": "web_search"}], "tools[0].type"),
        ([{"type": "function"}], "tools[0].function"),
        ([tool(name="")], "tools[0].function.name"),
        ([tool(name=None)], "tools[0].function.name"),
        ([tool(), tool()], "tools[1].function.name"),
        ([tool(description=5)], "tools[0].function.description"),
        ([tool(parameters=[])], "tools[0].function.parameters"),
        ([tool(strict="yes")], "tools[0].function.strict"),
    ],
)
def test_wrong_tools_are_named(tools: list[Any], field: str) -> None:
    with pytest.raises(RequestError) as caught:
        normalise_tools(tools)
    assert caught.value.field == field
