"""The tools of a request as grammars see them."""

import re
from collections.abc import Mapping, Sequence

from helios.errors import RequestError
from helios.frontend.grammar.lark import ForeignPart, Writer
from helios.frontend.grammar.schemas import (
    COMPACT,
    Whitespace,
    compact,
    document,
    read_schema,
    resolve,
    rooted,
)
from helios.frontend.parsing import ToolDefinition
from helios.records import dataclass

MOST_CALLS = 128
"""Of one response; a model that never stops calling is cut off here."""
_PLAIN_NAME = re.compile(r"[\w.\-]+\Z")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument. `required` says that no call may lack it."""

    name: str
    schema: object
    required: bool
    where: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that may be called. `where` is the request's field that declares it."""

    name: str
    schema: Mapping[str, object]
    where: str

    @property
    def parameters(self) -> tuple[Parameter, ...] | None:
        """The arguments one by one, in order; None where the schema does not list them."""
        schema = resolve(self.schema, self.schema)
        properties = schema.get("properties")
        rules = ("anyOf", "oneOf", "allOf", "$ref", "patternProperties", "minProperties", "enum")
        if any(key in schema for key in rules):
            return None
        if not isinstance(properties, dict) or not properties:
            return None if schema.get("additionalProperties", True) is not False else ()
        required = schema.get("required")
        names = set(required) if isinstance(required, list) else set()
        if not names <= properties.keys():
            return None
        inside = f"{self.where}.parameters.properties"
        return tuple(
            Parameter(name, child, name in names, f"{inside}.{name}")
            for name, child in properties.items()
        )

    @property
    def takes_nothing(self) -> bool:
        """Whether a call without arguments is one that the schema allows for sure."""
        schema = resolve(self.schema, self.schema)
        rules = {"anyOf", "oneOf", "allOf", "$ref", "enum", "const", "minProperties"}
        return not schema.keys() & rules and not schema.get("required")

    def listed(self) -> tuple[Parameter, ...]:
        """The arguments one by one, for a syntax that can write them in no other way: none where
        the schema leaves them open. Raises `RequestError` where there must be some."""
        if self.parameters is not None:
            return self.parameters
        if self.takes_nothing:
            return ()
        raise RequestError(
            "must list its properties: this model writes arguments one by one",
            field=f"{self.where}.parameters",
            remedy="declare every argument under properties",
        )

    def arguments(self, writer: Writer, whitespace: Whitespace = COMPACT) -> str:
        """All arguments as one JSON object."""
        return writer.json(document(self.schema, whitespace))

    def value(self, writer: Writer, schema: Mapping[str, object]) -> str:
        """One value as JSON, by a schema that stands in the tool's."""
        return writer.json(document(rooted(self.schema, schema), COMPACT))

    def plain_name(self) -> str:
        """The name; refuses one that can't be told from the syntax around it."""
        if not _PLAIN_NAME.match(self.name):
            raise RequestError(
                "can't be written in this model's tool syntax",
                field=f"{self.where}.name",
                value=self.name,
                remedy="use letters, digits, '_', '.' and '-'",
            )
        return self.name


def read_tools(writer: Writer, definitions: Sequence[tuple[int, ToolDefinition]]) -> list[Tool]:
    """Tools with their numbers in the request. Objects that declare properties take no others,
    unless they say so: a model must not invent arguments. Raises `RequestError`."""
    return [_tool(writer, number, definition) for number, definition in definitions]


def _tool(writer: Writer, number: int, definition: ToolDefinition) -> Tool:
    where = f"tools[{number}].function"
    inside = f"{where}.parameters"
    schema = read_schema(dict(definition.parameters), inside, closed=True)
    if schema.setdefault("type", "object") != "object":
        raise RequestError(
            "must be 'object'",
            field=f"{inside}.type",
            value=schema["type"],
            remedy="describe the arguments as one object",
        )
    if schema.get("properties") == {}:
        schema.setdefault("additionalProperties", False)
    writer.parts.append(ForeignPart(inside, schema, compact(schema)))
    return Tool(definition.name, schema, where)
