"""Which tool syntax a chat template has, learned from what it writes.

A template that knows tools writes an assistant's calls into the history as the model writes them.
So a call is rendered, and the syntax is the one whose parser reads exactly that call out of it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from helios.contract.decode_frontend import decode_frontend
from helios.engine.messages import FinishReason
from helios.frontend.detokenizer import Detokenizer
from helios.frontend.parsers import parser_factory
from helios.frontend.parsing import (
    ContentDelta,
    Delta,
    ParserFactory,
    ParserRequest,
    ReasoningDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
    ToolDefinition,
)
from helios.frontend.template import Template
from helios.frontend.tokenizer import Tokenizer
from helios.ignition.preparation import syntaxes as s
from helios.ignition.probe import (
    ARGUMENTS,
    CALL_ID,
    PARAMETERS,
    QUESTION,
    TOOL,
    TOOLS,
    rendered,
    shared,
    tool_turn,
)
from helios.ignition.tool_variants import variants
from helios.schema import frontend_pb2 as pb

# In this order: a syntax comes before those whose parsers would read it too.
_SYNTAXES = (
    s.FUNCTION_TAGS,
    s.INVOKE_TAGS,
    s.ARGUMENT_TAGS,
    s.COMPACT_ARGUMENT_TAGS,
    s.DSML_FUNCTION_CALLS,
    s.DSML_TOOL_CALLS,
    s.DSML_CALLS,
    s.FENCED_SECTIONS,
    s.SECTIONS,
    s.NUMBERED_SECTIONS,
    s.QUOTED_MAPPING,
    s.ESCAPED_MAPPING,
    s.MISTRAL_NAMED,
    s.MISTRAL_LIST,
    s.GRANITE_LIST,
    s.JSON_LIST_TAGS,
    s.JSON_TAGS,
    s.PYTHONIC,
    s.LLAMA_JSON,
)
_ASKED_FOR: tuple[tuple[tuple[str, ...], s.Tools], ...] = (
    (("<tool_call>", "<function="), s.FUNCTION_TAGS),
    (("<tool_call>", "<arg_key>"), s.ARGUMENT_TAGS),
    (("<|tool_call|>",), s.GRANITE_LIST),
    (("<tool_call>",), s.JSON_TAGS),
    (("<|python_tag|>",), s.LLAMA_JSON),
)


def recognise_tools(
    template: Template,
    tokenizer: Tokenizer,
    envelope: pb.AssistantEnvelope | None,
    reasoning: s.Reasoning | None,
) -> s.Tools | None:
    """The syntax of a template's calls, or None where it writes none that is known.

    `envelope` is what it puts around an assistant's messages, `reasoning` what may stand in one
    before a call.
    """
    for body in _rendered_calls(template, envelope or pb.AssistantEnvelope()):
        for tools in _candidates(body):
            if _writes(tools, body) and _reads(tools, reasoning, tokenizer, body):
                return tools
        return None
    return _instructed(template)


def _candidates(body: str) -> Iterator[s.Tools]:
    """Syntaxes that a body opens, then such with other tags, then those that need no opener."""
    for tools in _SYNTAXES:
        if (tools.syntax.block.open or tools.syntax.call.open) in body:
            yield tools
    yield from variants(body)
    yield from (tools for tools in _SYNTAXES if tools.syntax.bare_calls)


def _instructed(template: Template) -> s.Tools | None:
    """The syntax that a template asks for without writing any call itself."""
    for markers, tools in _ASKED_FOR:
        if all(template.mentions(marker) for marker in markers):
            return tools
    return None


def _rendered_calls(template: Template, envelope: pb.AssistantEnvelope) -> Iterator[str]:
    """An assistant's message that is one call, without the envelope around it, in every way in
    which the template writes the call's name."""
    before = rendered(template, [QUESTION], tools=TOOLS) or ""
    for call_id in (CALL_ID, f"functions.{TOOL}:0"):  # an id may be all that is written of a name
        message, result = tool_turn(template, call_id)
        for conversation in ([QUESTION, message], [QUESTION, message, result]):
            text = rendered(template, conversation, tools=TOOLS) or ""
            body = text[len(shared(before, text)) :]
            opener = envelope.open.rstrip("\n")
            body = body.partition(opener)[2] if opener and opener in body else body
            if TOOL in body:
                yield _until_close(body, envelope)


def _until_close(body: str, envelope: pb.AssistantEnvelope) -> str:
    ends = [body.find(close, body.find(TOOL)) for close in envelope.close]
    return body[: min((end for end in ends if end >= 0), default=len(body))]


def _writes(tools: s.Tools, body: str) -> bool:
    """Whether a body has what tells a syntax from its kin."""
    syntax = tools.syntax
    if tools.parser == pb.TOOL_PARSER_JSON_ARRAY and "[{" not in body.replace(" ", ""):
        return False
    return (
        not syntax.name_end
        or f"{TOOL}{syntax.name_end}" in body
        or bool(syntax.ordinal or syntax.id_marker)
    )


@dataclass(slots=True)
class _Heard:
    """What a parser said: whole calls, and all that is none."""

    calls: list[tuple[str, object]] = field(default_factory=list)
    text: str = ""
    _name: str = ""
    _arguments: str = ""

    def hear(self, delta: Delta) -> None:
        match delta:
            case ContentDelta(text) | ReasoningDelta(text):
                self.text += text
            case ToolCallStart(_, _, name):
                self._name, self._arguments = name, ""
            case ToolCallArguments(_, fragment):
                self._arguments += fragment
            case ToolCallEnd():
                self.calls.append((self._name, json.loads(self._arguments)))


def _reads(tools: s.Tools, reasoning: s.Reasoning | None, tokenizer: Tokenizer, body: str) -> bool:
    """Whether a syntax's parser finds the call in a body, and nothing else but empty reasoning."""
    offered = ToolDefinition(TOOL, PARAMETERS)
    parser = parsers_of(tools, reasoning, tokenizer)(ParserRequest("", (offered,)))
    pieces = Detokenizer(tokenizer).feed(tokenizer.encode(body))
    heard = _Heard()
    for delta in (*parser.feed(pieces), *parser.finish(FinishReason.EOS)):
        heard.hear(delta)
    return heard.calls == [(TOOL, ARGUMENTS)] and not heard.text.strip()


def parsers_of(
    tools: s.Tools | None, reasoning: s.Reasoning | None, tokenizer: Tokenizer
) -> ParserFactory:
    """The parsers that a server would make; raises `ContractError` for syntaxes that clash."""
    message = pb.FrontendContract(
        eos_tokens=[0],
        image_preparation=pb.IMAGE_PREPARATION_NONE,
        image_layout=pb.IMAGE_LAYOUT_NONE,
        tokenizer_resource="tokenizer",
    )
    s.declare(message, tools, reasoning)
    return parser_factory(decode_frontend(message), tokenizer)
