"""The tools that a request offers, and the types that their schemas allow."""

import re
from collections.abc import Iterable, Mapping

from helios.frontend.parsing import ToolDefinition
from helios.frontend.tools.literals import is_number, whole
from helios.records import dataclass

TYPES = frozenset({"string", "number", "integer", "boolean", "null", "array", "object"})
STRING = frozenset({"string"})

_REFERENCE_DEPTH = 16
_KINDS = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
    list: "array",
    dict: "object",
}
_WHOLE_NUMBER = re.compile(r"-?[0-9]+\Z")


@dataclass(frozen=True, slots=True)
class ToolTypes:
    """What one tool's schema says of its top-level parameters."""

    parameters: Mapping[str, frozenset[str]]
    required: frozenset[str]

    def of(self, parameter: str) -> frozenset[str]:
        """The types that a parameter may have; every type where the schema says nothing."""
        return self.parameters.get(parameter, TYPES)


_UNKNOWN_TOOL = ToolTypes({}, frozenset())


class Toolbox:
    """The offered tools by name. Schemas are read when a call needs them."""

    def __init__(self, tools: Iterable[ToolDefinition]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._types: dict[str, ToolTypes] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def __bool__(self) -> bool:
        return bool(self._tools)

    def types(self, name: str) -> ToolTypes:
        """The types of a tool's parameters."""
        if name not in self._tools:
            return _UNKNOWN_TOOL
        if name not in self._types:
            self._types[name] = _read_types(self._tools[name].parameters)
        return self._types[name]


def _read_types(schema: Mapping[str, object]) -> ToolTypes:
    properties = schema.get("properties")
    required = schema.get("required")
    types = {
        str(name): allowed_types(parameter, schema)
        for name, parameter in (properties.items() if isinstance(properties, Mapping) else ())
    }
    names = required if isinstance(required, list | tuple) else ()
    return ToolTypes(types, frozenset(name for name in names if isinstance(name, str)))


def allowed_types(
    schema: object, root: Mapping[str, object], depth: int = _REFERENCE_DEPTH
) -> frozenset[str]:
    """The JSON types that a schema allows. Alternatives add up, references are followed."""
    if not isinstance(schema, Mapping) or depth == 0:
        return TYPES
    if "$ref" in schema:
        return allowed_types(_resolve(schema["$ref"], root), root, depth - 1)
    if "type" in schema:
        return _named_types(schema["type"])
    if "const" in schema:
        return _types_of_values([schema["const"]])
    if isinstance(schema.get("enum"), list):
        return _types_of_values(schema["enum"])
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list) and schema[key]:
            each = [allowed_types(choice, root, depth - 1) for choice in schema[key]]
            return frozenset().union(*each)
    if isinstance(schema.get("allOf"), list) and schema["allOf"]:
        each = [allowed_types(part, root, depth - 1) for part in schema["allOf"]]
        return TYPES.intersection(*each) or TYPES
    return TYPES


def _resolve(reference: object, root: Mapping[str, object]) -> object:
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: object = root
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _named_types(named: object) -> frozenset[str]:
    names = named if isinstance(named, list | tuple) else [named]
    return TYPES.intersection(name for name in names if isinstance(name, str)) or TYPES


def _types_of_values(values: list[object]) -> frozenset[str]:
    return frozenset(_KINDS[type(value)] for value in values if type(value) in _KINDS) or TYPES


def encode(text: str, types: frozenset[str]) -> str | None:
    """The JSON of a written value that has one of these types, strings aside; else None.

    Numbers keep their digits. Templates that print Python's own constants make `True`, `False`
    and `None` spellings of booleans and null, but never where the schema allows a string.
    """
    text = text.strip()
    if constant := _constant(text, types):
        return constant
    if is_number(text):
        return text if _allows_number(text, types) else None
    if (text[:1] == "[" and "array" in types) or (text[:1] == "{" and "object" in types):
        return whole(text)
    return None


def _constant(text: str, types: frozenset[str]) -> str | None:
    spelled = text if "string" in types else _PYTHON_CONSTANTS.get(text, text)
    kind = {"null": "null", "true": "boolean", "false": "boolean"}.get(spelled)
    return spelled if kind in types else None


_PYTHON_CONSTANTS = {"True": "true", "False": "false", "None": "null"}


def _allows_number(text: str, types: frozenset[str]) -> bool:
    if "number" in types:
        return True
    return "integer" in types and (
        _WHOLE_NUMBER.match(text) is not None or float(text).is_integer()
    )
