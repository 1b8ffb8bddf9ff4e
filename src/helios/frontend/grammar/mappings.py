"""Arguments as quoted mappings: bare keys, and strings between quote tokens.

    {guests:4,note:<q>a "b"<q>,tags:[<q>x<q>]}

Numbers, booleans and null are JSON. Schemas are compiled here, since their strings and keys are
written in another way than JSON's.
"""

import json
from collections.abc import Iterable, Mapping
from typing import NoReturn

from helios.errors import RequestError
from helios.frontend.grammar.commas import listed
from helios.frontend.grammar.lark import NOTHING, Writer, either, literal, separated, sequence
from helios.frontend.grammar.markers import Markers
from helios.frontend.grammar.schemas import resolve
from helios.frontend.grammar.tools import Tool
from helios.frontend.grammar.values import RawText, split, text_terminal
from helios.frontend.tools.schemas import allowed_types

_COMMA = literal(",")
_BARE_KEY = r"/[A-Za-z_][A-Za-z0-9_\-]*/"
_UNSUPPORTED = (
    "patternProperties",
    "propertyNames",
    "prefixItems",
    "minProperties",
    "maxProperties",
)


class MappingValues:
    """Writes the values of one tool."""

    def __init__(self, writer: Writer, tool: Tool, quote: str, markers: Markers) -> None:
        self._writer = writer
        self._tool = tool
        self._quote = quote
        self._mark = markers.expression(quote)
        self._is_token = markers.is_token(quote)
        self._known: dict[str, str] = {}

    def arguments(self) -> str:
        """The whole mapping."""
        return self._value(self._tool.schema, f"{self._tool.where}.parameters")

    def _value(self, schema: object, where: str) -> str:
        """A rule for a schema. One that refers to itself becomes a rule that does."""
        key = json.dumps(schema, sort_keys=True)
        if key not in self._known:
            name = self._known[key] = self._writer.reserve()
            self._writer.fill(name, self._write(schema, where))
        return self._known[key]

    def _write(self, schema: object, where: str) -> str:
        if schema is False:
            self._refuse(where, schema)
        resolved = resolve(schema, self._tool.schema)
        if resolved is not schema and isinstance(schema, dict) and "$ref" in schema:
            return self._value(resolved, where)
        for key in ("$ref", *_UNSUPPORTED):
            if key in resolved:
                self._refuse(f"{where}.{key}", resolved[key])
        if "const" in resolved:
            return self._constant(resolved["const"])
        values = resolved.get("enum")
        if isinstance(values, list):
            return either(*[self._constant(value) for value in values])
        for key in ("anyOf", "oneOf", "allOf"):
            options = resolved.get(key)
            if isinstance(options, list) and options:
                if key == "allOf" and len(options) > 1:
                    self._refuse(f"{where}.{key}", options)
                return either(
                    *[self._value(o, f"{where}.{key}[{n}]") for n, o in enumerate(options)]
                )
        return either(*self._by_type(resolved, where))

    def _by_type(self, schema: Mapping[str, object], where: str) -> list[str]:
        types = allowed_types(schema, self._tool.schema)
        options: list[str] = []
        if "string" in types:
            raw = split({**schema, "type": "string"}, self._tool.schema, where).raw
            options += [self._text(part) for part in raw]
        if "array" in types:
            options.append(self._array(schema, where))
        if "object" in types:
            options.append(self._object(schema, where))
        plain = types - {"string", "array", "object"}
        if plain:
            options.append(self._tool.value(self._writer, {**schema, "type": sorted(plain)}))
        return options

    def _text(self, raw: RawText) -> str:
        if self._is_token:
            return sequence(self._mark, text_terminal(self._writer, raw), self._mark)
        terminal = text_terminal(self._writer, raw, [self._quote])
        return sequence(self._mark, self._writer.until(terminal, self._quote))

    def _array(self, schema: Mapping[str, object], where: str) -> str:
        item = self._value(schema.get("items", {}), f"{where}.items")
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if not isinstance(least, int) or not isinstance(most, int | None):
            self._refuse(f"{where}.minItems", least)
        return sequence(literal("["), separated(item, _COMMA, least, most), literal("]"))

    def _object(self, schema: Mapping[str, object], where: str) -> str:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not properties:
            return self._free_object(schema, where)
        required = schema.get("required")
        names = required if isinstance(required, list) else []
        if not set(names) <= properties.keys():
            self._refuse(f"{where}.required", names)
        fields = [
            (self._field(name, child, f"{where}.properties.{name}"), name in names)
            for name, child in properties.items()
            if child is not False
        ]
        return sequence(literal("{"), listed(self._writer, fields, _COMMA), literal("}"))

    def _free_object(self, schema: Mapping[str, object], where: str) -> str:
        """An object whose keys the schema leaves open, if it does."""
        others = schema.get("additionalProperties", True)
        if schema.get("required"):
            self._refuse(f"{where}.required", schema["required"])
        if others is False:
            return literal("{}")
        value = self._value({} if others is True else others, f"{where}.additionalProperties")
        field = sequence(self._writer.terminal(_BARE_KEY), literal(":"), value)
        return sequence(literal("{"), separated(field, _COMMA, 0, None), literal("}"))

    def _field(self, name: str, schema: object, where: str) -> str:
        if not name or name != name.strip() or any(c in ':,{}[]"\n' for c in name):
            self._refuse(where, name)
        return sequence(literal(f"{name}:"), self._value(schema, where))

    def _constant(self, value: object) -> str:
        if isinstance(value, str):
            if self._quote in value and not self._is_token:
                self._refuse(f"{self._tool.where}.parameters", value)
            return sequence(self._mark, literal(value), self._mark)
        if isinstance(value, list):
            inner = (self._constant(item) for item in value)
            return sequence(literal("["), _joined(inner), literal("]"))
        if isinstance(value, dict):
            fields = (
                sequence(literal(f"{key}:"), self._constant(item)) for key, item in value.items()
            )
            return sequence(literal("{"), _joined(fields), literal("}"))
        return literal(json.dumps(value))

    def _refuse(self, where: str, value: object) -> NoReturn:
        raise RequestError(
            "can't be followed in this model's tool syntax",
            field=where,
            value=value,
            remedy="describe the parameter by types, properties, items, enums and alternatives",
        )


def _joined(parts: Iterable[str]) -> str:
    result = NOTHING
    for part in parts:
        result = sequence(result, _COMMA, part) if result else part
    return result
