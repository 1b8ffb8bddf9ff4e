"""Calls as a name and then a value, between markers, perhaps in a section of calls."""

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
from helios.frontend.grammar.mappings import MappingValues
from helios.frontend.grammar.markers import Markers
from helios.frontend.grammar.tools import Tool


class NamedCalls:
    """`<section><call>name<arguments>{…}</call>…</section>`, or calls without a section."""

    bare = ""

    def __init__(self, syntax: ToolSyntax, markers: Markers) -> None:
        self._syntax = syntax
        self._markers = markers
        self.opener = syntax.block.open or syntax.call.open
        self.other_openers: Sequence[str] = (syntax.call.open,) if syntax.block.open else ()

    def section(self, writer: Writer, tools: Sequence[Tool], opener: str, most: int) -> str:
        """One to `most` calls."""
        syntax, marker = self._syntax, self._markers.expression
        inner = writer.rule(either(*[self._call(writer, tool) for tool in tools]))
        call = sequence(marker(syntax.call.open), inner)
        between = optional(literal(syntax.separator))
        if syntax.block.open:
            calls = separated(call, between, 1, most)
            return sequence(opener, calls, marker(syntax.block.close))
        again = separated(sequence(between, call), NOTHING, 0, most - 1)
        return sequence(opener, inner, again)

    def _call(self, writer: Writer, tool: Tool) -> str:
        """What stands between a call's markers, the closer included."""
        syntax, marker = self._syntax, self._markers.expression
        number = sequence(literal(syntax.ordinal), writer.terminal("/[0-9]{1,4}/"))
        call_id = sequence(marker(syntax.id_marker), writer.terminal("/[A-Za-z0-9]{9}/"))
        return sequence(
            marker(syntax.call_type, syntax.name_prefix, tool.plain_name()),
            number if syntax.ordinal else NOTHING,
            optional(call_id) if syntax.id_marker else NOTHING,
            marker(syntax.name_end, syntax.fence.open),
            self._value(writer, tool),
            marker(syntax.fence.close, syntax.call.close),
        )

    def _value(self, writer: Writer, tool: Tool) -> str:
        if self._syntax.quote:
            return MappingValues(writer, tool, self._syntax.quote, self._markers).arguments()
        return tool.arguments(writer)
