"""Every tool syntax with the reasoning that goes with it, and which markers are tokens."""

from dataclasses import dataclass

from grammar_walks import Walker, walker

from helios.contract.decode_frontend import decode_frontend
from helios.contract.syntax import PreparedFrontend
from helios.ignition.preparation import syntaxes as s
from helios.schema import frontend_pb2 as pb

CHATML = ("<|im_start|>assistant\n", "<|im_end|>")
FRAMES = ("<|start|>assistant", "<|end|>")
XTML_MESSAGE = ('<|open|>message role="assistant"<|sep|>', "<|end_of_msg|>")
_THINK = ("<think>", "</think>")
_CALL = ("<tool_call>", "</tool_call>")
_ARG = ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
_SECTIONS = tuple(
    f"<｜tool▁{name}｜>" for name in ("calls▁begin", "calls▁end", "call▁begin", "call▁end", "sep")
)
_NUMBERED = tuple(
    f"<|{name}|>"
    for name in (
        "tool_calls_section_begin",
        "tool_calls_section_end",
        "tool_call_begin",
        "tool_call_end",
        "tool_call_argument_begin",
    )
)
_HARMONY = tuple(
    f"<|{name}|>" for name in ("start", "end", "message", "channel", "constrain", "return", "call")
)
_ATEM = tuple(f"<|{name}|>" for name in ("start", "message", "eom", "eot"))


@dataclass(frozen=True)
class Case:
    """`special` are the markers that are tokens; the others are text."""

    tools: s.Tools | None
    reasoning: s.Reasoning | None
    special: tuple[str, ...]
    envelope: tuple[str, str] = CHATML
    interrupts: bool = False

    def frontend(self) -> PreparedFrontend:
        message = pb.FrontendContract(
            eos_tokens=[0],
            image_preparation=pb.IMAGE_PREPARATION_NONE,
            image_layout=pb.IMAGE_LAYOUT_NONE,
            tokenizer_resource="tokenizer",
            template_resource="template",
            assistant=pb.AssistantEnvelope(open=self.envelope[0], close=[self.envelope[1]]),
        )
        s.declare(message, self.tools, self.reasoning, calls_end_reasoning=self.interrupts)
        return decode_frontend(message)

    @property
    def prompt(self) -> str:
        """The end of a prompt that settles nothing about reasoning."""
        return self.envelope[0]

    def walker(self, *, leading_strip: bool = False) -> Walker:
        """Constraints and parsers over a vocabulary that has the syntax's markers as pieces."""
        facts = self.frontend()
        closers: list[str] = []
        if (tools := facts.tool_syntax) is not None:
            for pair in (tools.block, tools.call, tools.key, tools.value):
                closers += [pair.open, pair.close]
            closers.append(tools.quote)
            if tools.wrapping_newlines:
                closers.append(f"\n{tools.value.close}")
        if (reasoning := facts.reasoning_syntax) is not None:
            closers += [reasoning.delimiters.open, reasoning.delimiters.close]
        spelled = [text for text in closers if text]
        return walker(facts, self.special, spelled, leading_strip=leading_strip)


CASES = {
    "plain": Case(None, None, ()),
    "think": Case(None, s.THINK, _THINK),
    "function-tags": Case(s.FUNCTION_TAGS, s.THINK, (*_THINK, *_CALL), interrupts=True),
    "function-tags-text": Case(s.FUNCTION_TAGS, s.THINK, ()),
    "json-tags": Case(s.JSON_TAGS, s.THINK, (*_THINK, *_CALL), interrupts=True),
    "json-tags-text": Case(s.JSON_TAGS, None, ()),
    "json-list-text": Case(s.JSON_LIST_TAGS, None, ()),
    "granite-list": Case(s.GRANITE_LIST, None, ("<|tool_call|>",)),
    "mistral-list": Case(s.MISTRAL_LIST, None, ("[TOOL_CALLS]",)),
    "mistral-named": Case(
        s.MISTRAL_NAMED,
        s.BRACKET_THINK,
        ("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]"),
    ),
    "llama-json": Case(s.LLAMA_JSON, None, ("<|python_tag|>",)),
    "pythonic": Case(s.PYTHONIC, None, ("<|python_start|>", "<|python_end|>")),
    "argument-tags": Case(s.ARGUMENT_TAGS, s.THINK, (*_THINK, *_CALL, *_ARG), interrupts=True),
    "compact-argument-tags": Case(
        s.COMPACT_ARGUMENT_TAGS, s.THINK, (*_THINK, *_CALL, *_ARG), interrupts=True
    ),
    "invoke-tags": Case(
        s.INVOKE_TAGS, s.THINK, (*_THINK, "<minimax:tool_call>", "</minimax:tool_call>")
    ),
    "dsml": Case(s.DSML_FUNCTION_CALLS, s.INLINE_THINK, (*_THINK, "｜DSML｜")),
    "dsml-spaced": Case(s.DSML_CALLS, s.INLINE_THINK, (*_THINK, "｜DSML｜")),
    "fenced-sections": Case(s.FENCED_SECTIONS, None, _SECTIONS),
    "sections": Case(s.SECTIONS, s.INLINE_THINK, (*_THINK, *_SECTIONS)),
    "numbered-sections": Case(
        s.NUMBERED_SECTIONS, s.INLINE_THINK, (*_THINK, *_NUMBERED), interrupts=True
    ),
    "quoted-mapping": Case(
        s.QUOTED_MAPPING,
        s.THOUGHT_CHANNEL,
        ("<|tool_call>", "<tool_call|>", '<|"|>', "<|channel>", "<channel|>"),
    ),
    "escaped-mapping": Case(
        s.ESCAPED_MAPPING, None, ("<start_function_call>", "<end_function_call>")
    ),
    "xtml": Case(s.XTML, s.XTML_THINK, ("<|open|>", "<|close|>", "<|sep|>"), XTML_MESSAGE),
    "atem": Case(s.ATEM, s.RECIPIENT_REASONING, _ATEM, FRAMES),
    "harmony": Case(s.HARMONY, s.HARMONY_REASONING, _HARMONY, FRAMES),
}
