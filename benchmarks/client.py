"""A streaming client that costs little: the servers under test share its processors.

It speaks just enough HTTP/1.1 to post one completion a connection, and looks into an event only
until it has seen the first text.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

HOST = "127.0.0.1"


class ServerError(Exception):
    """A server answered with something else than a completion."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server to ask: what it calls the model, and fields of its own that it needs."""

    port: int
    model: str
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """When a request was sent, when its first text came and when its last byte, in seconds."""

    sent: float
    first: float
    last: float
    tokens: int


async def complete(target: Target, prompt: Sequence[int], tokens: int) -> Answer:
    """Continue a token list greedily by exactly `tokens` tokens, whatever they are.

    Raises `ServerError` if the server refuses or reports another number of tokens, and `OSError`
    if there is none.
    """
    body = {
        "model": target.model,
        "prompt": list(prompt),
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
        **target.extra,
    }
    sent = time.perf_counter()
    stream = EventStream()
    async for piece in _post(target.port, "/v1/completions", body):
        stream.feed(piece)
    last = time.perf_counter()
    made = stream.completion_tokens()
    if stream.first is None or made != tokens:
        raise ServerError(f"{tokens} tokens were asked for, {made} came")
    return Answer(sent, stream.first, last, made)


class EventStream:
    """Server-sent events as they arrive; remembers the first text and the last events."""

    def __init__(self) -> None:
        self.first: float | None = None
        self._rest = b""

    def feed(self, piece: bytes) -> None:
        """Take bytes of the body."""
        self._rest += piece
        if self.first is None:
            whole, _, rest = self._rest.rpartition(b"\n\n")
            if any(_has_text(event) for event in whole.split(b"\n\n")):
                self.first = time.perf_counter()
            else:
                self._rest = rest
        elif len(self._rest) > 1 << 16:
            self._rest = self._rest[-(1 << 14) :]

    def completion_tokens(self) -> int:
        """What the last event with a usage says; 0 if none does."""
        for event in reversed(self._rest.split(b"\n\n")):
            usage = _parsed(event).get("usage") if b'"usage"' in event else None
            if usage:
                return int(usage["completion_tokens"])
        return 0


def _has_text(event: bytes) -> bool:
    return any(choice.get("text") for choice in _parsed(event).get("choices", ()))


def _parsed(event: bytes) -> dict[str, Any]:
    name, _, data = event.strip().partition(b":")
    if name != b"data" or data.strip() == b"[DONE]":
        return {}
    parsed: dict[str, Any] = json.loads(data)
    return parsed


async def _post(port: int, path: str, body: Mapping[str, Any]) -> AsyncIterator[bytes]:
    """The pieces of the response's body as they arrive."""
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(HOST, port, limit=1 << 20)
    try:
        writer.write(head.encode() + content)
        answer = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in answer.split(b"\r\n", 1)[0]:
            raise ServerError((answer + await reader.read(2000)).decode(errors="replace"))
        chunked = b"transfer-encoding: chunked" in answer.lower()
        while piece := await (_chunk(reader) if chunked else reader.read(1 << 16)):
            yield piece
    finally:
        writer.close()


async def _chunk(reader: asyncio.StreamReader) -> bytes:
    size = int((await reader.readline()).split(b";")[0], 16)
    return (await reader.readexactly(size + 2))[:size]
