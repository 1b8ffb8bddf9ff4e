"""Calls written as JSON objects that hold the name and the arguments.

    <opener>{"name": "book", "arguments": {…}}<closer>
    <opener>[{"name": "book", "arguments": {…}}, …]<closer>

The opener may be missing where a message is itself a call (`bare_calls`).
"""

from dataclasses import dataclass, field

from helios.contract.syntax import ToolSyntax
from helios.frontend.scan.marks import Marks
from helios.frontend.scan.shapes import (
    ahead,
    boundary,
    literal,
    maybe,
    optional,
    sequence,
    spaces,
)
from helios.frontend.scan.source import Malformed, Sink, Steps, drop
from helios.frontend.tools.grammar import Spelling
from helios.frontend.tools.literals import Literals, whole
from helios.frontend.tools.reply import Reply

_HARMLESS_FIELDS = ("type",)
"""Fields that a bare call may have besides its own. Any other makes the object an answer."""


@dataclass(slots=True)
class _Call:
    """One object, as far as it has been read."""

    name: str = ""
    call_id: str = ""
    arguments: list[str] = field(default_factory=list)
    started: bool = False


class EnvelopeGrammar:
    """The compiled syntax."""

    def __init__(self, syntax: ToolSyntax, marks: Marks) -> None:
        spelling = Spelling(syntax, marks)
        outer = syntax.block if syntax.block.open else syntax.call
        closer, again = spelling.marker(outer.close), spelling.marker(outer.open)
        self._syntax = syntax
        self.bare = syntax.bare_calls
        self.openers = {"outer": spelling.opener(outer.open)} if outer.open else {}
        self._close = maybe(spelling.spaced(outer.close))
        self._after_broken = maybe(closer) or maybe(ahead(again) if again else None)
        between = [spaces()]
        if syntax.separator:
            between += [optional(literal(syntax.separator)), spaces()]
        self._another = boundary(here=sequence(*between, ahead(literal("{"))))

    def calls(self, reply: Reply, opener: str) -> Steps[None]:
        """Read one call, several in a row, or a list of them."""
        explicit = opener != ""
        yield from reply.source.spaces()
        first = yield from reply.source.peek()
        if first == "[" and explicit:
            yield from self._list(reply)
        elif first == "{":
            yield from self._row(reply, explicit)
        else:
            raise Malformed

    def recover(self, reply: Reply) -> Steps[None]:
        """Skip the rest of a broken block."""
        if self._after_broken:
            yield from reply.source.copy(self._after_broken, drop)

    def _row(self, reply: Reply, explicit: bool) -> Steps[None]:
        yield from self._object(reply, explicit)
        while (yield from reply.source.accept(self._another)):
            reply.output.end()
            yield from self._object(reply, explicit)
        yield from reply.finish(self._close)

    def _list(self, reply: Reply) -> Steps[None]:
        """A list's items are complete one by one, whatever becomes of the list."""
        source = reply.source
        separator = "["
        while separator != "]":
            source.advance(source.position + 1)
            yield from source.spaces()
            if (yield from source.peek()) == "{":
                yield from self._object(reply, explicit=True)
                reply.output.end()
                yield from source.spaces()
            separator = yield from source.peek()
            if separator not in ",]":
                raise Malformed
        source.advance(source.position + 1)
        if self._close:
            yield from source.accept(self._close)

    def _object(self, reply: Reply, explicit: bool) -> Steps[None]:
        call = _Call()
        literals = reply.literals()
        key = yield from literals.first_field()
        while key is not None:
            yield from self._field(reply, literals, call, key, explicit)
            key = yield from literals.next_field()
        if not call.name or not (explicit or call.started or call.arguments):
            raise Malformed
        if not call.started:
            reply.start(call.name, call.call_id)
            reply.output.arguments("".join(call.arguments) or "{}")

    def _field(
        self, reply: Reply, literals: Literals, call: _Call, key: str, explicit: bool
    ) -> Steps[None]:
        syntax = self._syntax
        if key in syntax.name_fields and not call.name:
            call.name = yield from literals.text()
            if not explicit and call.name not in reply.tools:
                raise Malformed
        elif key in syntax.argument_fields and not call.arguments and not call.started:
            # An id may follow the arguments, so where there are ids the call waits for its end.
            sink: Sink = call.arguments.append
            if call.name and not syntax.id_fields and (yield from reply.source.peek()) == "{":
                reply.start(call.name)
                call.started = True
                sink = reply.output.arguments
            yield from _copy_arguments(reply, literals, sink)
        elif key in syntax.id_fields and (yield from reply.source.peek()) == '"':
            call.call_id = yield from literals.text()
        elif explicit or key in _HARMLESS_FIELDS:
            yield from literals.skip()
        else:
            raise Malformed


def _copy_arguments(reply: Reply, literals: Literals, sink: Sink) -> Steps[None]:
    """An object, or the text of one in a string. Null stands for none."""
    first = yield from reply.source.peek()
    if first == "{":
        yield from literals.copy(sink)
    elif first == '"':
        value = whole((yield from literals.text()))
        if value is None or not value.startswith("{"):
            raise Malformed
        sink(value)
    elif first == "n":
        yield from literals.skip()
    else:
        raise Malformed
