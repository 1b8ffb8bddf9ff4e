"""The values of tags: where they end and what they are."""

import re

from helios.contract.kinds import ValueTyping
from helios.contract.syntax import ToolSyntax
from helios.frontend.scan.shapes import (
    Boundary,
    Shape,
    ahead,
    boundary,
    either,
    literal,
    maybe,
    optional,
    sequence,
)
from helios.frontend.scan.source import Cut, Malformed, Sink, Steps
from helios.frontend.tools.arguments import Arguments
from helios.frontend.tools.grammar import Spelling
from helios.frontend.tools.literals import whole
from helios.frontend.tools.reply import Reply
from helios.frontend.tools.schemas import STRING, encode


class TagValues:
    """Reads values and gives them their types."""

    def __init__(self, syntax: ToolSyntax, spelling: Spelling) -> None:
        self._attribute = (
            re.compile(rf'{re.escape(syntax.string_attribute)}\s*=\s*"([^"]*)"')
            if syntax.typing is ValueTyping.ATTRIBUTE
            else None
        )
        # A value may lack its opener, but a key does not take another key for its value.
        opener, key = spelling.spaced(syntax.value.open), spelling.spaced(syntax.key.open)
        self._open = boundary(here=opener, key=key) if opener else None
        self._newline = maybe(literal("\n") if syntax.wrapping_newlines else None)
        outer = (syntax.key.open, syntax.call.close, syntax.block.close)
        self._end = _compile_end(syntax, spelling, outer)
        self._end_in_group = _compile_end(syntax, spelling, (syntax.value.open,))

    def open(self, reply: Reply) -> Steps[bool]:
        """Read what opens a value. False where another key came instead, whose opener is read."""
        if self._open:
            found = yield from reply.source.accept(self._open)
            return not found or found.lastgroup != "key"
        return True

    def open_next(self, reply: Reply) -> Steps[None]:
        """Read what opens a value behind another one, where keys and values are grouped."""
        found = (yield from reply.source.accept(self._open)) if self._open else None
        if not found or found.lastgroup == "key":
            raise Cut if reply.source.exhausted else Malformed

    def read(
        self,
        reply: Reply,
        arguments: Arguments,
        types: frozenset[str],
        attributes: str,
        *,
        more: bool = False,
    ) -> Steps[None]:
        """Read an opened value whose key has been written. Strings are passed on as they come.
        With `more`, another value of its group follows."""
        declared = self._declared_string(attributes)
        if declared or (declared is None and types == STRING):
            yield from self._unwrap(reply)
            arguments.quote()
            yield from self._copy(reply, arguments.text, more=more)
            arguments.quote()
            return
        text = yield from self.text(reply, more=more)
        self.write(arguments, text, types, attributes)

    def text(self, reply: Reply, *, more: bool = False) -> Steps[str]:
        """Read an opened value as it was written."""
        yield from self._unwrap(reply)
        parts: list[str] = []
        yield from self._copy(reply, parts.append, more=more)
        return reply.lettering.spell("".join(parts))

    def write(
        self, arguments: Arguments, text: str, types: frozenset[str], attributes: str
    ) -> None:
        """Write a value that has been read, as what it is."""
        declared = self._declared_string(attributes)
        if declared or (declared is None and types == STRING):
            arguments.string(text)
            return
        value = whole(text) if declared is False else None
        value = value or encode(text, types)
        if value is None:
            arguments.string(text)
        else:
            arguments.json(value)

    def _declared_string(self, attributes: str) -> bool | None:
        """Whether an attribute calls the value a string; None where nothing is said."""
        found = self._attribute.search(attributes) if self._attribute else None
        return found.group(1) == "true" if found else None

    def _unwrap(self, reply: Reply) -> Steps[None]:
        if self._newline:
            yield from reply.source.accept(self._newline)

    def _copy(self, reply: Reply, sink: Sink, *, more: bool) -> Steps[None]:
        end = self._end_in_group if more else self._end
        if (yield from reply.source.copy(end, sink)) is None:
            raise Cut


def _compile_end(syntax: ToolSyntax, spelling: Spelling, next_markers: tuple[str, ...]) -> Boundary:
    """A value's closer, and the markers that end it where its closer is missing.

    Tags escape nothing. A closer that holds a token can't be spelled in text, so it ends the
    value; another one does so only where one of `next_markers` stands behind it, else it is text.
    The marker that stands for a missing closer must begin a line where newlines wrap values.
    """
    closer = spelling.marker(syntax.value.close)
    if closer and not spelling.is_token(syntax.value.close):
        follows = spelling.spaced(*next_markers)
        closer = sequence(closer, ahead(follows, or_end=True)) if follows else closer
    implied = [_implied_end(syntax, spelling, marker) for marker in syntax.implicit_ends]
    if syntax.wrapping_newlines:
        newline = literal("\n")
        return boundary(
            close=sequence(optional(newline), closer) if closer else None,
            implied=sequence(newline, either(*implied)) if implied else None,
        )
    return boundary(close=closer, implied=either(*implied) if implied else None)


def _implied_end(syntax: ToolSyntax, spelling: Spelling, marker: str) -> Shape:
    shape = spelling.marker(marker)
    if shape is None:
        raise ValueError(marker)
    if marker == syntax.key.open:
        return ahead(shape)
    outer = (syntax.block.close, syntax.block.open, syntax.call.open)
    follows = spelling.spaced(*[text for text in outer if text != marker])
    return ahead(sequence(shape, ahead(follows, or_end=True)) if follows else shape)
