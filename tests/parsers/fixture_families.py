"""The syntaxes of the conformance suite's reference models, and their tokens."""

import re
from collections.abc import Sequence

from parser_runs import frontend

from helios.contract.syntax import PreparedFrontend
from helios.ignition.preparation import syntaxes as s

CHATML = ("<|im_start|>assistant\n", "<|im_end|>")
DEEPSEEK = ("<｜Assistant｜>", "<｜end▁of▁sentence｜>")
GLM = ("<|assistant|>", "<|user|>")
KIMI = ("<|im_assistant|>assistant<|im_middle|>", "<|im_end|>")
XTML_MESSAGE = ('<|open|>message role="assistant"<|sep|>', "<|end_of_msg|>")
LLAMA_3 = ("<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>")
LLAMA_4 = ("<|header_start|>assistant<|header_end|>\n\n", "<|eot|>")
MISTRAL = ("[/INST]", "</s>")
GEMMA = ("<|turn>model\n", "<turn|>")
FRAMES = ("<|start|>assistant", "<|end|>")

_FAMILIES: list[tuple[str, PreparedFrontend]] = [
    (r"Qwen3-Coder", frontend(s.FUNCTION_TAGS, None, CHATML)),
    (r"Qwen3\.", frontend(s.FUNCTION_TAGS, s.THINK, CHATML, calls_end_reasoning=True)),
    (r"Qwen3-.*Instruct-2507", frontend(s.JSON_TAGS, None, CHATML)),
    (r"Qwen3-", frontend(s.JSON_TAGS, s.THINK, CHATML, calls_end_reasoning=True)),
    (r"GLM-4\.5", frontend(s.ARGUMENT_TAGS, s.THINK, GLM, calls_end_reasoning=True)),
    (r"GLM-", frontend(s.COMPACT_ARGUMENT_TAGS, s.THINK, GLM, calls_end_reasoning=True)),
    (r"DeepSeek-V3-", frontend(s.FENCED_SECTIONS, None, DEEPSEEK)),
    (r"DeepSeek-V3\.1", frontend(s.SECTIONS, s.INLINE_THINK, DEEPSEEK)),
    (r"DeepSeek-V3\.2", frontend(s.DSML_FUNCTION_CALLS, s.INLINE_THINK, DEEPSEEK)),
    (r"DeepSeek-V4\.1", frontend(s.DSML_CALLS, s.INLINE_THINK, DEEPSEEK)),
    (r"DeepSeek-V4", frontend(s.DSML_TOOL_CALLS, s.INLINE_THINK, DEEPSEEK)),
    (r"Kimi-K3", frontend(s.XTML, s.XTML_THINK, XTML_MESSAGE)),
    (r"Kimi-K2-Instruct", frontend(s.NUMBERED_SECTIONS, None, KIMI)),
    (r"Kimi-K2", frontend(s.NUMBERED_SECTIONS, s.INLINE_THINK, KIMI, calls_end_reasoning=True)),
    (r"Llama-3", frontend(s.LLAMA_JSON, None, LLAMA_3)),
    (r"Llama-4", frontend(s.PYTHONIC, None, LLAMA_4)),
    (r"Mistral-7B", frontend(s.MISTRAL_LIST, None, MISTRAL)),
    (r"Magistral-Small-2506", frontend(s.MISTRAL_NAMED, s.INLINE_THINK, MISTRAL)),
    (r"Magistral|Reasoning", frontend(s.MISTRAL_NAMED, s.BRACKET_THINK, MISTRAL)),
    (r"Mistral|Ministral|Devstral", frontend(s.MISTRAL_NAMED, None, MISTRAL)),
    (r"gemma-4", frontend(s.QUOTED_MAPPING, s.THOUGHT_CHANNEL, GEMMA)),
    (r"gpt-oss", frontend(s.HARMONY, s.HARMONY_REASONING, FRAMES)),
]

NOT_TOKENS = {
    "qwen3-xml": ("<function=", "</function>", "<parameter=", "</parameter>"),
    "mistral": ("<think>", "</think>"),
}
"""Markers of the suite's families that their tokenizers spell in ordinary text."""

MORE_TOKENS = {
    "kimi": ("<|open|>", "<|close|>", "<|sep|>"),
    "deepseek": ("｜DSML｜",),
}


def frontend_of(model: str) -> PreparedFrontend:
    """The frontend facts of a reference model, as its recipe would declare them."""
    return next(facts for pattern, facts in _FAMILIES if re.search(pattern, model))


def special_tokens(family: str, markers: Sequence[str]) -> list[str]:
    """The spellings that are single tokens in a family's tokenizers."""
    absent = NOT_TOKENS.get(family, ())
    return [text for text in (*markers, *MORE_TOKENS.get(family, ())) if text not in absent]
