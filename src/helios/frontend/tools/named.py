"""Calls written as a name and then a value, between markers, perhaps in a section of calls.

    <section><call>name<arguments>{…}</call><call>…</call></section>

DeepSeek V3 and V3.1 sections, Kimi K2 sections, Mistral's name form, and Gemma's calls, whose
value is a quoted mapping instead of JSON.
"""

from helios.contract.syntax import ToolSyntax
from helios.frontend.scan.marks import Marks
from helios.frontend.scan.shapes import (
    ahead,
    boundary,
    either,
    literal,
    maybe,
    sequence,
    spaces,
)
from helios.frontend.scan.source import Malformed, Steps, drop
from helios.frontend.tools.grammar import NAME_LIMIT, Spelling
from helios.frontend.tools.literals import JSON, quoted_mapping
from helios.frontend.tools.reply import Reply


class NamedGrammar:
    """The compiled syntax."""

    bare = False

    def __init__(self, syntax: ToolSyntax, marks: Marks) -> None:
        spelling = Spelling(syntax, marks)
        self._syntax = syntax
        openers = {"block": syntax.block.open, "call": syntax.call.open}
        self.openers = {kind: spelling.opener(text) for kind, text in openers.items() if text}
        call, closer = spelling.marker(syntax.call.open), spelling.marker(syntax.call.close)
        end = spelling.marker(syntax.block.close)
        self._between = boundary(call=call, end=end) if end else None
        self._after_broken = boundary(
            closer=closer,
            call=ahead(call) if call else None,
            end=ahead(end) if end else None,
        )
        self._type = maybe(spelling.spaced(syntax.call_type))
        value = either(
            *[shape for shape in (ahead(literal("{")), spelling.marker(syntax.name_end)) if shape]
        )
        self._name_end = boundary(
            value=value,
            id=spelling.marker(syntax.id_marker),
            broken=either(*[ahead(shape) for shape in (closer, end, call) if shape]),
        )
        self._id_end = boundary(value=value)
        fence = syntax.fence
        self._fence = maybe(spelling.spaced(fence.open))
        self._fence_end = maybe(spelling.spaced(fence.close))
        self._close = maybe(sequence(spaces(), closer) if closer else None)
        quote = spelling.marker(syntax.quote)
        self._dialect = quoted_mapping(boundary(quote=quote)) if quote else JSON

    def calls(self, reply: Reply, opener: str) -> Steps[None]:
        """Read one call, or a section of them. Text between the calls of a section is noise."""
        if opener != "block" or self._between is None:
            yield from self._call(reply)
            return
        while True:
            found = yield from reply.source.copy(self._between, drop)
            if found is None or found.lastgroup == "end":
                return
            try:
                yield from self._call(reply)
            except Malformed:
                reply.output.abandon()
                yield from self.recover(reply)

    def recover(self, reply: Reply) -> Steps[None]:
        """Skip the rest of a broken call."""
        yield from reply.source.copy(self._after_broken, drop)

    def _call(self, reply: Reply) -> Steps[None]:
        source = reply.source
        if self._type and (yield from source.accept(self._type)):
            reply.commit()
        written, found = yield from source.take(self._name_end, NAME_LIMIT)
        call_id = ""
        if found.lastgroup == "id":
            call_id, found = yield from source.take(self._id_end, NAME_LIMIT)
        name, call_id = self._identify(reply.lettering.drop(written).strip(), call_id.strip())
        if found.lastgroup != "value" or len(name.split()) != 1:
            raise Malformed
        reply.commit()
        if self._fence:
            yield from source.accept(self._fence)
        yield from source.spaces()
        if (yield from source.peek()) != "{":
            raise Malformed
        reply.start(name, call_id)
        yield from reply.literals(self._dialect).copy(reply.output.arguments)
        if self._fence_end:
            yield from source.accept(self._fence_end)
        yield from reply.finish(self._close)

    def _identify(self, written: str, call_id: str) -> tuple[str, str]:
        """The tool's name and the call's id, of what the wire has for them."""
        syntax = self._syntax
        name = written.removeprefix(syntax.name_prefix)
        if syntax.ordinal:
            stem, separator, number = name.rpartition(syntax.ordinal)
            if separator and number.isdigit():
                return stem.rstrip(), written
        return name, call_id
