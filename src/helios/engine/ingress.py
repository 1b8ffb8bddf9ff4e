"""Ingress: the bounded queue between any thread that submits and the one worker that serves."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

from helios.errors import DeviceError, HeliosError, RequestError
from helios.records import dataclass
from helios.scheduler.events import Event
from helios.scheduler.request import Request

Sink = Callable[[Sequence[Event]], None]
"""Takes a step's events of one or more requests, from the worker's thread. Must not block."""


class QueueFull(HeliosError):
    """The ingress queue holds as many requests as it may."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """A request with what the worker needs to answer it."""

    request: Request
    sink: Sink
    timestamps: bool = False


@dataclass(frozen=True, slots=True)
class Commands:
    """What the worker is asked next. Withdrawn tickets were cancelled before it saw them."""

    tickets: list[Ticket]
    withdrawn: list[Ticket]
    cancels: list[int]
    closed: bool


class Ingress:
    """At most `capacity` requests wait here. Cancels are never refused and never pile up: they
    are kept for requests that are open, once each."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._changed = threading.Condition()
        self._queue: OrderedDict[int, Ticket] = OrderedDict()
        self._taken: set[int] = set()  # ids that the worker has and has not ended
        self._cancels: dict[int, None] = {}
        self._closed: str | None = None

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, ticket: Ticket) -> None:
        """Queue a request. Raises `QueueFull`, `RequestError` for an id in use, and
        `DeviceError` once closed."""
        number = ticket.request.id
        with self._changed:
            if self._closed is not None:
                raise DeviceError(self._closed, remedy="restart the server")
            if number in self._queue or number in self._taken:
                raise RequestError("the id is in use", field="id", value=number)
            if len(self._queue) >= self._capacity:
                raise QueueFull(
                    "too many requests wait",
                    field="queue_capacity",
                    value=self._capacity,
                    remedy="try again later",
                )
            self._queue[number] = ticket
            self._changed.notify()

    def cancel(self, number: int) -> None:
        """Ask for a request to be ended; ignored where it has ended or never was."""
        with self._changed:
            if number in self._queue or number in self._taken:
                self._cancels[number] = None
                self._changed.notify()

    def close(self, reason: str) -> None:
        """Take no more requests; the worker hears of it once it has taken the rest."""
        with self._changed:
            self._closed = self._closed or reason
            self._changed.notify()

    def take(self, room: int, *, block: bool) -> Commands:
        """Up to `room` requests in order, and every cancel. Waits for something if told to."""
        with self._changed:
            while block and not (self._queue or self._cancels or self._closed):
                self._changed.wait()
            withdrawn = [self._queue.pop(n) for n in list(self._cancels) if n in self._queue]
            cancels = [number for number in self._cancels if number in self._taken]
            self._cancels.clear()
            count = min(room, len(self._queue))
            tickets = [self._queue.popitem(last=False)[1] for _ in range(count)]
            self._taken.update(ticket.request.id for ticket in tickets)
            return Commands(tickets, withdrawn, cancels, self._closed is not None)

    def ended(self, number: int) -> None:
        """A request that was taken has had its terminal event."""
        with self._changed:
            self._taken.discard(number)
