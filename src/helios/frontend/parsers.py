"""From a contract's frontend facts to the parser of a response.

Which grammar reads a response follows from the two parser enums and their syntax data alone.
What depends on the core is compiled once; a response costs a few small objects.
"""

from collections.abc import Callable, Iterator

from helios.contract.kinds import ReasoningParser, ToolParser
from helios.contract.syntax import PreparedFrontend, ReasoningSyntax, ToolSyntax
from helios.errors import ContractError
from helios.frontend.parsing import OutputParser, ParserFactory, ParserRequest, plain_parser
from helios.frontend.reasoning.message import Message, MessageGrammar
from helios.frontend.reasoning.state import open_tail
from helios.frontend.reasoning.think import ThinkTags
from helios.frontend.recipients.bodies import JsonBody, TagBody
from helios.frontend.recipients.frames import FrameBody, FrameGrammar, Frames
from helios.frontend.recipients.xtml import Xtml, XtmlGrammar
from helios.frontend.scan.marks import Lettering, Marks, Vocabulary
from helios.frontend.scan.output import Output
from helios.frontend.scan.parser import ScanningParser, WholeCalls
from helios.frontend.scan.source import Source, Steps
from helios.frontend.tools.envelope import EnvelopeGrammar
from helios.frontend.tools.grammar import ToolGrammar
from helios.frontend.tools.named import NamedGrammar
from helios.frontend.tools.pythonic import PythonicGrammar
from helios.frontend.tools.reply import Reply
from helios.frontend.tools.schemas import Toolbox
from helios.frontend.tools.tags import TagGrammar

Begin = Callable[[Reply, ParserRequest], Callable[[], Steps[None]]]
"""From a response to the steps that read it."""

_TOOL_GRAMMARS: dict[ToolParser, Callable[[ToolSyntax, Marks], ToolGrammar]] = {
    ToolParser.FUNCTION_TAGS: TagGrammar,
    ToolParser.INVOKE_TAGS: TagGrammar,
    ToolParser.ARGUMENT_TAGS: TagGrammar,
    ToolParser.DSML: TagGrammar,
    ToolParser.SECTIONS: NamedGrammar,
    ToolParser.NAMED_JSON: NamedGrammar,
    ToolParser.QUOTED_MAPPING: NamedGrammar,
    ToolParser.JSON_TAGS: EnvelopeGrammar,
    ToolParser.JSON_ARRAY: EnvelopeGrammar,
    ToolParser.JSON_MESSAGE: EnvelopeGrammar,
    ToolParser.PYTHONIC: PythonicGrammar,
}
_FRAME_BODIES: dict[ToolParser, Callable[[ToolSyntax, Marks], FrameBody]] = {
    ToolParser.HARMONY: JsonBody,
    ToolParser.ATEM: TagBody,
}
_REASONING = {
    ToolParser.HARMONY: (ReasoningParser.HARMONY,),
    ToolParser.ATEM: (ReasoningParser.RECIPIENT_HEADERS,),
    ToolParser.XTML: (ReasoningParser.XTML_THINK, ReasoningParser.NONE),
}
"""The reasoning parsers that go with tool parsers which read a whole envelope."""


def parser_factory(
    frontend: PreparedFrontend, vocabulary: Vocabulary, *, whole_calls: bool = True
) -> ParserFactory:
    """The factory of a core's parsers.

    With `whole_calls` a call's deltas come together once it is complete, and a call that was cut
    leaves no trace. Without, they come as they are read, and a call without an end was none.
    Raises `ContractError` for parsers that don't belong together.
    """
    _check_pair(frontend)
    if frontend.tool_parser is ToolParser.NONE and frontend.reasoning_parser is (
        ReasoningParser.NONE
    ):
        return plain_parser
    tools = frontend.tool_syntax or ToolSyntax()
    marks = Marks(_spellings(tools, frontend.reasoning_syntax), vocabulary)
    begin = _compile(frontend, tools, marks)

    def build(request: ParserRequest) -> OutputParser:
        lettering = Lettering(marks)
        output = Output(lettering, calls=bool(request.tools), id_length=tools.id_length)
        source = Source()
        reply = Reply(source, output, lettering, Toolbox(request.tools))
        parser = ScanningParser(
            source,
            output,
            lettering.read,
            begin(reply, request),
            special_tokens=vocabulary.special_tokens,
            prefix=marks.private(open_tail(request.prompt, frontend.assistant)),
        )
        return WholeCalls(parser) if whole_calls else parser

    return build


def _compile(frontend: PreparedFrontend, tools: ToolSyntax, marks: Marks) -> Begin:
    if frontend.tool_parser is ToolParser.XTML:
        xtml = XtmlGrammar(tools, marks)
        return lambda reply, request: Xtml(xtml, reply).run
    if frontend.tool_parser in _FRAME_BODIES and tools.frame:
        body = _FRAME_BODIES[frontend.tool_parser](tools, marks)
        frames = FrameGrammar(tools.frame, marks, body)
        return lambda reply, request: Frames(frames, reply, structured=request.structured).run
    return _compile_message(frontend, tools, marks)


def _compile_message(frontend: PreparedFrontend, tools: ToolSyntax, marks: Marks) -> Begin:
    reasoning = frontend.reasoning_syntax
    think = ThinkTags(reasoning, marks) if reasoning and reasoning.delimiters.open else None
    without_tools = with_tools = MessageGrammar(think, None)
    if frontend.tool_parser is not ToolParser.NONE:
        with_tools = MessageGrammar(
            think,
            _TOOL_GRAMMARS[frontend.tool_parser](tools, marks),
            ends_reasoning=_ends_reasoning(tools, reasoning, marks),
            trims=tools.trims_content,
        )

    def begin(reply: Reply, request: ParserRequest) -> Callable[[], Steps[None]]:
        grammar = with_tools if request.tools else without_tools
        return Message(grammar, reply, structured=request.structured).run

    return begin


def _ends_reasoning(tools: ToolSyntax, reasoning: ReasoningSyntax | None, marks: Marks) -> bool:
    """Whether the tool syntax's opener ends reasoning. One that is no token may stand in
    reasoning as prose."""
    terminals = reasoning.terminal_markers if reasoning else ()
    return tools.opener in terminals and marks.is_token(tools.opener)


def _check_pair(frontend: PreparedFrontend) -> None:
    """Envelopes that hold calls and reasoning together take both parsers or none."""
    tools, reasoning = frontend.tool_parser, frontend.reasoning_parser
    wanted = _REASONING.get(tools, (ReasoningParser.NONE, ReasoningParser.THINK_TAGS))
    if reasoning not in wanted:
        raise ContractError(
            f"does not go with the tool parser {tools.name}",
            field="frontend.reasoning_parser",
            value=reasoning.name,
            remedy=f"use {' or '.join(kind.name for kind in wanted)}",
        )


def _spellings(tools: ToolSyntax, reasoning: ReasoningSyntax | None) -> Iterator[str]:
    """Every marker, and every part of one, that may be a token."""
    frame = tools.frame
    pairs = [tools.block, tools.call, tools.key, tools.value, tools.fence]
    pairs += [reasoning.delimiters] if reasoning else []
    for pair in pairs:
        yield from (pair.open, pair.close)
    yield from (tools.name_end, tools.tag_end, tools.id_marker, tools.quote)
    yield from (*tools.implicit_ends, *tools.tokens)
    if frame:
        yield from (frame.start, frame.channel, frame.constrain, frame.message, *frame.ends)
    if reasoning:
        yield from reasoning.tokens
