"""Syntaxes by the names that users give them, where they know better than the chat template."""

from helios.errors import ConfigurationError
from helios.ignition.preparation import syntaxes as s

NONE = "none"
"""The name that stands for no syntax at all."""

TOOL_SYNTAXES = {
    "function-tags": s.FUNCTION_TAGS,
    "json-tags": s.JSON_TAGS,
    "json-list-tags": s.JSON_LIST_TAGS,
    "argument-tags": s.ARGUMENT_TAGS,
    "compact-argument-tags": s.COMPACT_ARGUMENT_TAGS,
    "invoke-tags": s.INVOKE_TAGS,
    "llama-json": s.LLAMA_JSON,
    "pythonic": s.PYTHONIC,
    "mistral-list": s.MISTRAL_LIST,
    "mistral-named": s.MISTRAL_NAMED,
    "granite-list": s.GRANITE_LIST,
    "dsml-function-calls": s.DSML_FUNCTION_CALLS,
    "dsml-tool-calls": s.DSML_TOOL_CALLS,
    "dsml-calls": s.DSML_CALLS,
    "fenced-sections": s.FENCED_SECTIONS,
    "sections": s.SECTIONS,
    "numbered-sections": s.NUMBERED_SECTIONS,
    "quoted-mapping": s.QUOTED_MAPPING,
    "escaped-mapping": s.ESCAPED_MAPPING,
    "harmony": s.HARMONY,
    "atem": s.ATEM,
    "xtml": s.XTML,
}
REASONING_SYNTAXES = {
    "think": s.THINK,
    "inline-think": s.INLINE_THINK,
    "bracket-think": s.BRACKET_THINK,
    "thought-channel": s.THOUGHT_CHANNEL,
    "harmony": s.HARMONY_REASONING,
    "recipients": s.RECIPIENT_REASONING,
    "xtml-think": s.XTML_THINK,
}
WRITTEN_BY = {
    "function-tags": "Qwen3-Coder, Qwen3.5 and later",
    "json-tags": "Hermes, Qwen2.5, Qwen3, Granite 4",
    "json-list-tags": "SmolLM2, Granite 3.1",
    "argument-tags": "GLM-4.5, GLM-4.6",
    "compact-argument-tags": "GLM-4.7, GLM-5",
    "invoke-tags": "MiniMax M2",
    "llama-json": "Llama 3.1 and later 3",
    "pythonic": "Llama 3.2, Llama 4",
    "mistral-list": "Mistral, tokenizers up to version 7",
    "mistral-named": "Mistral, tokenizers from version 11",
    "granite-list": "Granite 3.0",
    "dsml-function-calls": "DeepSeek V3.2",
    "dsml-tool-calls": "DeepSeek V4",
    "dsml-calls": "DeepSeek V4.1",
    "fenced-sections": "DeepSeek V3, DeepSeek R1",
    "sections": "DeepSeek V3.1",
    "numbered-sections": "Kimi K2",
    "quoted-mapping": "Gemma 4",
    "escaped-mapping": "FunctionGemma",
    "harmony": "gpt-oss",
    "atem": "Muse",
    "recipients": "Muse",
    "xtml": "Kimi K3",
    "xtml-think": "Kimi K3",
    "think": "Qwen3, GLM, MiniMax, DeepSeek R1",
    "inline-think": "DeepSeek V3.1 and later, Kimi K2",
    "bracket-think": "Magistral, Mistral",
    "thought-channel": "Gemma 4",
}
"""Families that write a syntax, to help a user find it."""


def named_tools(name: str) -> s.Tools | None:
    """The tool syntax of a name; raises `ConfigurationError` for an unknown one."""
    if name == NONE:
        return None
    if name not in TOOL_SYNTAXES:
        raise _unknown("tool_syntax", name, TOOL_SYNTAXES)
    return TOOL_SYNTAXES[name]


def named_reasoning(name: str) -> s.Reasoning | None:
    """The reasoning syntax of a name; raises `ConfigurationError` for an unknown one."""
    if name == NONE:
        return None
    if name not in REASONING_SYNTAXES:
        raise _unknown("reasoning_syntax", name, REASONING_SYNTAXES)
    return REASONING_SYNTAXES[name]


def _unknown(
    field: str, name: str, known: "dict[str, s.Tools] | dict[str, s.Reasoning]"
) -> ConfigurationError:
    return ConfigurationError(
        "no such syntax", field=field, value=name, remedy=f"use {NONE} or one of {', '.join(known)}"
    )
