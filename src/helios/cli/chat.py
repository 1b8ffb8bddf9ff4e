"""`helios chat`: talk to a server in the terminal."""

import sys
from typing import Annotated, Any

from helios.cli.client import ChatError, Server
from helios.cli.command import Argument, Option
from helios.cli.console import JsonFlag, err, out, print_error, print_json

HELP = "/clear forgets the conversation, /system TEXT sets the system prompt, /exit leaves"


def chat(
    prompt: Annotated[str, Argument(help="Ask this once; without it, converse.")] = "",
    url: Annotated[str, Option(help="Address of the server.")] = "http://127.0.0.1:8000",
    model: Annotated[str, Option(help="Model id; the server's first if left out.")] = "",
    system: Annotated[str, Option(help="System prompt.")] = "",
    temperature: Annotated[float | None, Option(help="Sampling temperature.")] = None,
    max_tokens: Annotated[int | None, Option(help="Most tokens of an answer.")] = None,
    seed: Annotated[int | None, Option(help="Seed, for answers that repeat.")] = None,
    api_key: Annotated[str, Option(env="HELIOS_API_KEY", help="Bearer key.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Talk to a server. Ctrl-C stops an answer, Ctrl-D leaves."""
    server = Server(url.rstrip("/"), api_key)
    settings = {"temperature": temperature, "max_tokens": max_tokens, "seed": seed}
    request: dict[str, Any] = {
        "model": model or server.models()[0],
        **{name: value for name, value in settings.items() if value is not None},
    }
    messages = [{"role": "system", "content": system}] if system else []
    if prompt:
        _ask_once(server, request, [*messages, {"role": "user", "content": prompt}], as_json)
    else:
        _converse(server, request, messages)


def _ask_once(
    server: Server, request: dict[str, Any], messages: list[dict[str, str]], as_json: bool
) -> None:
    answer = _answer(server, request | {"messages": messages}, show=not as_json)
    if as_json:
        print_json(answer)


def _converse(server: Server, request: dict[str, Any], messages: list[dict[str, str]]) -> None:
    if sys.stdin.isatty():
        import readline  # noqa: F401  (gives input() line editing and history)

        err.print(f"{request['model']} at {server.url}; {HELP}", style="dim", highlight=False)
    while (line := _read_line()) is not None:
        if line == "/exit":
            return
        if line == "/clear":
            messages = [m for m in messages if m["role"] == "system"]
        elif line.startswith("/system"):
            text = line.removeprefix("/system").strip()
            messages = [{"role": "system", "content": text}] if text else []
        elif line.startswith("/"):
            err.print(HELP, style="dim", highlight=False)
        elif line:
            messages = _turn(server, request, [*messages, {"role": "user", "content": line}])


def _turn(
    server: Server, request: dict[str, Any], messages: list[dict[str, str]]
) -> list[dict[str, str]]:
    """One exchange; a failed one leaves the conversation as it was before it."""
    try:
        answer = _answer(server, request | {"messages": messages}, show=True)
    except ChatError as error:
        print_error(error)
        return messages[:-1]
    return [*messages, {"role": "assistant", "content": answer["content"]}]


def _read_line() -> str | None:
    try:
        return input("> ").strip()
    except (EOFError, KeyboardInterrupt):
        return None


class _Answer:
    """An answer as it arrives."""

    def __init__(self, *, show: bool) -> None:
        self._show = show
        self._parts: dict[str, list[str]] = {"content": [], "reasoning_content": []}
        self.finish_reason: str | None = None
        self._usage: dict[str, Any] | None = None

    def take(self, chunk: dict[str, Any]) -> None:
        """Add a chunk, and print its text."""
        self._usage = chunk.get("usage") or self._usage
        for choice in chunk["choices"]:
            self.finish_reason = choice.get("finish_reason") or self.finish_reason
            for name, texts in self._parts.items():
                if text := choice["delta"].get(name):
                    texts.append(text)
                    self._print(text, "dim" if name == "reasoning_content" else None)

    def facts(self) -> dict[str, Any]:
        """The whole answer."""
        texts = {name: "".join(parts) for name, parts in self._parts.items()}
        return {**texts, "finish_reason": self.finish_reason, "usage": self._usage}

    def _print(self, text: str, style: str | None) -> None:
        if self._show:
            out.print(text, end="", style=style, markup=False, highlight=False, soft_wrap=True)


def _answer(server: Server, request: dict[str, Any], *, show: bool) -> dict[str, Any]:
    """Stream one answer to the terminal and return it whole."""
    answer = _Answer(show=show)
    stream = server.stream(request)
    try:
        for chunk in stream:
            answer.take(chunk)
    except KeyboardInterrupt:
        stream.close()
        answer.finish_reason = "cancelled"
    if show:
        out.print()
    return answer.facts()
