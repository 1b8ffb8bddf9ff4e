"""Server-sent events, and work that ends when its client goes.

The format: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive, Send

from helios.server.ingress import ClientGoneError

Result = TypeVar("Result")

DONE = b"data: [DONE]\n\n"

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # proxies that buffer would hold tokens back
]


def event(data: bytes) -> bytes:
    """One event. JSON has no raw line breaks, so that one line holds it."""
    return b"data: " + data + b"\n\n"


class EventWriter:
    """Writes one event stream. `write` waits while the client reads slowly."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def start(self) -> None:
        """Send the headers; from here on the status is 200 whatever happens."""
        await self._send({"type": "http.response.start", "status": 200, "headers": _HEADERS})

    async def write(self, data: bytes) -> None:
        """Send events."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes) -> None:
        """Send the last events and end the stream."""
        await self._send({"type": "http.response.body", "body": data, "more_body": False})


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
