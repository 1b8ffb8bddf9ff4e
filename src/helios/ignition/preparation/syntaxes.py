"""The tool and reasoning syntaxes that recipes may declare, as data.

Each is what a family of checkpoints writes on the wire. A recipe picks one of each kind and joins
them with `declare`; nothing at serving time knows where a syntax comes from.
"""

from helios.records import dataclass
from helios.schema import frontend_pb2 as pb


@dataclass(frozen=True, slots=True)
class Tools:
    """A tool parser and its syntax."""

    parser: pb.ToolParser
    syntax: pb.ToolSyntax


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A reasoning parser and its syntax."""

    parser: pb.ReasoningParser
    syntax: pb.ReasoningSyntax


def declare(
    frontend: pb.FrontendContract,
    tools: Tools | None,
    reasoning: Reasoning | None,
    *,
    calls_end_reasoning: bool = False,
) -> None:
    """Declare a model's syntaxes in its frontend contract.

    `calls_end_reasoning` says that the model may open calls without closing its reasoning first;
    it means nothing to syntaxes whose calls are frames of their own.
    """
    frontend.tool_parser = tools.parser if tools else pb.TOOL_PARSER_NONE
    frontend.reasoning_parser = reasoning.parser if reasoning else pb.REASONING_PARSER_NONE
    frontend.ClearField("tool_syntax")
    frontend.ClearField("reasoning_syntax")
    if tools:
        frontend.tool_syntax.CopyFrom(tools.syntax)
    if reasoning:
        frontend.reasoning_syntax.CopyFrom(reasoning.syntax)
    if tools and reasoning and calls_end_reasoning:
        opener = tools.syntax.block.open or tools.syntax.call.open
        if opener and not tools.syntax.HasField("frame"):
            frontend.reasoning_syntax.terminal_markers.append(opener)


def _pair(open: str, close: str = "") -> pb.DelimiterPair:
    return pb.DelimiterPair(open=open, close=close)


def think_tags(open: str, close: str, *, newlines: bool, tokens: tuple[str, ...] = ()) -> Reasoning:
    """Reasoning between two delimiters, inside which one newline each is syntax or not."""
    return Reasoning(
        pb.REASONING_PARSER_THINK_TAGS,
        pb.ReasoningSyntax(
            delimiters=_pair(open, close), wrapping_newlines=newlines, tokens=tokens
        ),
    )


THINK = think_tags("<think>", "</think>", newlines=True)
"""Think tags on lines of their own: Qwen, GLM, MiniMax, DeepSeek R1."""
INLINE_THINK = think_tags("<think>", "</think>", newlines=False)
"""Think tags whose every character inside is reasoning: DeepSeek V3.1 and later, Kimi K2."""
BRACKET_THINK = think_tags("[THINK]", "[/THINK]", newlines=False)
"""Mistral's control tokens."""
THOUGHT_CHANNEL = think_tags(
    "<|channel>thought\n", "<channel|>", newlines=True, tokens=("<|channel>",)
)
"""Gemma 4's thought channel."""
XTML_THINK = Reasoning(
    pb.REASONING_PARSER_XTML_THINK,
    pb.ReasoningSyntax(
        delimiters=_pair("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
        tokens=("<|open|>", "<|close|>", "<|sep|>"),
    ),
)
RECIPIENT_REASONING = Reasoning(pb.REASONING_PARSER_RECIPIENT_HEADERS, pb.ReasoningSyntax())
HARMONY_REASONING = Reasoning(pb.REASONING_PARSER_HARMONY, pb.ReasoningSyntax())

_NAME = ["name"]
_ARGUMENTS = ["arguments", "parameters"]
_JSON = pb.VALUE_TYPING_JSON
_SCHEMA = pb.VALUE_TYPING_SCHEMA
_REPEATED = pb.PARALLEL_CALLS_REPEAT_BLOCK
_ITEMS = pb.PARALLEL_CALLS_ITEMS

FUNCTION_TAGS = Tools(
    pb.TOOL_PARSER_FUNCTION_TAGS,
    pb.ToolSyntax(
        block=_pair("<tool_call>", "</tool_call>"),
        call=_pair("<function=", "</function>"),
        name_end=">",
        key=_pair("<parameter=", ">"),
        value=_pair("", "</parameter>"),
        wrapping_newlines=True,
        implicit_ends=["<parameter=", "</function>"],
        trims_content=True,
        bare_calls=True,
        separator="\n",
        typing=_SCHEMA,
        parallel=_REPEATED,
    ),
)
"""Qwen3-Coder, Qwen3.5 and later."""

JSON_TAGS = Tools(
    pb.TOOL_PARSER_JSON_TAGS,
    pb.ToolSyntax(
        call=_pair("<tool_call>", "</tool_call>"),
        trims_content=True,
        separator="\n",
        name_fields=_NAME,
        argument_fields=_ARGUMENTS,
        typing=_JSON,
        parallel=_REPEATED,
    ),
)
"""Hermes, Qwen3, Granite 4."""

JSON_LIST_TAGS = Tools(
    pb.TOOL_PARSER_JSON_ARRAY,
    pb.ToolSyntax(
        block=_pair("<tool_call>", "</tool_call>"),
        trims_content=True,
        name_fields=_NAME,
        argument_fields=_ARGUMENTS,
        typing=_JSON,
        parallel=_ITEMS,
    ),
)
"""A list of JSON calls between tags: SmolLM2, Granite 3.1."""

GRANITE_LIST = Tools(
    pb.TOOL_PARSER_JSON_ARRAY,
    pb.ToolSyntax(
        block=_pair("<|tool_call|>"),
        trims_content=True,
        name_fields=_NAME,
        argument_fields=_ARGUMENTS,
        typing=_JSON,
        parallel=_ITEMS,
    ),
)
"""Granite 3.0."""

MISTRAL_LIST = Tools(
    pb.TOOL_PARSER_JSON_ARRAY,
    pb.ToolSyntax(
        block=_pair("[TOOL_CALLS]"),
        id_fields=["id"],
        id_length=9,
        name_fields=_NAME,
        argument_fields=_ARGUMENTS,
        typing=_JSON,
        parallel=_ITEMS,
    ),
)
"""Mistral's tokenizers up to version 7."""

MISTRAL_NAMED = Tools(
    pb.TOOL_PARSER_NAMED_JSON,
    pb.ToolSyntax(
        call=_pair("[TOOL_CALLS]"),
        name_end="[ARGS]",
        id_marker="[CALL_ID]",
        id_length=9,
        typing=_JSON,
        parallel=_REPEATED,
    ),
)
"""Mistral's tokenizers from version 11."""

LLAMA_JSON = Tools(
    pb.TOOL_PARSER_JSON_MESSAGE,
    pb.ToolSyntax(
        call=_pair("<|python_tag|>"),
        bare_calls=True,
        separator=";",
        name_fields=_NAME,
        argument_fields=_ARGUMENTS,
        typing=_JSON,
        parallel=_ITEMS,
    ),
)
"""Llama 3.1 and later 3."""

PYTHONIC = Tools(
    pb.TOOL_PARSER_PYTHONIC,
    pb.ToolSyntax(
        block=_pair("<|python_start|>", "<|python_end|>"),
        bare_calls=True,
        separator=", ",
        typing=_JSON,
        parallel=_ITEMS,
    ),
)
"""Llama 3.2 and Llama 4."""


def _argument_tags(newline: str) -> Tools:
    return Tools(
        pb.TOOL_PARSER_ARGUMENT_TAGS,
        pb.ToolSyntax(
            call=_pair("<tool_call>", "</tool_call>"),
            name_end=newline,
            key=_pair("<arg_key>", "</arg_key>"),
            value=_pair("<arg_value>", "</arg_value>"),
            implicit_ends=["</tool_call>"],
            trims_content=True,
            separator=newline,
            typing=_SCHEMA,
            parallel=_REPEATED,
        ),
    )


ARGUMENT_TAGS = _argument_tags("\n")
"""GLM-4.5 and GLM-4.6."""
COMPACT_ARGUMENT_TAGS = _argument_tags("")
"""GLM-4.7 and GLM-5."""

INVOKE_TAGS = Tools(
    pb.TOOL_PARSER_INVOKE_TAGS,
    pb.ToolSyntax(
        block=_pair("<minimax:tool_call>", "</minimax:tool_call>"),
        call=_pair('<invoke name="', "</invoke>"),
        name_end='"',
        key=_pair('<parameter name="', '"'),
        value=_pair("", "</parameter>"),
        tag_end=">",
        trims_content=True,
        typing=_SCHEMA,
        parallel=_ITEMS,
    ),
)
"""MiniMax M2."""


def _dsml(block: str, space: str) -> Tools:
    return Tools(
        pb.TOOL_PARSER_DSML,
        pb.ToolSyntax(
            block=_pair(f"<｜DSML｜{space}{block}>", f"</｜DSML｜{space}{block}>"),
            call=_pair(f'<｜DSML｜{space}invoke name="', f"</｜DSML｜{space}invoke>"),
            name_end='"',
            key=_pair(f'<｜DSML｜{space}parameter name="', '"'),
            value=_pair("", f"</｜DSML｜{space}parameter>"),
            tag_end=">",
            tokens=["｜DSML｜"],
            typing=pb.VALUE_TYPING_ATTRIBUTE,
            string_attribute="string",
            argument_fields=["arguments", "input"],
            lead="\n\n",
            parallel=_ITEMS,
        ),
    )


DSML_FUNCTION_CALLS = _dsml("function_calls", "")
"""DeepSeek V3.2."""
DSML_TOOL_CALLS = _dsml("tool_calls", "")
"""DeepSeek V4."""
DSML_CALLS = _dsml("calls", " ")
"""DeepSeek V4.1."""

FENCED_SECTIONS = Tools(
    pb.TOOL_PARSER_SECTIONS,
    pb.ToolSyntax(
        block=_pair("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
        call=_pair("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"),
        call_type="function<｜tool▁sep｜>",
        name_end="\n",
        fence=_pair("```json\n", "\n```"),
        tokens=["<｜tool▁sep｜>"],
        separator="\n",
        typing=_JSON,
        parallel=_ITEMS,
    ),
)
"""DeepSeek V3 and R1."""

SECTIONS = Tools(
    pb.TOOL_PARSER_SECTIONS,
    pb.ToolSyntax(
        block=_pair("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
        call=_pair("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"),
        name_end="<｜tool▁sep｜>",
        typing=_JSON,
        parallel=_ITEMS,
    ),
)
"""DeepSeek V3.1."""

NUMBERED_SECTIONS = Tools(
    pb.TOOL_PARSER_SECTIONS,
    pb.ToolSyntax(
        block=_pair("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
        call=_pair("<|tool_call_begin|>", "<|tool_call_end|>"),
        name_end="<|tool_call_argument_begin|>",
        name_prefix="functions.",
        ordinal=":",
        typing=_JSON,
        parallel=_ITEMS,
    ),
)
"""Kimi K2."""

QUOTED_MAPPING = Tools(
    pb.TOOL_PARSER_QUOTED_MAPPING,
    pb.ToolSyntax(
        call=_pair("<|tool_call>", "<tool_call|>"),
        call_type="call:",
        quote='<|"|>',
        typing=_JSON,
        parallel=_REPEATED,
    ),
)
"""Gemma 4."""

ESCAPED_MAPPING = Tools(
    pb.TOOL_PARSER_QUOTED_MAPPING,
    pb.ToolSyntax(
        call=_pair("<start_function_call>", "<end_function_call>"),
        call_type="call:",
        quote="<escape>",
        typing=_JSON,
        parallel=_REPEATED,
    ),
)
"""FunctionGemma."""

XTML = Tools(
    pb.TOOL_PARSER_XTML,
    pb.ToolSyntax(
        block=_pair("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),
        call=_pair('<|open|>call tool="', "<|close|>call<|sep|>"),
        name_end='"',
        key=_pair('<|open|>argument key="', '"'),
        value=_pair("", "<|close|>argument<|sep|>"),
        tag_end="<|sep|>",
        tokens=["<|open|>", "<|close|>", "<|sep|>"],
        typing=pb.VALUE_TYPING_WIRE,
        type_attribute="type",
        parallel=_ITEMS,
    ),
)
"""Kimi K3."""

ATEM = Tools(
    pb.TOOL_PARSER_ATEM,
    pb.ToolSyntax(
        block=_pair("<atem:function_calls>", "</atem:function_calls>"),
        call=_pair('<atem:invoke name="', "</atem:invoke>"),
        name_end='"',
        key=_pair('<atem:parameter name="', '"'),
        value=_pair("", "</atem:parameter>"),
        tag_end=">",
        parallel=pb.PARALLEL_CALLS_FRAMES,
        frame=pb.FrameSyntax(
            start="<|start|>",
            role="assistant",
            recipient="to=",
            message="<|message|>",
            ends=["<|eom|>", "<|eot|>"],
            reasoning=["self"],
            visible=["user", "commentary"],
            generic_tool="tool",
        ),
        typing=_SCHEMA,
    ),
)
"""Muse."""

HARMONY = Tools(
    pb.TOOL_PARSER_HARMONY,
    pb.ToolSyntax(
        name_prefix="functions.",
        parallel=pb.PARALLEL_CALLS_FRAMES,
        frame=pb.FrameSyntax(
            start="<|start|>",
            role="assistant",
            channel="<|channel|>",
            recipient="to=",
            constrain="<|constrain|>",
            message="<|message|>",
            ends=["<|end|>", "<|call|>", "<|return|>"],
            reasoning=["analysis"],
            visible=["final", "commentary"],
        ),
        typing=_JSON,
    ),
)
"""gpt-oss."""
