"""The bodies of tool frames: JSON, or a block of tags with one invocation."""

from helios.contract.syntax import FrameSyntax, ToolSyntax
from helios.frontend.parsing import ToolCallArguments, ToolCallStart
from helios.frontend.scan.marks import Marks
from helios.frontend.scan.output import Output
from helios.frontend.scan.shapes import Shape, ahead, boundary, either, literal, sequence, spaces
from helios.frontend.scan.source import Cut, Malformed, Source, Steps
from helios.frontend.tools.grammar import Spelling
from helios.frontend.tools.reply import Reply
from helios.frontend.tools.schemas import Toolbox
from helios.frontend.tools.tags import Resolve, TagGrammar


class JsonBody:
    """The arguments themselves. A recipient without the prefix of tools is a call only where a
    tool of that name is on offer: other recipients belong to somebody else."""

    def __init__(self, syntax: ToolSyntax, marks: Marks) -> None:
        self._prefix = syntax.name_prefix
        ends = _frame_ends(syntax, marks)
        self._close = boundary(here=sequence(spaces(), ahead(ends)))

    def call(self, reply: Reply, recipient: str) -> Steps[None]:
        """Read one JSON object."""
        name = recipient.removeprefix(self._prefix)
        if not name or (name == recipient and name not in reply.tools):
            raise Malformed
        yield from reply.source.spaces()
        if (yield from reply.source.peek()) != "{":
            raise Malformed
        reply.start(name)
        yield from reply.literals().copy(reply.output.arguments)
        yield from reply.finish(self._close)

    def stray_call(self, reply: Reply, recipient: str) -> Steps[None]:
        """Visible JSON is an answer."""
        yield from ()


class TagBody:
    """A block of tags. The invocation names the tool; the recipient must agree."""

    def __init__(self, syntax: ToolSyntax, marks: Marks) -> None:
        self._tags = TagGrammar(syntax, marks)
        self._generic = syntax.frame.generic_tool if syntax.frame else ""
        self._opener = boundary(here=Spelling(syntax, marks).spaced(syntax.block.open))
        self._rest = boundary(here=ahead(_frame_ends(syntax, marks)))
        self._wrapper = syntax.block.open.strip("<>").rpartition(":")[2]

    def call(self, reply: Reply, recipient: str) -> Steps[None]:
        """Read the block."""
        if not (yield from reply.source.accept(self._opener)):
            raise Cut if reply.source.ended else Malformed
        yield from self._tags.block(reply, self._resolve(reply.tools, recipient))

    def stray_call(self, reply: Reply, recipient: str) -> Steps[None]:
        """Read a body that is nothing but one block, whoever its recipient; other text stays."""
        if not reply.tools or not (found := (yield from reply.source.accept(self._opener))):
            return
        parts: list[str] = []
        ended = (yield from reply.source.copy(self._rest, parts.append)) is None
        if ended and not reply.source.natural:
            raise Cut
        text = "".join(parts)
        if not self._replay(reply, text):
            reply.output.content(found.group() + text)

    def _replay(self, reply: Reply, text: str) -> bool:
        """Say the call that the whole of a text is. Whether there is one."""
        source = Source(text, ended=True)
        output = Output(reply.lettering, calls=True)
        scratch = Reply(source, output, reply.lettering, reply.tools)
        try:
            for _ in self._tags.block(scratch, self._resolve(reply.tools, self._generic)):
                return False
        except (Cut, Malformed):
            return False
        if source.text[source.position :].strip():
            return False
        for delta in output.take():
            if isinstance(delta, ToolCallStart):
                reply.start(delta.name)
            elif isinstance(delta, ToolCallArguments):
                reply.output.arguments(delta.fragment)
        reply.output.end()
        return True

    def _resolve(self, tools: Toolbox, recipient: str) -> Resolve:
        """Names of one frame: a second invocation has none.

        A prompt lists undotted tools under their own name as a namespace, so `read.read` is
        `read`, but only where that is on offer and `read.read` is not. A recipient that is no
        tool may still be the namespace of one, or the block's own name.
        """
        expected = _collapse(recipient, tools)
        used = False

        def resolve(written: str) -> str:
            nonlocal used
            name = _collapse(written, tools)
            namespace = name.partition(".")[0]
            agreed = expected == name or (
                expected not in tools and expected in (self._generic, namespace, self._wrapper)
            )
            if used or not agreed or name not in tools:
                raise Malformed
            used = True
            return name

        return resolve


def _collapse(name: str, tools: Toolbox) -> str:
    head, _, tail = name.partition(".")
    return head if name not in tools and head == tail and head in tools else name


def _frame_ends(syntax: ToolSyntax, marks: Marks) -> Shape:
    frame = syntax.frame or FrameSyntax()
    return either(*[literal(marks.private(text)) for text in (frame.start, *frame.ends)])
