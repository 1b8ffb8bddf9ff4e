"""Calls written as tags: a name, then keys and values between markers.

    <block><call=book><key=guests>4</key></call></block>

Function tags, invoke tags, DSML, ATEM and argument tags differ in their markers, in where a
value's type comes from, and in whether the block is itself the call (argument tags).
"""

from collections.abc import Callable

from helios.contract.syntax import ToolSyntax
from helios.frontend.scan.marks import Marks
from helios.frontend.scan.shapes import Boundary, Shape, ahead, boundary, maybe
from helios.frontend.scan.source import Cut, Malformed, Steps, drop
from helios.frontend.tools.arguments import Arguments
from helios.frontend.tools.grammar import KEY_LIMIT, NAME_LIMIT, Spelling
from helios.frontend.tools.literals import field_names
from helios.frontend.tools.reply import Reply
from helios.frontend.tools.schemas import ToolTypes, encode
from helios.frontend.tools.tag_values import TagValues
from helios.records import dataclass

_OBJECT = frozenset({"object"})

Resolve = Callable[[str], str]
"""From the name on the wire to the tool's name. Raises `Malformed` where there is none."""


@dataclass(frozen=True, slots=True)
class _Wrapped:
    """A first value under a key that may stand for all the arguments."""

    key: str
    attributes: str
    text: str


