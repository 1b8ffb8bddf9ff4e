"""From the engine's worker thread to the event loop, with few wake-ups and no loss."""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from helios.engine.messages import Event

MOST_EVENTS = 1024  # presented in one go, so that a backlog can't hold up the loop


class Bell:
    """Wakes the loop once for all mailboxes that got something since it last looked.

    A step gives tokens to many responses; one wake-up a step costs less than one a response.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Mailbox] = deque()
        self._rung = False

    def ring(self, mailbox: "Mailbox") -> None:
        """Ask for a mailbox to be woken; from any thread.

        The mailbox is queued before the flag is read, and the loop clears the flag before it
        empties the queue: whichever comes first, the mailbox is seen.
        """
        self._waiting.append(mailbox)
        if not self._rung:
            self._rung = True
            with suppress(RuntimeError):  # the loop is closed: nobody is left to read
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._rung = False
        while self._waiting:
            self._waiting.popleft().wake()


class Mailbox:
    """One HTTP request's events: put by the worker, taken by the loop. Grows as events come; the
    request's own output limit bounds it."""

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        self._events: deque[Event] = deque()
        self._ready = asyncio.Event()

    def put(self, events: Sequence[Event]) -> None:
        """Take a step's events; from any thread, never blocking."""
        self._events.extend(events)
        self._bell.ring(self)

    def wake(self) -> None:
        """Let the reader go on; on the loop."""
        self._ready.set()

    async def take(self) -> list[Event]:
        """The events that have come; waits for at least one.

        A reader that always finds some still lets the loop's other work go on in between.
        """
        if self._events:
            await asyncio.sleep(0)
        while not self._events:
            self._ready.clear()
            await self._ready.wait()
        return [self._events.popleft() for _ in range(min(len(self._events), MOST_EVENTS))]
