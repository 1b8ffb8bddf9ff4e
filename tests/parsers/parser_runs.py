"""Run a parser over a response and collect what a client would have."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from parser_vocabulary import TestVocabulary

from helios.contract.decode_frontend import decode_frontend
from helios.contract.syntax import PreparedFrontend
from helios.engine.messages import FinishReason
from helios.frontend.parsing import (
    ContentDelta,
    Delta,
    OutputParser,
    ReasoningDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from helios.ignition.preparation.syntaxes import Reasoning, Tools, declare
from helios.schema import frontend_pb2 as pb


def frontend(
    tools: Tools | None,
    reasoning: Reasoning | None,
    envelope: tuple[str, str] = ("<|assistant|>", "<|end|>"),
    *,
    calls_end_reasoning: bool = False,
    tool_response: tuple[str, str] = ("", ""),
) -> PreparedFrontend:
    message = pb.FrontendContract(
        eos_tokens=[0],
        image_preparation=pb.IMAGE_PREPARATION_NONE,
        image_layout=pb.IMAGE_LAYOUT_NONE,
        tokenizer_resource="tokenizer",
        template_resource="template",
        assistant=pb.AssistantEnvelope(
            open=envelope[0],
            close=[envelope[1]],
            tool_response=pb.DelimiterPair(open=tool_response[0], close=tool_response[1]),
        ),
    )
    declare(message, tools, reasoning, calls_end_reasoning=calls_end_reasoning)
    return decode_frontend(message)


@dataclass
class Heard:
    """What a client puts together from deltas."""

    content: str = ""
    reasoning: str = ""
    names: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    ended: set[int] = field(default_factory=set)

    def hear(self, deltas: Iterable[Delta]) -> None:
        for delta in deltas:
            match delta:
                case ContentDelta(text):
                    assert text
                    self.content += text
                case ReasoningDelta(text):
                    assert text
                    self.reasoning += text
                case ToolCallStart(index, call_id, name):
                    assert index == len(self.names), "indexes count from zero"
                    assert call_id not in self.ids, "ids are unique"
                    self.names.append(name)
                    self.ids.append(call_id)
                    self.arguments.append("")
                case ToolCallArguments(index, fragment):
                    assert index < len(self.names)
                    assert index not in self.ended
                    self.arguments[index] += fragment
                case ToolCallEnd(index):
                    self.ended.add(index)

    @property
    def calls(self) -> list[tuple[str, str]]:
        """The calls a client may make: those that ended."""
        made = zip(self.names, self.arguments, strict=True)
        return [call for index, call in enumerate(made) if index in self.ended]


def hear(
    parser: OutputParser,
    vocabulary: TestVocabulary,
    groups: Iterable[Sequence[int]],
    reason: FinishReason = FinishReason.EOS,
) -> Heard:
    """Feed groups of tokens, one group a step, as the pipeline would."""
    heard, decoder = Heard(), vocabulary.decoder()
    for group in groups:
        heard.hear(parser.feed(_wanted(decoder.feed(group), parser, vocabulary)))
    heard.hear(parser.feed(decoder.finish()))
    heard.hear(parser.finish(reason))
    return heard


def _wanted(pieces, parser, vocabulary):
    dropped = vocabulary.special_tokens - parser.special_tokens
    return [piece for piece in pieces if piece.token not in dropped]
