"""Counters and gauges for Prometheus. Labels hold no identifiers, prompts or tokens.

They are counted plainly, by the event loop alone; Prometheus' own library, which takes long to
import, writes them down when they are asked for.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from helios.server.admission import Admission

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class EngineStats(Protocol):
    """What metrics read of an engine."""

    @property
    def healthy(self) -> bool:
        """Whether the worker runs."""

    def stats(self) -> Mapping[str, float]:
        """Counters and gauges by name; a counter's name ends with `_total`."""


class Count:
    """A number that grows, by the values of its labels."""

    def __init__(self, name: str, text: str, labels: tuple[str, ...] = ()) -> None:
        self.name = f"helios_{name}"
        self.text = text
        self.labels = labels
        self.values: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}

    def add(self, amount: float, *labels: str) -> None:
        """Count so much more."""
        self.values[labels] = self.values.get(labels, 0.0) + amount


class Spread:
    """How many observations fell between each two bounds, and their sum, in seconds."""

    def __init__(self, name: str, text: str) -> None:
        self.name = f"helios_{name}"
        self.text = text
        self.counts = [0] * (len(_SECONDS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Take an observation."""
        self.counts[bisect_left(_SECONDS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """How many observations were at most each bound."""
        below, found = 0, []
        bounds = [*(str(float(bound)) for bound in _SECONDS), "+Inf"]
        for bound, count in zip(bounds, self.counts, strict=True):
            below += count
            found.append((bound, float(below)))
        return found


class Metrics:
    """The server's own, so that two servers in one process don't mix."""

    def __init__(self, engine: EngineStats, admission: Admission) -> None:
        self._engine = engine
        self._admission = admission
        self.requests = Count(
            "requests", "Requests by endpoint and outcome.", ("endpoint", "outcome")
        )
        self.prompt_tokens = Count("response_prompt_tokens", "Prompt tokens of whole responses.")
        self.reused_tokens = Count(
            "response_reused_tokens", "Prompt tokens whose computation was reused."
        )
        self.output_tokens = Count("response_output_tokens", "Tokens sampled for whole responses.")
        self.first_token = Spread(
            "time_to_first_token_seconds", "From submission to the first token."
        )
        self.duration = Spread("request_seconds", "From arrival to the last byte.")

    def render(self) -> bytes:
        """The text that Prometheus scrapes."""
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator["Metric"]:
        """Everything, as it is now."""
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        for count in (self.requests, self.prompt_tokens, self.reused_tokens, self.output_tokens):
            family = CounterMetricFamily(count.name, count.text, labels=count.labels)
            for labels, value in count.values.items():
                family.add_metric(labels, value)
            yield family
        for spread in (self.first_token, self.duration):
            yield HistogramMetricFamily(
                spread.name, spread.text, buckets=spread.buckets(), sum_value=spread.total
            )
        yield from self._state()

    def _state(self) -> Iterator["Metric"]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

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
