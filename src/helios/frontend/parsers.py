"""From a contract's frontend facts to the parser of a response.

Which grammar reads a response follows from the two parser enums and their syntax data alone.
What depends on the core is compiled once; a response costs a few small objects.
"""

from collections.abc import Callable, Iterator
from functools import partial

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
from helios.records import dataclass

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


@dataclass(frozen=True, slots=True)
class _Reading:
    """How responses of one kind are read: their marker tokens, and the steps from a reply."""

    marks: Marks
    steps: Callable[[Reply, bool], Callable[[], Steps[None]]]


def parser_factory(
    frontend: PreparedFrontend, vocabulary: Vocabulary, *, whole_calls: bool = True
) -> ParserFactory:
    """The factory of a core's parsers.

    With `whole_calls` a call's deltas come together once it is complete, and a call that was cut
    leaves no trace. Without, they come as they are read, and a call without an end was none.
    Raises `ContractError` for parsers that don't belong together.
    """
    _check_pair(frontend)
    tools, reasoning = frontend.tool_syntax or ToolSyntax(), frontend.reasoning_syntax
    if frontend.tool_parser is ToolParser.NONE and reasoning is None:
        return plain_parser
    marks = marks_of(frontend, vocabulary)
    with_tools = without_tools = _whole_envelope(frontend.tool_parser, tools, marks)
    if with_tools is None:
        with_tools = _message(frontend.tool_parser, tools, reasoning, marks)
        plain = Marks(_reasoning_spellings(reasoning), vocabulary)
        without_tools = _message(ToolParser.NONE, tools, reasoning, plain)
    return partial(_build, frontend, with_tools, without_tools or with_tools, whole_calls)


def marks_of(frontend: PreparedFrontend, vocabulary: Vocabulary) -> Marks:
    """The marker tokens of all that a core's responses may hold."""
    tools = _tool_spellings(frontend.tool_syntax or ToolSyntax())
    return Marks([*tools, *_reasoning_spellings(frontend.reasoning_syntax)], vocabulary)


def _build(
    frontend: PreparedFrontend,
    with_tools: _Reading,
    without_tools: _Reading,
    whole_calls: bool,
    request: ParserRequest,
) -> OutputParser:
    reading = with_tools if request.tools else without_tools
    lettering = Lettering(reading.marks)
    id_length = frontend.tool_syntax.id_length if frontend.tool_syntax else 0
    output = Output(lettering, calls=bool(request.tools), id_length=id_length)
    source = Source()
    reply = Reply(source, output, lettering, Toolbox(request.tools))
    parser = ScanningParser(
        source,
        output,
        lettering.read,
        reading.steps(reply, request.structured),
        special_tokens=reading.marks.special_tokens,
        prefix=reading.marks.private(open_tail(request.prompt, frontend.assistant)),
    )
    return WholeCalls(parser) if whole_calls else parser


def _whole_envelope(parser: ToolParser, tools: ToolSyntax, marks: Marks) -> _Reading | None:
    """The reading of syntaxes that are a whole envelope, with or without tools on offer."""
    if parser is ToolParser.XTML:
        xtml = XtmlGrammar(tools, marks)
        return _Reading(marks, lambda reply, structured: Xtml(xtml, reply).run)
    if parser not in _FRAME_BODIES or tools.frame is None:
        return None
    frames = FrameGrammar(tools.frame, marks, _FRAME_BODIES[parser](tools, marks))
    return _Reading(
        marks, lambda reply, structured: Frames(frames, reply, structured=structured).run
    )


def _message(
    parser: ToolParser, tools: ToolSyntax, reasoning: ReasoningSyntax | None, marks: Marks
) -> _Reading:
    think = ThinkTags(reasoning, marks) if reasoning and reasoning.delimiters.open else None
    grammar = MessageGrammar(
        think,
        None if parser is ToolParser.NONE else _TOOL_GRAMMARS[parser](tools, marks),
        ends_reasoning=_ends_reasoning(tools, reasoning, marks),
        trims=tools.trims_content,
    )
    return _Reading(
        marks, lambda reply, structured: Message(grammar, reply, structured=structured).run
    )


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


def _tool_spellings(tools: ToolSyntax) -> Iterator[str]:
    """Every marker of calls, and every part of one, that may be a token."""
    for pair in (tools.block, tools.call, tools.key, tools.value, tools.fence):
        yield from (pair.open, pair.close)
    yield from (tools.name_end, tools.tag_end, tools.id_marker, tools.quote)
    yield from (*tools.implicit_ends, *tools.tokens)
    if frame := tools.frame:
        yield from (frame.start, frame.channel, frame.constrain, frame.message, *frame.ends)


def _reasoning_spellings(reasoning: ReasoningSyntax | None) -> Iterator[str]:
    """Every delimiter of reasoning, and every part of one, that may be a token."""
    if reasoning:
        yield from (reasoning.delimiters.open, reasoning.delimiters.close, *reasoning.tokens)
