"""From a request's conversation to the tokens a model reads."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from helios.contract.syntax import PrefixBoundaryRule
from helios.errors import RequestError
from helios.frontend.boundaries import find_boundaries
from helios.frontend.declarations import definitions, normalise_tools
from helios.frontend.messages import MessageStyle, normalise_messages
from helios.frontend.parsing import ToolDefinition
from helios.frontend.template import Template
from helios.frontend.tokenizer import Tokenizer
from helios.records import dataclass

# Variables that the prompt path itself sets.
_RESERVED = frozenset({"messages", "tools", "add_generation_prompt", "continue_final_message"})
# No chat holds a private-use noncharacter pair, so that it marks where the last message ends.
_END_MARK = "\ufdd0\ufdef"


@dataclass(frozen=True, slots=True)
class ChatInput:
    """What a request says of its prompt, as it came."""

    messages: Sequence[Any]
    tools: Sequence[Any] | None = None
    use_tools: bool = True  # false for tool_choice "none"
    template_arguments: Mapping[str, Any] = field(default_factory=dict)
    enable_thinking: bool | None = None
    reasoning_effort: str | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model reads. `continues` says that the response continues a text in the prompt,
    so that its first space belongs to it; `boundaries` are token counts worth a snapshot."""

    text: str
    tokens: tuple[int, ...]
    continues: bool = True
    tools: tuple[ToolDefinition, ...] = ()
    boundaries: tuple[int, ...] = ()


class ContextLengthError(RequestError):
    """A prompt, or a prompt and its output, that doesn't fit the model's context."""


def check_length(tokenizer: Tokenizer, text: str, context: int, field: str) -> None:
    """Refuse a text that can't fit before time is spent on encoding it."""
    fewest = tokenizer.fewest_tokens(text)
    if fewest > context:
        raise ContextLengthError(
            f"the prompt has more than {fewest} tokens; this model's context holds {context}",
            field=field,
            value=len(text),
            remedy="send less text",
        )


class ChatPrompts:
    """Prepares chat prompts for one model. Immutable; may be shared by threads.

    `thinking_switches` are the template variables that switch reasoning on and off;
    `boundary_rules` say after which messages a prompt's prefix is worth a snapshot.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        template: Template,
        *,
        thinking_switches: Sequence[str] = (),
        boundary_rules: Sequence[PrefixBoundaryRule] = (),
        tools_supported: bool = False,
    ) -> None:
        self._tokenizer = tokenizer
        self._template = template
        self._tools_supported = tools_supported
        switches = list(thinking_switches)
        if not switches and template.mentions("enable_thinking"):
            switches.append("enable_thinking")
        self._switches = tuple(switches)
        self._boundary_rules = tuple(boundary_rules)
        self._style = _style(template)

    def prepare(self, chat: ChatInput, context: int) -> Prompt:
        """Render and encode; raises `RequestError` for what can't be rendered, or is sure not
        to fit `context` tokens."""
        messages = normalise_messages(chat.messages, self._style)
        tools = self._tools(chat)
        arguments = {**self._thinking(chat), **_checked_arguments(chat.template_arguments)}
        options: dict[str, Any] = {"tools": tools or None, "arguments": arguments}
        text = self._render(chat, messages, options)
        check_length(self._tokenizer, text, context, "messages")
        tokens, ends = self._encode(text)
        if not tokens:
            raise RequestError("the prompt is empty", field="messages", remedy="send some text")

        def render(head: Sequence[Mapping[str, Any]], prompted: bool) -> str:
            return self._template.render(head, add_generation_prompt=prompted, **options)

        return Prompt(
            text,
            tuple(tokens),
            continues=chat.continue_final_message,
            tools=definitions(tools),
            boundaries=find_boundaries(self._boundary_rules, messages, render, text, ends),
        )

    def _encode(self, text: str) -> tuple[list[int], list[int]]:
        """Tokens, and where they end if any rule asks for it."""
        if not self._boundary_rules:
            return self._tokenizer.encode(text), []
        return self._tokenizer.encode_with_ends(text)

    def _render(
        self, chat: ChatInput, messages: list[dict[str, Any]], options: dict[str, Any]
    ) -> str:
        if not chat.continue_final_message:
            wanted = chat.add_generation_prompt
            prompted = True if wanted is None else wanted
            return self._template.render(messages, add_generation_prompt=prompted, **options)
        _check_continuation(chat, messages)
        last = {**messages[-1], "content": messages[-1]["content"] + _END_MARK}
        text = self._template.render([*messages[:-1], last], add_generation_prompt=False, **options)
        head, mark, _ = text.rpartition(_END_MARK)
        if not mark:
            raise RequestError(
                "the chat template does not render the final message as it is",
                field="continue_final_message",
                value=True,
                remedy="leave it out and add a user message",
            )
        return head

    def _tools(self, chat: ChatInput) -> list[dict[str, Any]]:
        tools = normalise_tools(chat.tools)
        if tools and chat.use_tools and not self._tools_supported:
            raise RequestError(
                "this model has no tool syntax",
                field="tools",
                remedy="leave the tools out, or serve a model that was prepared with one",
            )
        return tools if chat.use_tools else []

    def _thinking(self, chat: ChatInput) -> dict[str, Any]:
        """Template variables for the request's wish to reason or not, and how much."""
        effort = chat.reasoning_effort
        wanted = chat.enable_thinking
        if wanted is None and effort is not None:
            wanted = effort != "none"
        arguments: dict[str, Any] = {}
        if effort is not None and self._template.mentions("reasoning_effort"):
            arguments["reasoning_effort"] = effort
        elif wanted and not self._switches:
            raise RequestError(
                "this model has no reasoning to switch on",
                field="enable_thinking" if chat.enable_thinking else "reasoning_effort",
                value=chat.enable_thinking or effort,
                remedy="leave it out",
            )
        if wanted is not None:
            arguments.update(dict.fromkeys(self._switches, wanted))
        return arguments


def _style(template: Template) -> MessageStyle:
    names = ("reasoning_content", "reasoning", "thinking")
    return MessageStyle(
        developer_role=template.mentions("developer"),
        arguments_as_text=template.arguments_as_text,
        reasoning_name=next(
            (name for name in names if template.mentions(f".{name}") or _indexed(template, name)),
            names[0],
        ),
    )


def _indexed(template: Template, name: str) -> bool:
    return template.mentions(f"'{name}'") or template.mentions(f'"{name}"')


def _checked_arguments(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in arguments:
        if name in _RESERVED:
            raise RequestError(
                "is set by the request itself",
                field=f"chat_template_kwargs.{name}",
                remedy=f"use the request's own {name}",
            )
    return arguments


def _check_continuation(chat: ChatInput, messages: list[dict[str, Any]]) -> None:
    if chat.add_generation_prompt:
        raise RequestError(
            "excludes continue_final_message",
            field="add_generation_prompt",
            value=True,
            remedy="set one of the two",
        )
    last = messages[-1]
    if last["role"] != "assistant" or "tool_calls" in last:
        raise RequestError(
            "needs a final assistant message without tool calls",
            field="continue_final_message",
            value=True,
            remedy="end the conversation with the text to continue",
        )