class TagGrammar:
    """The compiled syntax."""

    bare = False

    def __init__(self, syntax: ToolSyntax, marks: Marks) -> None:
        spelling = Spelling(syntax, marks)
        block, call = syntax.block, syntax.call
        outer = block if block.open else call
        self.openers = {"block": spelling.opener(block.open)} if block.open else {}
        if syntax.bare_calls or not block.open:
            self.openers["call"] = spelling.opener(call.open)
        self._next_call = boundary(
            end=spelling.spaced(block.close),
            call=spelling.spaced(call.open),
            again=spelling.spaced(block.open),
        )
        self._block_end = maybe(spelling.spaced(block.close))
        self._after_broken = boundary(
            end=spelling.marker(outer.close), again=_ahead(spelling.marker(outer.open))
        )
        self._name_end = _compile_name_end(syntax, spelling)
        self._tag_end = maybe(spelling.marker(syntax.tag_end))
        self._next_value = boundary(
            key=spelling.spaced(syntax.key.open),
            end=spelling.spaced(call.close),
            missing=_ahead(spelling.spaced(block.close, block.open, call.open)),
            json=_ahead(spelling.spaced("{")),
        )
        self._key_end = boundary(here=spelling.marker(syntax.key.close))
        self._values = TagValues(syntax, spelling)
        self._wrappers = frozenset(syntax.argument_fields)

    def calls(self, reply: Reply, opener: str) -> Steps[None]:
        """Read the calls of a block, or one call. Where there are blocks, a call without one
        must be to an offered tool: its opener may be prose."""
        if opener == "block":
            yield from self.block(reply, str)
            return
        yield from self._call(reply, _offered(reply) if self._block_end else str)
        if self._block_end:
            yield from reply.source.accept(self._block_end)

    def block(self, reply: Reply, resolve: Resolve) -> Steps[None]:
        """Read a block whose opener has been read. A missing closer is forgiven after a call."""
        empty = True
        while found := (yield from reply.source.accept(self._next_call)):
            if found.lastgroup == "end":
                return
            if found.lastgroup == "call":
                reply.commit()
                yield from self._call(reply, resolve)
                empty = False
        if empty:
            raise Cut if reply.source.ended else Malformed

    def recover(self, reply: Reply) -> Steps[None]:
        """Skip the rest of a broken block."""
        yield from reply.source.copy(self._after_broken, drop)

    def _call(self, reply: Reply, resolve: Resolve) -> Steps[None]:
        written, found = yield from reply.source.take(self._name_end, NAME_LIMIT)
        name = reply.lettering.drop(written).strip()
        if found.lastgroup == "again" or not name or len(name.split()) > 1:
            raise Malformed
        name = resolve(name)
        attributes = yield from self._attributes(reply)
        reply.start(name)
        arguments = reply.arguments()
        if not attributes.rstrip().endswith("/"):
            yield from self._body(reply, name, arguments)
        else:
            arguments.close()
        reply.output.end()

    def _attributes(self, reply: Reply) -> Steps[str]:
        """The rest of an opening tag."""
        if self._tag_end is None:
            return ""
        text, _ = yield from reply.source.take(self._tag_end, KEY_LIMIT)
        return text

    def _body(self, reply: Reply, name: str, arguments: Arguments) -> Steps[None]:
        """Keys and values up to the end of the call, or one JSON object in place of them."""
        source = reply.source
        types = reply.tools.types(name)
        wrapped: _Wrapped | None = None
        while True:
            found = yield from source.accept(self._next_value)
            kind = found.lastgroup if found else None
            if wrapped:
                self._write_wrapped(arguments, wrapped, types, alone=kind != "key")
                wrapped = None
            if kind == "key":
                key, attributes = yield from self._key(reply)
                if key in self._wrappers and not arguments.keys and name in reply.tools:
                    wrapped = _Wrapped(key, attributes, (yield from self._values.text(reply)))
                else:
                    yield from self._group(reply, arguments, types, key, attributes)
            elif kind == "json":
                yield from source.spaces()
                yield from reply.literals().copy(arguments.whole)
            elif kind in ("end", "missing"):
                break
            elif not source.ended:
                raise Malformed
            elif not source.natural or not types.required <= arguments.keys:
                raise Cut
            else:
                break
        arguments.close()

    def _key(self, reply: Reply) -> Steps[tuple[str, str]]:
        """A key whose opener has been read, and the rest of its tag."""
        written, _ = yield from reply.source.take(self._key_end, KEY_LIMIT)
        attributes = yield from self._attributes(reply)
        return reply.lettering.spell(written).strip(), attributes

    def _group(
        self, reply: Reply, arguments: Arguments, types: ToolTypes, key: str, attributes: str
    ) -> Steps[None]:
        """A key and its value, or several keys and then as many values in the same order."""
        keys = [key]
        while not (yield from self._values.open(reply)):
            key, _ = yield from self._key(reply)
            keys.append(key)
        for count, key in enumerate(keys, 1):
            if count > 1:
                yield from self._values.open_next(reply)
            arguments.key(key)
            more = count < len(keys)
            yield from self._values.read(reply, arguments, types.of(key), attributes, more=more)

    def _write_wrapped(
        self, arguments: Arguments, wrapped: _Wrapped, types: ToolTypes, *, alone: bool
    ) -> None:
        """Write what may be the whole arguments under one key: an object of parameters that the
        tool has, under a key that it has not."""
        value = encode(wrapped.text, _OBJECT)
        unknown = wrapped.key not in types.parameters
        if alone and unknown and value and field_names(value) <= types.parameters.keys():
            arguments.whole(value)
            return
        arguments.key(wrapped.key)
        self._values.write(arguments, wrapped.text, types.of(wrapped.key), wrapped.attributes)


def _compile_name_end(syntax: ToolSyntax, spelling: Spelling) -> Boundary:
    """What ends a name. Where values have openers of their own, keys stand right behind it."""
    end, again = spelling.marker(syntax.name_end), spelling.marker(syntax.call.open)
    if not syntax.value.open:
        return boundary(here=end, again=again)
    return boundary(
        here=end,
        next=_ahead(again),
        key=_ahead(spelling.marker(syntax.key.open)),
        close=_ahead(spelling.marker(syntax.call.close)),
    )


def _offered(reply: Reply) -> Resolve:
    def resolve(name: str) -> str:
        if name not in reply.tools:
            raise Malformed
        return name

    return resolve


def _ahead(shape: Shape | None) -> Shape | None:
    return ahead(shape) if shape else None
