"""Server-sent events, and work that ends when its client goes.

The format: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, TypeVar

from starlette.types import Receive, Send

from helios.server.ingress import ClientGoneError

Result = TypeVar("Result")

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"
"""A comment, which readers of events skip and proxies take for a sign of life."""

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # proxies that buffer would hold tokens back
]


def event(data: bytes) -> bytes:
    """One event. JSON has no raw line breaks, so that one line holds it."""
    return b"data: " + data + b"\n\n"


class EventWriter:
    """Writes one event stream. `write` waits while the client reads slowly.

    Used as a context. A silence is broken by a comment before it has lasted `keep_alive` seconds;
    0 leaves it be.
    """

    def __init__(self, send: Send, keep_alive: float = 0.0) -> None:
        self._send = send
        self._keep_alive = keep_alive
        self._written = 0  # how many writes have begun
        self._writing = False
        self._keeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "EventWriter":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._rest()

    async def start(self) -> None:
        """Send the headers; from here on the status is 200 whatever happens."""
        await self._send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        if self._keep_alive > 0:
            self._keeper = asyncio.ensure_future(self._keep())

    async def write(self, data: bytes) -> None:
        """Send events."""
        self._written += 1
        self._writing = True
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
        self._writing = False

    async def end(self, data: bytes) -> None:
        """Send the last events and end the stream."""
        await self._rest()
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    async def _keep(self) -> None:
        """Look now and then whether anything was written since the last look, so that a write
        costs no timer."""
        seen = -1
        while True:
            await asyncio.sleep(self._keep_alive / 2)
            if self._written == seen and not self._writing:
                await self.write(KEEP_ALIVE)
            seen = self._written

    async def _rest(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)


async def attend(receive: Receive, work: Coroutine[Any, Any, Result]) -> Result:
    """Work's result; raises `ClientGoneError`, and cancels work, where the client leaves first.

    Called once the body has been read, so that all that can still arrive is the disconnect.
    """
    task = asyncio.ensure_future(work)
    watcher = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait((task, watcher), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientGoneError
    finally:
        task.cancel()
        watcher.cancel()
        await asyncio.gather(task, watcher, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
