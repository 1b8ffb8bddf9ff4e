"""Calls as JSON objects that hold a name and arguments: one by one, or in a list."""

import json
from collections.abc import Sequence

from helios.contract.syntax import ToolSyntax
from helios.frontend.grammar.lark import (
    NOTHING,
    Writer,
    either,
    literal,
    optional,
    separated,
    sequence,
)
from helios.frontend.grammar.markers import Markers
from helios.frontend.grammar.tools import Tool

_LINE = optional(literal("\n"))
_SPACE = optional(literal(" "))


class JsonCalls:
    """`<opener>{"name": …, "arguments": …}<closer>`, again for every call.

    Where calls need no opener it is free to the first one.
    """

    other_openers: Sequence[str] = ()

    def __init__(self, syntax: ToolSyntax, markers: Markers) -> None:
        self._syntax = syntax
        self._markers = markers
        self.opener = syntax.call.open
        self.bare = "{" if syntax.bare_calls else ""

    def section(self, writer: Writer, tools: Sequence[Tool], opener: str, most: int) -> str:
        """One to `most` calls."""
        syntax, marker = self._syntax, self._markers.expression
        call = call_object(writer, syntax, tools)
        between = optional(literal(syntax.separator))
        if self.bare:
            start = optional(sequence(opener, _SPACE)) if opener else NOTHING
            between = sequence(literal(syntax.separator or "\n"), _SPACE)
            return sequence(start, separated(call, between, 1, most))
        inner = sequence(_LINE, call, _LINE, marker(syntax.call.close))
        again = sequence(between, marker(syntax.call.open), inner)
        return sequence(opener, inner, separated(again, NOTHING, 0, most - 1))


class JsonList:
    """`<opener>[{"name": …, "arguments": …}, …]<closer>`."""

    other_openers: Sequence[str] = ()
    bare = ""

    def __init__(self, syntax: ToolSyntax, markers: Markers) -> None:
        self._syntax = syntax
        self._close = markers.expression(syntax.block.close)
        self.opener = syntax.block.open

    def section(self, writer: Writer, tools: Sequence[Tool], opener: str, most: int) -> str:
        """A list of one to `most` calls."""
        call = call_object(writer, self._syntax, tools)
        space = optional(either(literal("\n"), literal(" ")))
        items = separated(call, sequence(literal(","), space), 1, most)
        listed = sequence(literal("["), space, items, space, literal("]"))
        return sequence(opener, space, listed, space if self._close else NOTHING, self._close)


def call_object(writer: Writer, syntax: ToolSyntax, tools: Sequence[Tool]) -> str:
    """One call's object, its fields in the order in which models are trained to write them."""
    return writer.rule(either(*[_object(writer, syntax, tool) for tool in tools]))


def _object(writer: Writer, syntax: ToolSyntax, tool: Tool) -> str:
    fields = [
        _field(syntax.name_fields, literal(_quoted(tool.name))),
        _field(syntax.argument_fields, tool.arguments(writer)),
    ]
    comma = sequence(literal(","), _SPACE)
    call_id = NOTHING
    if syntax.id_fields:
        length = syntax.id_length or 9
        made_up = writer.terminal(f'/"[A-Za-z0-9]{{{length}}}"/')
        call_id = optional(sequence(comma, _field(syntax.id_fields, made_up)))
    return writer.rule(sequence(literal("{"), fields[0], comma, fields[1], call_id, literal("}")))


def _field(names: Sequence[str], value: str) -> str:
    return sequence(either(*[literal(f"{_quoted(name)}:") for name in names]), _SPACE, value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
