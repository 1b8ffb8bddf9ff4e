"""A conversation as clients send it, made regular for the chat template.

Templates differ in what they bear: a null content, a list of text parts or an empty list of calls
breaks many of them. What comes out of here always has a text as content, calls only where there
are any, and a call's arguments as the mapping that templates iterate over.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from helios.errors import RequestError
from helios.records import dataclass

ROLES = ("system", "developer", "user", "assistant", "tool")
_REASONING_NAMES = ("reasoning_content", "reasoning", "thinking")


@dataclass(frozen=True, slots=True)
class MessageStyle:
    """What a template expects where templates differ."""

    developer_role: bool = False  # else developers speak as the system
    arguments_as_text: bool = False
    reasoning_name: str = "reasoning_content"


def normalise_messages(messages: Sequence[Any], style: MessageStyle) -> list[dict[str, Any]]:
    """The conversation for a template; raises `RequestError` naming the message and its field."""
    if not messages:
        raise RequestError("must not be empty", field="messages", remedy="send a message")
    normalised: list[dict[str, Any]] = []
    names: dict[str, str] = {}  # which function each call id called
    for index, message in enumerate(messages):
        result = _message(message, f"messages[{index}]", style)
        for call in result.get("tool_calls", ()):
            names[call["id"]] = call["function"]["name"]
        if result["role"] == "tool" and "name" not in result:
            name = names.get(result.get("tool_call_id", ""))
            if name is not None:
                result["name"] = name
        normalised.append(result)
    return normalised


def _message(message: Any, where: str, style: MessageStyle) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        _refuse(where, "must be an object", message)
    role = message.get("role")
    if role not in ROLES:
        _refuse(f"{where}.role", f"must be one of {', '.join(ROLES)}", role)
    for name in ("function_call", "audio"):
        if message.get(name) is not None:
            _refuse(f"{where}.{name}", "is not supported", message[name])
    result: dict[str, Any] = {
        "role": "system" if role == "developer" and not style.developer_role else role,
        "content": _content(message, where),
    }
    for name in ("name", "tool_call_id"):
        if message.get(name) is not None:
            result[name] = _text(message[name], f"{where}.{name}")
    if role == "assistant":
        _add_assistant_fields(result, message, where, style)
    return result


def _add_assistant_fields(
    result: dict[str, Any], message: Mapping[str, Any], where: str, style: MessageStyle
) -> None:
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        _refuse(f"{where}.tool_calls", "must be an array", calls)
    if calls:
        result["tool_calls"] = [
            _call(call, f"{where}.tool_calls[{number}]", number, style)
            for number, call in enumerate(calls)
        ]
    for name in _REASONING_NAMES:
        if message.get(name) is not None:
            result[style.reasoning_name] = _text(message[name], f"{where}.{name}")
            break


def _content(message: Mapping[str, Any], where: str) -> str:
    content = message.get("content")
    where = f"{where}.content"
    if isinstance(content, str):
        return content
    if content is None:
        if message["role"] in ("assistant", "tool"):
            return ""
        _refuse(where, "must be a text or an array of text parts", None)
    if not isinstance(content, list):
        _refuse(where, "must be a text or an array of text parts", content)
    return "\n".join([_part(part, f"{where}[{number}]") for number, part in enumerate(content)])


def _part(part: Any, where: str) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        _refuse(where, "must be an object", part)
    kind = part.get("type")
    if kind not in ("text", "refusal"):
        _refuse(f"{where}.type", "this model takes text parts only", kind)
    return _text(part.get(kind), f"{where}.{kind}")


def _call(call: Any, where: str, number: int, style: MessageStyle) -> dict[str, Any]:
    if not isinstance(call, Mapping):
        _refuse(where, "must be an object", call)
    if call.get("type", "function") != "function":
        _refuse(f"{where}.type", "must be 'function'", call.get("type"))
    function = call.get("function")
    if not isinstance(function, Mapping):
        _refuse(f"{where}.function", "must be an object", function)
    name = _text(function.get("name"), f"{where}.function.name")
    if not name:
        _refuse(f"{where}.function.name", "must not be empty", name)
    arguments = _arguments(function.get("arguments"), f"{where}.function.arguments")
    identifier = call.get("id")
    return {
        "id": f"call_{number}" if identifier is None else _text(identifier, f"{where}.id"),
        "type": "function",
        "function": {
            "name": name,
            "arguments": _to_text(arguments) if style.arguments_as_text else arguments,
        },
    }


def _arguments(arguments: Any, where: str) -> dict[str, Any]:
    """One JSON object, given as its text or, as some clients do, as it is."""
    value = arguments
    if isinstance(arguments, str):
        try:
            value = json.loads(arguments, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            _refuse(where, "must be the text of a JSON object", arguments)
    if not isinstance(value, dict):
        _refuse(where, "must be the text of a JSON object", arguments)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _to_text(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        _refuse(where, "must be a text", value)
    return value


def _refuse(where: str, message: str, value: object) -> NoReturn:
    raise RequestError(message, field=where, value=value, remedy="correct the message")
