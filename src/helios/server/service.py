"""What the server serves: one model, one engine, and the limits between them and the world."""

import asyncio
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from typing import Protocol, TypeVar

from helios.compile.report import StartupReport
from helios.contract.prepared import ServingDefaults
from helios.engine.messages import Event, Generate
from helios.frontend.model import Frontend
from helios.records import dataclass
from helios.server.admission import Admission
from helios.server.errors import UnknownModelError
from helios.server.mailbox import Bell, Mailbox
from helios.server.metrics import Metrics
from helios.server.settings import Limits

Prepared = TypeVar("Prepared")
Sink = Callable[[Sequence[Event]], None]


class EngineClient(Protocol):
    """What the server needs of an engine."""

    @property
    def healthy(self) -> bool:
        """Whether the worker runs."""

    def submit(self, request: Generate, sink: Sink) -> None:
        """Queue a request; the sink gets its events from the worker's thread. Raises
        `QueueFull`, `RequestError` for what is wrong in itself, `DeviceError` once unhealthy."""

    def cancel(self, id: int) -> None:
        """End a request's output; harmless where it has ended."""

    def stats(self) -> Mapping[str, float]:
        """Counters and gauges by name."""

    def now_ns(self) -> int:
        """The clock of token timestamps."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """The model under all its names; `context_tokens` and `numerics` are what was loaded."""

    id: str
    aliases: tuple[str, ...]
    context_tokens: int
    vocabulary: int
    defaults: ServingDefaults
    frontend: Frontend
    numerics: str = ""
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that a request may use."""
        return (self.id, *self.aliases)

    def check_name(self, name: str) -> None:
        """Raise `UnknownModelError` for a name that isn't this model's."""
        if name not in self.names:
            raise UnknownModelError(
                "is not served here",
                field="model",
                value=name,
                remedy=f"use {' or '.join(self.names)}",
            )


class Service:
    """One served model. Lives as long as the application; used by the event loop."""

    def __init__(
        self,
        model: ServedModel,
        engine: EngineClient,
        limits: Limits | None = None,
        startup: StartupReport | None = None,
    ) -> None:
        self.model = model
        self.engine = engine
        self.startup = startup or StartupReport()
        self.limits = limits or Limits()
        self.admission = Admission(self.limits.queue_capacity + self.limits.max_active)
        self.metrics = Metrics(engine, self.admission)
        self._numbers = itertools.count(1)
        self._workers = ThreadPoolExecutor(
            self.limits.frontend_workers, thread_name_prefix="helios-frontend"
        )
        self._bell: Bell | None = None

    def next_number(self) -> int:
        """A number that no request of this engine had before."""
        return next(self._numbers)

    def mailbox(self) -> Mailbox:
        """A mailbox that wakes the running loop."""
        if self._bell is None:
            self._bell = Bell(asyncio.get_running_loop())
        return Mailbox(self._bell)

    async def in_frontend(self, work: Callable[[], Prepared]) -> Prepared:
        """Run preparation in one of the frontend's threads, in order of arrival."""
        return await asyncio.get_running_loop().run_in_executor(self._workers, work)

    def close(self) -> None:
        """Stop the frontend's threads; the engine is its owner's to stop."""
        self._workers.shutdown(wait=False, cancel_futures=True)
