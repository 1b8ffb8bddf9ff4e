"""Calls as tags: a name, then keys and values between markers.

Where whitespace between tags is free to the reader, a line break is free to the model. Tools
whose arguments the schema does not list get one JSON object in place of keys and values.
"""

from collections.abc import Sequence

from helios.contract.kinds import ValueTyping
from helios.contract.syntax import ToolSyntax
from helios.errors import RequestError
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
from helios.frontend.grammar.tools import Parameter, Tool
from helios.frontend.grammar.values import RawText, split, text_terminal

_LINE = optional(literal("\n"))


class TagCalls:
    """Function tags, invoke tags, DSML, ATEM and argument tags."""

    bare = ""

    def __init__(self, syntax: ToolSyntax, markers: Markers) -> None:
        self._syntax = syntax
        self._markers = markers
        self.opener = syntax.block.open or syntax.call.open
        bare = syntax.block.open and syntax.bare_calls
        self.other_openers: Sequence[str] = (syntax.call.open,) if bare else ()
        self._texts = markers.spelled(
            [
                syntax.value.close,
                *syntax.implicit_ends,
                *(text for pair in (syntax.block, syntax.call) for text in (pair.open, pair.close)),
                syntax.key.open,
            ]
        )

    def section(self, writer: Writer, tools: Sequence[Tool], opener: str, most: int) -> str:
        """One to `most` calls: in one block, or in blocks of their own."""
        syntax, marker = self._syntax, self._markers.expression
        inner = writer.rule(either(*[self.inside(writer, tool) for tool in tools]))
        if not syntax.block.open:
            again = sequence(_LINE, marker(syntax.call.open), inner)
            return sequence(opener, inner, separated(again, NOTHING, 0, most - 1))
        call = sequence(marker(syntax.call.open), inner)
        if syntax.separator:  # one call a block
            block = sequence(_LINE, call, _LINE, marker(syntax.block.close))
            again = sequence(_LINE, marker(syntax.block.open), block)
            return sequence(opener, block, separated(again, NOTHING, 0, most - 1))
        calls = separated(call, _LINE, 1, most)
        return sequence(opener, _LINE, calls, _LINE, marker(syntax.block.close))

    def block(self, writer: Writer, tool: Tool, name: str) -> str:
        """A block with one call, written under another name than the tool's."""
        syntax, marker = self._syntax, self._markers.expression
        call = sequence(marker(syntax.call.open), self.inside(writer, tool, name))
        opener, closer = marker(syntax.block.open), marker(syntax.block.close)
        return sequence(opener, _LINE, call, _LINE, closer)

    def inside(self, writer: Writer, tool: Tool, name: str = "") -> str:
        """A call behind its opener, the closer included."""
        syntax, marker = self._syntax, self._markers.expression
        # A JSON object must be told from the name before it.
        parameters = tool.parameters if syntax.name_end else tool.listed()
        body = [_LINE, tool.arguments(writer)] if parameters is None else []
        for one in parameters or ():
            value = sequence(_LINE, self._argument(writer, tool, one))
            body.append(value if one.required else optional(value))
        head = marker(name or tool.plain_name(), syntax.name_end, syntax.tag_end)
        return writer.rule(sequence(head, *body, _LINE, marker(syntax.call.close)))

    def _argument(self, writer: Writer, tool: Tool, parameter: Parameter) -> str:
        syntax, marker = self._syntax, self._markers.expression
        self._check_key(parameter)
        parts = split(parameter.schema, tool.schema, parameter.where)
        key = marker(syntax.key.open, parameter.name, syntax.key.close)
        texts = [self._text(writer, raw, parameter) for raw in parts.raw]
        options = [sequence(self._typed("true"), text) for text in texts]
        if parts.other is not None:
            json = tool.value(writer, parts.other)
            options.append(sequence(self._typed("false"), self._opened(json), self._close()))
        return writer.rule(sequence(key, either(*options)))

    def _typed(self, string: str) -> str:
        """The rest of a key's tag, the attribute that says whether a string follows included."""
        syntax = self._syntax
        attribute = f' {syntax.string_attribute}="{string}"'
        typed = syntax.typing is ValueTyping.ATTRIBUTE
        return self._markers.expression(attribute if typed else "", syntax.tag_end)

    def _opened(self, value: str) -> str:
        opener = self._markers.expression(self._syntax.value.open)
        newline = literal("\n") if self._syntax.wrapping_newlines else NOTHING
        return sequence(_LINE if opener else NOTHING, opener, newline, value)

    def _close(self) -> str:
        newline = literal("\n") if self._syntax.wrapping_newlines else NOTHING
        return sequence(newline, self._markers.expression(self._syntax.value.close))

    def _text(self, writer: Writer, raw: RawText, parameter: Parameter) -> str:
        """A raw string and its closer. Markers that text can spell don't occur in it."""
        closer = self._syntax.value.close
        newline = "\n" if self._syntax.wrapping_newlines else ""
        if raw.texts is not None:
            for text in raw.texts:
                self._check_text(text, parameter)
            return sequence(
                self._opened(writer.rule(either(*map(literal, raw.texts)))), self._close()
            )
        body = text_terminal(writer, raw, self._texts)
        marker = self._markers.split(closer)
        if marker.token is None:
            whole = writer.terminal(sequence(body, literal(newline)))
            return self._opened(writer.until(whole, closer))
        lead = literal(newline + marker.lead)
        return sequence(self._opened(writer.terminal(sequence(body, lead))), marker.rest)

    def _check_key(self, parameter: Parameter) -> None:
        name = parameter.name
        markers = [m for m in (self._syntax.key.close, self._syntax.tag_end, "\n") if m]
        if not name or name != name.strip() or any(marker in name for marker in markers):
            raise _unwritable(parameter.where, name)

    def _check_text(self, text: str, parameter: Parameter) -> None:
        if any(marker in text for marker in self._texts):
            raise _unwritable(parameter.where, text)


def _unwritable(where: str, value: str) -> RequestError:
    return RequestError(
        "can't be told from this model's tool syntax",
        field=where,
        value=value,
        remedy="use other names and values",
    )
