"""Messages made of frames: a header that says for whom the body is, then the body.

Frames of reasoning may come first. Each call has a frame of its own; only the last frame of a
response is left open, for the response ends there.
"""

from collections.abc import Sequence

from helios.contract.kinds import ToolParser
from helios.contract.syntax import FrameSyntax, PreparedFrontend, ToolSyntax
from helios.errors import RequestError
from helios.frontend.grammar.demands import Demand, Mode
from helios.frontend.grammar.lark import (
    NOTHING,
    Writer,
    containing,
    either,
    literal,
    optional,
    pattern,
    repeated,
    separated,
    sequence,
    tokens_except,
)
from helios.frontend.grammar.markers import Markers
from helios.frontend.grammar.tag_calls import TagCalls
from helios.frontend.grammar.tools import Tool
from helios.frontend.reasoning.state import open_tail

_SPACE = optional(literal(" "))


class FrameEnvelope:
    """Writes the messages of one core. Immutable."""

    def __init__(self, frontend: PreparedFrontend, frame: FrameSyntax, markers: Markers) -> None:
        self._frontend = frontend
        self._frame = frame
        self._syntax = frontend.tool_syntax or ToolSyntax()
        self._markers = markers
        self._tags = (
            TagCalls(self._syntax, markers) if frontend.tool_parser is ToolParser.ATEM else None
        )
        marker = markers.expression
        internal = [
            end for end in frame.ends if markers.split(end).token not in frontend.eos_tokens
        ]
        self._message = marker(frame.message)
        self._next = sequence(
            either(*map(marker, internal or frame.ends)), marker(frame.start, frame.role)
        )
        tokens = {markers.split(text).token for text in (frame.start, frame.message, *frame.ends)}
        self._stops = {token for token in tokens if token is not None} | set(frontend.eos_tokens)

    @property
    def opener_tokens(self) -> frozenset[int] | None:
        """No token stands for calls alone."""
        return None

    def start(self, writer: Writer, demand: Demand, prompt: str, *, continues: bool) -> str:
        """The expression of a whole response to a prompt that ends in an open header."""
        if open_tail(prompt, self._frontend.assistant).strip():
            raise RequestError(
                "can't be combined with structured output in this model's message syntax",
                field="continue_final_message",
                value=True,
                remedy="end the conversation with a user message",
            )
        frame = self._frame
        free = writer.rule(repeated(tokens_except(self._stops)))
        thought = sequence(self._header(frame.reasoning[0]), free, self._next)
        first = repeated(thought)
        text = self._text(writer) or free
        answer = sequence(self._header(frame.visible[0]), demand.answer or text)
        if demand.mode in (Mode.ANSWER, Mode.SILENT):
            return sequence(first, answer)
        call = writer.rule(either(*[self._call(writer, tool) for tool in demand.tools]))
        calls = separated(call, self._next, 1, demand.most)
        if demand.mode is Mode.CALLS:
            return sequence(first, calls)
        if demand.mode is Mode.EITHER:
            return sequence(first, either(answer, calls))
        said = either(*[sequence(self._header(name), text) for name in frame.visible])
        return sequence(repeated(either(thought, sequence(said, self._next))), either(said, calls))

    def _text(self, writer: Writer) -> str:
        """Visible text that no reader takes for a block of calls; '' where blocks are no text."""
        spelled = self._markers.spelled([self._syntax.block.open])
        if not spelled:
            return NOTHING
        blocks = writer.terminal(containing(spelled))
        return writer.terminal(f"{pattern('(?s:.*)')} & ~{blocks}")

    def _header(self, route: str) -> str:
        """A header up to the body: by channel where there are channels, else by recipient."""
        frame = self._frame
        if frame.channel:
            return sequence(self._markers.expression(frame.channel, route), self._message)
        return sequence(_SPACE, literal(f"{frame.recipient}{route}"), self._message)

    def _call(self, writer: Writer, tool: Tool) -> str:
        return either(
            *[
                sequence(self._tool_header(name), self._body(writer, tool, name))
                for name in self._names(tool)
            ]
        )

    def _names(self, tool: Tool) -> Sequence[str]:
        """What a tool may be called on the wire. Where blocks name the tool, one without a
        namespace is its own namespace."""
        name = tool.plain_name()
        if self._tags is None:
            return (f"{self._syntax.name_prefix}{name}",)
        return (name,) if "." in name else (name, f"{name}.{name}")

    def _tool_header(self, recipient: str) -> str:
        frame, marker = self._frame, self._markers.expression
        to = literal(f"{frame.recipient}{recipient}")
        if not frame.channel:
            return sequence(_SPACE, to, self._message)
        typed = NOTHING
        if frame.constrain:
            typed = optional(sequence(_SPACE, marker(frame.constrain, "json")))
        channel = marker(frame.channel, frame.visible[-1])
        return sequence(channel, literal(" "), to, typed, self._message)

    def _body(self, writer: Writer, tool: Tool, name: str) -> str:
        if self._tags is None:
            return tool.arguments(writer)
        return self._tags.block(writer, tool, name)
