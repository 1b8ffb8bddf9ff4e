"""Delivery: events to the sinks of their requests, one call a sink and step."""

from collections.abc import Callable, Sequence

import msgspec

from helios.engine.ingress import Sink, Ticket
from helios.scheduler.events import Event, Failed, Finished, Tokens


class Delivery:
    """Knows the open requests. A sink that raises is never called again for what it was told."""

    def __init__(self, clock: Callable[[], int], ended: Callable[[int], None]) -> None:
        self._clock = clock
        self._ended = ended
        self._open: dict[int, Ticket] = {}
        self._observed: set[int] = set()
        self.sink_errors = 0

    @property
    def open(self) -> Sequence[int]:
        """The ids of requests that have had no terminal event."""
        return tuple(self._open)

    def add(self, ticket: Ticket) -> None:
        """A request may have events from now on."""
        self._open[ticket.request.id] = ticket
        if ticket.timestamps:
            self._observed.add(ticket.request.id)

    def now(self) -> int | None:
        """The time of a completion, read only while someone wants it."""
        return self._clock() if self._observed else None

    def send(self, events: Sequence[Event], now: int | None = None) -> list[int]:
        """Deliver; returns the ids of requests whose sink failed, still open."""
        batches: dict[Sink, list[Event]] = {}
        for event in events:
            number = event.id
            ticket = self._open.get(number)
            if ticket is None:
                continue
            if now is not None and ticket.timestamps and isinstance(event, Tokens):
                event = msgspec.structs.replace(event, timestamps_ns=(now,) * len(event.tokens))
            batches.setdefault(ticket.sink, []).append(event)
            if isinstance(event, Finished | Failed):
                del self._open[number]
                self._observed.discard(number)
                self._ended(number)
        return [number for sink, batch in batches.items() for number in self._call(sink, batch)]

    def _call(self, sink: Sink, batch: list[Event]) -> list[int]:
        try:
            sink(batch)
        except Exception:  # a sink is foreign code: it may hurt its own requests
            self.sink_errors += 1
            return [event.id for event in batch if event.id in self._open]
        return []
