"""Calls written as a list of Python calls: `[book(guests=4, tags=["a"]), ping()]`.

The list is one expression. Until it closes no call in it is complete.
"""

import re

from helios.contract.syntax import ToolSyntax
from helios.frontend.scan.marks import Marks
from helios.frontend.scan.shapes import maybe
from helios.frontend.scan.source import Malformed, Steps, drop
from helios.frontend.tools.grammar import NAME_LIMIT, Spelling
from helios.frontend.tools.literals import PYTHON
from helios.frontend.tools.reply import Reply

_NAME = re.compile(r"[\w.\-]++")


class PythonicGrammar:
    """The compiled syntax."""

    def __init__(self, syntax: ToolSyntax, marks: Marks) -> None:
        spelling = Spelling(syntax, marks)
        self.bare = syntax.bare_calls
        self.openers = {"block": spelling.opener(syntax.block.open)} if syntax.block.open else {}
        self._close = maybe(spelling.spaced(syntax.block.close))
        self._after_broken = maybe(spelling.marker(syntax.block.close))

    def calls(self, reply: Reply, opener: str) -> Steps[None]:
        """Read a list of calls."""
        source = reply.source
        yield from source.spaces()
        yield from self._expect(reply, "[")
        separator = ","
        while separator == ",":
            yield from source.spaces()
            if (yield from source.peek()) == "]":
                break
            yield from self._call(reply, explicit=opener != "")
            yield from source.spaces()
            separator = yield from source.peek()
            if separator not in ",]":
                raise Malformed
            if separator == ",":
                source.advance(source.position + 1)
        source.advance(source.position + 1)
        if not reply.output.calling:
            raise Malformed
        yield from reply.finish(self._close)

    def recover(self, reply: Reply) -> Steps[None]:
        """Skip the rest of a broken list."""
        if self._after_broken:
            yield from reply.source.copy(self._after_broken, drop)

    def _call(self, reply: Reply, explicit: bool) -> Steps[None]:
        name = yield from self._name(reply)
        yield from self._expect(reply, "(")
        if not explicit and name not in reply.tools:
            raise Malformed
        reply.start(name)
        arguments = reply.arguments()
        separator = ","
        while separator == ",":
            yield from reply.source.spaces()
            if (yield from reply.source.peek()) == ")":
                break
            key = yield from self._name(reply)
            yield from reply.source.spaces()
            yield from self._expect(reply, "=")
            arguments.key(key)
            yield from reply.source.spaces()
            yield from reply.literals(PYTHON).copy(arguments.json)
            yield from reply.source.spaces()
            separator = yield from reply.source.peek()
            if separator not in ",)":
                raise Malformed
            if separator == ",":
                reply.source.advance(reply.source.position + 1)
        reply.source.advance(reply.source.position + 1)
        arguments.close()

    def _name(self, reply: Reply) -> Steps[str]:
        parts: list[str] = []
        yield from reply.source.run(_NAME, parts.append)
        name = "".join(parts)
        if not name or len(name) > NAME_LIMIT:
            raise Malformed
        return name

    def _expect(self, reply: Reply, character: str) -> Steps[None]:
        if (yield from reply.source.peek()) != character:
            raise Malformed
        reply.source.advance(reply.source.position + 1)
