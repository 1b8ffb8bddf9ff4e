"""Messages made of frames: a header that says for whom the body is, then the body.

Only header tokens delimit frames where the tokenizer has them; their spellings are text. A frame
whose closer is missing ends where the next one opens.
"""

from typing import Protocol

from helios.contract.syntax import FrameSyntax
from helios.frontend.recipients.headers import Header, HeaderSyntax, Route
from helios.frontend.scan.marks import Marks
from helios.frontend.scan.shapes import ahead, boundary, either, literal, sequence, spaces
from helios.frontend.scan.source import Cut, Malformed, Steps, drop
from helios.frontend.tools.reply import Reply

HEADER_LIMIT = 1024
"""The longest header. What is longer is text without one."""


class FrameBody(Protocol):
    """Reads the bodies of frames that are calls. Immutable."""

    def call(self, reply: Reply, recipient: str) -> Steps[None]:
        """Read a tool frame's body. Raises `Malformed`; what it leaves unread is skipped."""

    def stray_call(self, reply: Reply, recipient: str) -> Steps[None]:
        """Read a visible frame's body where it is a call after all; else leave the source be."""


class FrameGrammar:
    """The compiled frame syntax. Immutable."""

    def __init__(self, frame: FrameSyntax, marks: Marks, body: FrameBody) -> None:
        start, message = literal(marks.private(frame.start)), literal(marks.private(frame.message))
        end = either(*[literal(marks.private(text)) for text in frame.ends])
        words = (frame.role, frame.recipient, frame.channel, frame.constrain)
        beginnings = [literal(marks.private(word)) for word in words if word]
        self.header = HeaderSyntax(frame, marks)
        self.body = body
        self.frame_end = boundary(start=start, end=end)
        self.next_start = boundary(here=sequence(spaces(), start))
        self.header_end = boundary(message=message, start=start, end=end)
        self.header_begins = boundary(
            here=ahead(sequence(spaces(), either(*beginnings, message, start, end)))
        )


class Frames:
    """One response's frames, from within the first header on."""

    def __init__(self, grammar: FrameGrammar, reply: Reply, *, structured: bool) -> None:
        self._grammar = grammar
        self._reply = reply
        self._source = reply.source
        self._visible = reply.output.answer if structured else reply.output.content

    def run(self) -> Steps[None]:
        """Read the whole message."""
        more = True
        while more:
            header = yield from self._read_header()
            more = header is None or (yield from self._read_body(header))

    def _read_header(self) -> Steps[Header | None]:
        """The next frame's header; None where it led nowhere. Text that can't be a header is
        the body of a frame without one."""
        bare = Header(Route.VISIBLE, "", "")
        if not (yield from self._source.accept(self._grammar.header_begins)):
            if self._source.ended and not self._source.natural:
                raise Cut
            return bare
        try:
            text, found = yield from self._source.take(self._grammar.header_end, HEADER_LIMIT)
        except Malformed:
            return bare
        except Cut:
            self._unfinished(self._grammar.header.read(self._source.rest()))
            raise
        if found.lastgroup == "message":
            return self._grammar.header.read(text)
        if found.lastgroup == "end":
            yield from self._source.accept(self._grammar.next_start)
        return None

    def _unfinished(self, header: Header) -> None:
        """The text ended in a header. A model that forgot the body's opener has still answered."""
        if self._source.natural and header.route is Route.VISIBLE:
            self._visible(header.rest)

    def _read_body(self, header: Header) -> Steps[bool]:
        """Read a frame's body and its end. Whether another frame may follow."""
        sink = drop
        if header.route is Route.REASONING:
            sink = self._reply.output.reasoning
        elif header.route is Route.VISIBLE:
            yield from self._grammar.body.stray_call(self._reply, header.recipient)
            sink = self._visible
        else:
            try:
                yield from self._grammar.body.call(self._reply, header.recipient)
            except Malformed:
                self._reply.output.abandon()
        found = yield from self._source.copy(self._grammar.frame_end, sink)
        if found and found.lastgroup == "end":
            yield from self._source.accept(self._grammar.next_start)
        return found is not None
