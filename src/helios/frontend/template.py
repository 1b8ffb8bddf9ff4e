"""Chat templates: messages to the text of a prompt."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import jinja2

from helios.errors import ContractError, RequestError
from helios.frontend.sandbox import Sandbox, run_bounded

MAX_SOURCE = 1024 * 1024


class Template:
    """A compiled chat template. Immutable; may be shared by threads.

    `tokens` are the special tokens that the template may name, such as `bos_token`. Raises
    `ContractError` for a template that doesn't compile.
    """

    def __init__(self, source: str, tokens: Mapping[str, str] | None = None) -> None:
        if len(source) > MAX_SOURCE:
            raise _unreadable(f"it is longer than {MAX_SOURCE} characters")
        self.source = source
        self._tokens = dict(tokens or {})
        try:
            self._template = _environment().compile_template(source)
        except (jinja2.TemplateError, RecursionError) as error:
            raise _unreadable(str(error)) from error
        self.arguments_as_text: bool = self._needs_arguments_as_text()

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        arguments: Mapping[str, Any] | None = None,
    ) -> str:
        """The prompt's text. `arguments` are further variables that the request sets.

        Raises `RequestError` whatever goes wrong inside: a template refuses conversations that
        its model was not made for, and that is the request's to change.
        """
        variables: dict[str, Any] = {
            "documents": None,
            **self._tokens,
            **(arguments or {}),
            "messages": messages,
            "tools": tools,
            "add_generation_prompt": add_generation_prompt,
        }
        try:
            return run_bounded(self._template.generate(variables))
        except jinja2.TemplateError as error:
            raise _refusal(error.message or type(error).__name__) from error
        except Exception as error:  # a template can raise whatever Python can
            raise _refusal(f"{type(error).__name__}: {error}") from error

    def mentions(self, word: str) -> bool:
        """Whether the template's source has a word, and so may know what it stands for."""
        return word in self.source

    def _needs_arguments_as_text(self) -> bool:
        """Whether a call's arguments must be JSON text, because a mapping makes it fail."""
        if not self.mentions("arguments"):
            return False
        return not self._renders_call({"city": "Rome"}) and self._renders_call('{"city": "Rome"}')

    def _renders_call(self, arguments: object) -> bool:
        function = {"name": "weather", "arguments": arguments}
        call = {"id": "call_1", "type": "function", "function": function}
        conversation: list[dict[str, Any]] = [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "name": "weather", "tool_call_id": "call_1", "content": "dry"},
        ]
        try:
            self.render(conversation)
        except RequestError:
            return False
        return True


def _environment() -> Sandbox:
    environment = Sandbox()
    environment.add_filter("tojson", _to_json)
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as it is: Jinja's own filter would escape it for HTML."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(str(message))


def _strftime_now(pattern: str) -> str:
    return datetime.now().strftime(pattern)


def _refusal(message: str) -> RequestError:
    return RequestError(
        f"the chat template refuses this conversation: {message}",
        field="messages",
        remedy="change the messages to what the model's template accepts",
    )


def _unreadable(message: str) -> ContractError:
    return ContractError(
        f"the chat template can't be compiled: {message}",
        field="frontend.template_resource",
        remedy="prepare the core again with a template that compiles",
    )
