"""Which reasoning a chat template knows, and which of its variables switch it on and off."""

import re
from collections.abc import Mapping

from helios.frontend.template import Template
from helios.ignition.preparation import syntaxes as s
from helios.ignition.probe import ANSWER, QUESTION, THOUGHT, Message, rendered

# Whole envelopes of frames: their reasoning and their calls are one syntax.
FRAMES: tuple[tuple[tuple[str, ...], s.Tools, s.Reasoning], ...] = (
    (("<|channel|>", "<|message|>", "<|start|>"), s.HARMONY, s.HARMONY_REASONING),
    (("<atem:", "<|message|>", "<|start|>"), s.ATEM, s.RECIPIENT_REASONING),
    (("<|open|>", "<|close|>", "<|sep|>"), s.XTML, s.XTML_THINK),
)
_MARKED = (("[THINK]", s.BRACKET_THINK), ("<|channel>thought", s.THOUGHT_CHANNEL))
# `<think>`, and what others call it: `<seed:think>`, `<thought>`.
_TAG = re.compile(r"</?((?:[a-z]+:)?(?:think|thinking|thought|reasoning))>")
_SWITCHES = ("enable_thinking", "thinking", "enable_reasoning", "reasoning", "think")


def recognise_frames(template: Template) -> tuple[s.Tools, s.Reasoning] | None:
    """The syntax of frames that a template writes messages in, if it is one of those."""
    for spellings, tools, reasoning in FRAMES:
        if all(template.mentions(spelling) for spelling in spellings):
            return tools, reasoning
    return None


def recognise_reasoning(template: Template) -> s.Reasoning | None:
    """The delimiters of reasoning that a template names, or None where it names none.

    A template that only removes old reasoning names no more than the closer.
    """
    for spelling, reasoning in _MARKED:
        if template.mentions(spelling):
            return reasoning
    found = _TAG.search(template.source)
    if found is None:
        return None
    open, close = f"<{found[1]}>", f"</{found[1]}>"
    return s.think_tags(open, close, newlines=_wraps(template, open, close))


def thinking_switches(template: Template) -> tuple[str, ...]:
    """The truth-valued variables that make a difference to how a prompt ends or begins."""
    return tuple(
        name
        for name in _SWITCHES
        if template.mentions(name)
        and _prompt(template, {name: True}) != _prompt(template, {name: False})
    )


def _prompt(template: Template, arguments: Mapping[str, object]) -> str | None:
    return rendered(template, [QUESTION], opened=True, arguments=arguments)


def _wraps(template: Template, open: str, close: str) -> bool:
    """Whether newlines within the delimiters are no part of the reasoning.

    They are where the template writes them itself, or strips those that it is given. A template
    that writes no old reasoning shows no more than what it puts around the delimiters.
    """
    bare = _history(template, THOUGHT)
    if f"{open}{THOUGHT}{close}" in bare:
        return f"{open}{THOUGHT}{close}" in _history(template, f"\n{THOUGHT}\n")
    if f"{open}\n{THOUGHT}" in bare:
        return True
    return any(
        template.mentions(text)
        for newline in ("\n", "\\n")
        for text in (open + newline, newline + close)
    )


def _history(template: Template, thought: str) -> str:
    """A finished message with reasoning as the template renders it; '' where it refuses."""
    names = ("reasoning_content", "reasoning", "thinking")
    answer: Message = {"role": "assistant", "content": ANSWER, **dict.fromkeys(names, thought)}
    return rendered(template, [QUESTION, answer]) or ""
