"""What a request demands of its answer's form: response formats, structured outputs, tools."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from helios.errors import RequestError
from helios.frontend.grammar.answers import Answer, AnswerKind
from helios.frontend.grammar.constraints import Demands, ToolChoice
from helios.frontend.grammar.schemas import FREE, Whitespace
from helios.frontend.parsing import ToolDefinition
from helios.server.protocol.chat import ChatRequest
from helios.server.protocol.fields import GenerationFields, StructuredOutputs

_JSON_OBJECT = {"type": "object"}
_GUIDED = {
    "guided_json": AnswerKind.JSON,
    "guided_regex": AnswerKind.REGEX,
    "guided_choice": AnswerKind.CHOICE,
    "guided_grammar": AnswerKind.GRAMMAR,
}


def uses_tools(request: ChatRequest) -> bool:
    """Whether the model may see the tools."""
    return request.tool_choice != "none"


def chat_demands(request: ChatRequest, tools: Sequence[ToolDefinition]) -> Demands:
    """The demands of a chat request whose prompt offers `tools`. Raises `RequestError`."""
    choice, names = _tool_choice(request)
    if choice is not ToolChoice.AUTO and choice is not ToolChoice.NONE and not tools:
        _refuse("tool_choice", "needs tools", request.tool_choice, "declare the tools")
    known = {tool.name for tool in tools}
    for field, name in names.items():
        if name not in known:
            _refuse(field, "is no tool of this request", name, "name a declared tool")
    named = isinstance(request.tool_choice, dict) and request.tool_choice["type"] == "function"
    return Demands(
        answer=answer_of(request),
        choice=choice,
        tools=tools,
        names=frozenset(names.values()) if names else None,
        single=named or request.parallel_tool_calls is False,
    )


def answer_of(fields: GenerationFields) -> Answer | None:
    """The one demand of a request's answer, if it makes any. Raises `RequestError`."""
    found = [
        *_response_format(fields.response_format),
        *_structured_outputs(fields.structured_outputs),
        *_guided(fields),
    ]
    if len(found) > 1:
        _refuse(found[1].where, f"excludes {found[0].where}", None, "demand one form of the answer")
    return found[0] if found else None


def _tool_choice(request: ChatRequest) -> tuple[ToolChoice, dict[str, str]]:
    """Who decides, and the tools that the choice is limited to, by the fields that name them."""
    choice = request.tool_choice
    if choice is None:
        return ToolChoice.AUTO, {}
    if isinstance(choice, str):
        if choice not in {kind.value for kind in ToolChoice}:
            _refuse("tool_choice", "is not known", choice, "use 'auto', 'none' or 'required'")
        silent = choice == "none" and not request.tools
        return (ToolChoice.AUTO if silent else ToolChoice(choice)), {}
    kind = choice.get("type")
    if kind == "allowed_tools":
        return _allowed_tools(choice.get("allowed_tools"))
    if kind != "function":
        _refuse("tool_choice.type", "is not known", kind, "use 'function' or 'allowed_tools'")
    return ToolChoice.REQUIRED, {"tool_choice.function.name": _name(choice, "tool_choice")}


def _allowed_tools(allowed: object) -> tuple[ToolChoice, dict[str, str]]:
    where = "tool_choice.allowed_tools"
    if not isinstance(allowed, dict) or not isinstance(allowed.get("tools"), list):
        _refuse(f"{where}.tools", "must be an array of tools", allowed, "name the allowed tools")
    mode = allowed.get("mode")
    if mode not in ("auto", "required"):
        _refuse(f"{where}.mode", "is not known", mode, "use 'auto' or 'required'")
    names = {
        f"{where}.tools[{number}].function.name": _name(tool, f"{where}.tools[{number}]")
        for number, tool in enumerate(allowed["tools"])
    }
    if not names:
        _refuse(f"{where}.tools", "must not be empty", [], "name the allowed tools")
    return ToolChoice(mode), names


def _name(holder: object, where: str) -> str:
    function = holder.get("function") if isinstance(holder, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str):
        _refuse(f"{where}.function.name", "must be a text", name, "name a declared tool")
    return name


def _response_format(given: dict[str, Any] | None) -> Iterable[Answer]:
    if given is None:
        return
    where = "response_format"
    kind = given.get("type")
    if kind == "text":
        _check_keys(given, ("type",), where)
    elif kind == "json_object":
        _check_keys(given, ("type", "schema"), where)
        yield Answer(AnswerKind.JSON, given.get("schema", _JSON_OBJECT), f"{where}.schema")
    elif kind == "json_schema":
        _check_keys(given, ("type", "json_schema"), where)
        yield _json_schema(given.get("json_schema"), f"{where}.json_schema")
    else:
        _refuse(f"{where}.type", "is not known", kind, "use 'text', 'json_object' or 'json_schema'")


def _json_schema(given: object, where: str) -> Answer:
    if not isinstance(given, dict):
        _refuse(where, "must be an object", given, "give its name and schema")
    _check_keys(given, ("name", "description", "strict", "schema"), where)
    strict = given.get("strict")
    if not isinstance(strict, bool | None):
        _refuse(f"{where}.strict", "must be a boolean", strict, "use true or false")
    if given.get("schema") is None:
        _refuse(f"{where}.schema", "is missing", None, "give the schema")
    return Answer(AnswerKind.JSON, given["schema"], f"{where}.schema", closed=bool(strict))


def _structured_outputs(given: StructuredOutputs | None) -> Iterable[Answer]:
    if given is None:
        return
    where = "structured_outputs"
    whitespace = _whitespace(given)
    closed = bool(given.disable_additional_properties)
    demands: list[tuple[str, AnswerKind, object]] = [
        ("json", AnswerKind.JSON, given.json),
        ("json_object", AnswerKind.JSON, _JSON_OBJECT if given.json_object else None),
        ("regex", AnswerKind.REGEX, given.regex),
        ("choice", AnswerKind.CHOICE, given.choice),
        ("grammar", AnswerKind.GRAMMAR, given.grammar),
    ]
    found = [demand for demand in demands if demand[2] is not None]
    if len(found) != 1:
        names = ", ".join(name for name, _, _ in demands)
        _refuse(where, f"needs exactly one of {names}", [d[0] for d in found], "give one of them")
    for name, kind, source in found:
        yield Answer(kind, source, f"{where}.{name}", closed, whitespace)


def _whitespace(given: StructuredOutputs) -> Whitespace:
    if given.disable_any_whitespace:
        return Whitespace(none=True)
    return FREE if given.whitespace_pattern is None else Whitespace(given.whitespace_pattern)


def _guided(fields: GenerationFields) -> Iterable[Answer]:
    """The same demands under the names that older clients know."""
    for name, kind in _GUIDED.items():
        source = getattr(fields, name)
        if source is not None:
            yield Answer(kind, source, name)


def _check_keys(given: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in given:
        if key not in known:
            _refuse(f"{where}.{key}", "is not known", given[key], f"use {', '.join(known)}")


def _refuse(field: str, message: str, value: object, remedy: str) -> NoReturn:
    raise RequestError(message, field=field, value=value, remedy=remedy)
