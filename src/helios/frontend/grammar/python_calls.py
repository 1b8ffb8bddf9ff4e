"""Calls as a list of Python calls. JSON literals are Python's but for three constants."""

from collections.abc import Sequence

from helios.contract.syntax import ToolSyntax
from helios.errors import RequestError
from helios.frontend.grammar.commas import listed
from helios.frontend.grammar.lark import Writer, either, literal, optional, separated, sequence
from helios.frontend.grammar.markers import Markers
from helios.frontend.grammar.schemas import resolve
from helios.frontend.grammar.tools import Parameter, Tool
from helios.frontend.tools.schemas import allowed_types

_COMMA = sequence(literal(","), optional(literal(" ")))


class PythonCalls:
    """`[book(guests=4, tags=["a"]), ping()]`, perhaps between markers."""

    other_openers: Sequence[str] = ()

    def __init__(self, syntax: ToolSyntax, markers: Markers) -> None:
        self._close = markers.expression(syntax.block.close)
        self.opener = syntax.block.open
        self.bare = "[" if syntax.bare_calls else ""

    def section(self, writer: Writer, tools: Sequence[Tool], opener: str, most: int) -> str:
        """A list of one to `most` calls."""
        call = writer.rule(either(*[_call(writer, tool) for tool in tools]))
        calls = sequence(literal("["), separated(call, _COMMA, 1, most), literal("]"))
        if not opener:
            return calls
        marked = sequence(opener, calls, self._close)
        return either(marked, calls) if self.bare else marked


def _call(writer: Writer, tool: Tool) -> str:
    arguments = [(_argument(writer, tool, one), one.required) for one in tool.listed()]
    return sequence(
        literal(f"{tool.plain_name()}("), listed(writer, arguments, _COMMA), literal(")")
    )


def _argument(writer: Writer, tool: Tool, parameter: Parameter) -> str:
    if not parameter.name.isidentifier():
        raise RequestError(
            "can't be written in this model's tool syntax",
            field=parameter.where,
            value=parameter.name,
            remedy="use letters, digits and '_'",
        )
    return sequence(literal(f"{parameter.name}="), _value(writer, tool, parameter.schema))


def _value(writer: Writer, tool: Tool, schema: object) -> str:
    """JSON, or the constants in Python's own spelling where any of them is allowed."""
    resolved = resolve(schema, tool.schema)
    json = tool.value(writer, schema if isinstance(schema, dict) else resolved)
    types = allowed_types(schema, tool.schema)
    free = not resolved.keys() & {"enum", "const", "allOf"}
    booleans = (literal("True"), literal("False")) if free and resolved.get("type") else ()
    options = [json]
    if "boolean" in types:
        options += booleans
    if "null" in types and free:
        options.append(literal("None"))
    return either(*options)
