"""Counters and gauges for Prometheus. Labels hold no identifiers, prompts or tokens."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from helios.server.admission import Admission

# Their creation times double the page and tell nothing that a restart does not.
disable_created_metrics()  # type: ignore[no-untyped-call]

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class EngineStats(Protocol):
    """What metrics read of an engine."""

    @property
    def healthy(self) -> bool:
        """Whether the worker runs."""

    def stats(self) -> Mapping[str, float]:
        """Counters and gauges by name; a counter's name ends with `_total`."""


class Metrics:
    """The server's own registry, so that two servers in one process don't mix."""

    def __init__(self, engine: EngineStats, admission: Admission) -> None:
        self._registry = CollectorRegistry()
        self.requests = self._counter("requests", "Requests by endpoint and outcome.", True)
        self.prompt_tokens = self._counter(
            "response_prompt_tokens", "Prompt tokens of whole responses."
        )
        self.reused_tokens = self._counter(
            "response_reused_tokens", "Prompt tokens whose computation was reused."
        )
        self.output_tokens = self._counter(
            "response_output_tokens", "Tokens sampled for whole responses."
        )
        self.first_token = self._histogram(
            "time_to_first_token_seconds", "From submission to the first token."
        )
        self.duration = self._histogram("request_seconds", "From arrival to the last byte.")
        self._registry.register(_ServerState(engine, admission))

    def render(self) -> bytes:
        """The text that Prometheus scrapes."""
        return generate_latest(self._registry)

    def _counter(self, name: str, text: str, labelled: bool = False) -> Counter:
        labels = ("endpoint", "outcome") if labelled else ()
        return Counter(f"helios_{name}", text, labels, registry=self._registry)

    def _histogram(self, name: str, text: str) -> Histogram:
        return Histogram(f"helios_{name}", text, registry=self._registry, buckets=_SECONDS)


class _ServerState(Collector):
    """Read when scraped."""

    def __init__(self, engine: EngineStats, admission: Admission) -> None:
        self._engine = engine
        self._admission = admission

    def collect(self) -> Iterator[Metric]:
        """The state now."""
        yield GaugeMetricFamily(
            "helios_requests_active", "Requests that hold a permit.", value=self._admission.active
        )
        yield GaugeMetricFamily(
            "helios_healthy", "Whether the engine runs.", value=float(self._engine.healthy)
        )
        for name, value in self._engine.stats().items():
            text = f"The engine's {name.replace('_', ' ')}."
            if name.endswith("_total"):
                yield CounterMetricFamily(f"helios_{name}", text, value=value)
            else:
                yield GaugeMetricFamily(f"helios_{name}", text, value=value)
