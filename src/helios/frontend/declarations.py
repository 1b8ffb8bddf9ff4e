"""The tools that a request declares."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from helios.errors import RequestError
from helios.frontend.parsing import ToolDefinition


def normalise_tools(tools: Sequence[Any] | None) -> list[dict[str, Any]]:
    """Declarations as templates expect them; raises `RequestError` naming what is wrong."""
    normalised = [_tool(tool, f"tools[{number}]") for number, tool in enumerate(tools or ())]
    seen: set[str] = set()
    for number, tool in enumerate(normalised):
        name = tool["function"]["name"]
        if name in seen:
            _refuse(f"tools[{number}].function.name", "must be declared once", name)
        seen.add(name)
    return normalised


def definitions(tools: Sequence[Mapping[str, Any]]) -> tuple[ToolDefinition, ...]:
    """What parsers need of normalised tools."""
    return tuple(_definition(tool["function"]) for tool in tools)


def _definition(function: Mapping[str, Any]) -> ToolDefinition:
    strict = function.get("strict", False)
    return ToolDefinition(function["name"], function["parameters"], strict)


def _tool(tool: Any, where: str) -> dict[str, Any]:
    if not isinstance(tool, Mapping):
        _refuse(where, "must be an object", tool)
    if tool.get("type") != "function":
        _refuse(f"{where}.type", "must be 'function'", tool.get("type"))
    function = tool.get("function")
    if not isinstance(function, Mapping):
        _refuse(f"{where}.function", "must be an object", function)
    name = function.get("name")
    if not isinstance(name, str) or not name:
        _refuse(f"{where}.function.name", "must be a nonempty text", name)
    result: dict[str, Any] = {"name": name}
    if function.get("description") is not None:
        result["description"] = function["description"]
        if not isinstance(result["description"], str):
            _refuse(f"{where}.function.description", "must be a text", result["description"])
    result["parameters"] = _parameters(function.get("parameters"), f"{where}.function.parameters")
    if function.get("strict") is not None:
        if not isinstance(function["strict"], bool):
            _refuse(f"{where}.function.strict", "must be a boolean", function["strict"])
        result["strict"] = function["strict"]
    return {"type": "function", "function": result}


def _parameters(parameters: Any, where: str) -> dict[str, Any]:
    if parameters is None:
        return {"type": "object", "properties": {}}
    if not isinstance(parameters, dict):
        _refuse(where, "must be a JSON Schema object", parameters)
    try:
        json.dumps(parameters)
    except RecursionError:
        _refuse(where, "is nested too deeply", None)
    return parameters


def _refuse(where: str, message: str, value: object) -> NoReturn:
    raise RequestError(message, field=where, value=value, remedy="correct the declaration")
