"""The engine: what servers talk to. Thread-safe; all work is the model worker's."""

import time
from collections.abc import Callable
from dataclasses import replace

from helios.engine.ingress import Ingress, QueueFull, Sink, Ticket
from helios.engine.messages import Generate
from helios.engine.stats import EngineStats, engine_stats
from helios.engine.worker import Worker
from helios.errors import ConfigurationError, DeviceError, RequestError
from helios.runtime.executor import StepExecutor
from helios.scheduler.policy import SchedulerPolicy
from helios.scheduler.request import HostMonitor, Request, check_request
from helios.scheduler.scheduler import Scheduler

MonitorFactory = Callable[[Generate], HostMonitor]
"""Makes the monitor of a request that has a grammar or stop strings, in the submitting thread."""

_DEFAULT_POLICY = SchedulerPolicy()


class Engine:
    """Serves one loaded model from its own thread; owns the executor from here on.

    `queue_capacity` bounds the ingress queue, and once more the scheduler's line. `clock` gives
    nanoseconds from some origin; it stamps tokens of requests that ask for it.
    """

    def __init__(
        self,
        executor: StepExecutor,
        *,
        queue_capacity: int,
        max_active: int = 0,
        monitor_factory: MonitorFactory | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
        policy: SchedulerPolicy = _DEFAULT_POLICY,
    ) -> None:
        if queue_capacity < 1:
            raise ConfigurationError(
                "the queue holds at least one request",
                field="queue_capacity",
                value=queue_capacity,
                remedy="use 1 or more",
            )
        self._geometry = executor.geometry
        self._monitor_factory = monitor_factory
        self._clock = clock
        self._ingress = Ingress(queue_capacity)
        self._rejected = 0
        if max_active:
            policy = replace(policy, max_active=max_active)
        self._worker = Worker(
            executor,
            Scheduler(executor.geometry, policy),
            self._ingress,
            line_capacity=queue_capacity,
            clock=clock,
        )
        self._worker.start()

    @property
    def healthy(self) -> bool:
        """Whether the worker runs and the device has neither failed nor lied."""
        return self._worker.alive and self._worker.fault is None

    @property
    def fault(self) -> str | None:
        """Why the engine is not healthy, where that is known."""
        return self._worker.fault

    def now_ns(self) -> int:
        """The clock of token timestamps."""
        return self._clock()

    def submit(self, request: Generate, sink: Sink) -> None:
        """Queue a request. Its sink gets lists of events from the worker's thread, the last of
        them a terminal one; requests that share a sink share its calls.

        Raises `QueueFull`, `RequestError` for a request that is wrong in itself, and
        `DeviceError` once the engine is unhealthy or closed. A request that could never fit
        gets `Failed` with `FailureKind.ADMISSION`.
        """
        if self._worker.fault is not None:
            raise DeviceError(self._worker.fault, remedy="restart the server")
        asked = _request(request, self._monitor(request))
        check_request(asked, self._geometry)
        try:
            self._ingress.put(Ticket(asked, sink, request.timestamps))
        except QueueFull:
            self._rejected += 1
            raise

    def cancel(self, id: int) -> None:
        """End a request's output; harmless where it has ended."""
        self._ingress.cancel(id)

    def stats(self) -> EngineStats:
        """Counters and gauges by name."""
        return engine_stats(self._worker, len(self._ingress), self._rejected)

    def close(self, drain_seconds: float = 0.0) -> None:
        """Take no more requests, let those that run go on for so long, then cancel the rest."""
        self._ingress.close("the engine is closed")
        if not self._worker.join(drain_seconds):
            self._worker.stop()
            self._worker.join()

    def _monitor(self, request: Generate) -> HostMonitor | None:
        if request.grammar is None and not request.stop_strings:
            return None
        if self._monitor_factory is None:
            raise RequestError(
                "this engine has no way to follow grammars or stop strings",
                field="grammar" if request.grammar is not None else "stop_strings",
                remedy="make it with a monitor factory",
            )
        return self._monitor_factory(request)


def _request(request: Generate, monitor: HostMonitor | None) -> Request:
    return Request(
        id=request.id,
        prompt=request.prompt,
        max_tokens=request.max_tokens,
        sampling=request.sampling,
        eos_tokens=request.eos_tokens,
        stop_tokens=request.stop_tokens,
        stop_sequences=request.stop_sequences,
        monitor=monitor,
        constrained=request.grammar is not None,
        prompt_logprobs=request.prompt_logprobs,
        priority=request.priority,
        use_cache=request.use_cache,
        cache_salt=request.cache_salt,
        boundaries=request.boundaries,
        images=request.images,
    )
