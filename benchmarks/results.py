"""What a run found, as it is written to a file, and the comparisons drawn from it.

Only the standard library is used, since the chart is drawn in an environment of its own.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.spread import Spread, paired_ratio, spread

OURS = "helios"
BASE = "llama.cpp"


@dataclass(frozen=True, slots=True)
class Goal:
    """Ratios that Helios is to reach on some workloads, above 1 being ahead."""

    workloads: Sequence[str]
    to_base: float
    to_best: float | None = None


GOALS = (
    Goal(("pp512", "pp2000", "first.512", "first.2000"), 5.0, 2.0),
    Goal(("tg128", "http.1"), 1.6, 1.3),
    Goal(("http.8", "http.16", "http.32"), 6.0, 2.5),
    Goal(("start",), 1 / 1.2),
    Goal(("resident.busy",), 1 / 0.6),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a workload measures."""

    title: str
    unit: str
    more: bool


@dataclass(frozen=True, slots=True)
class Results:
    """One run. `values` holds samples by workload and peer, in the order of the repeats."""

    facts: Mapping[str, Any]
    workloads: Mapping[str, Measured]
    values: Mapping[str, Mapping[str, Sequence[float]]]

    def write(self, path: Path) -> None:
        """As JSON, with medians beside the samples for readers of the file."""
        content = {
            "facts": self.facts,
            "workloads": {
                name: {
                    **asdict(measured),
                    "peers": {
                        peer: {"median": spread(values).median, "values": list(values)}
                        for peer, values in self.values.get(name, {}).items()
                    },
                }
                for name, measured in self.workloads.items()
            },
        }
        path.write_text(json.dumps(content, indent=1) + "\n")


def read_results(path: Path) -> Results:
    """The inverse of `Results.write`."""
    content = json.loads(path.read_text())
    workloads = content["workloads"]
    return Results(
        content["facts"],
        {k: Measured(w["title"], w["unit"], w["more"]) for k, w in workloads.items()},
        {k: {p: v["values"] for p, v in w["peers"].items()} for k, w in workloads.items()},
    )


@dataclass(frozen=True, slots=True)
class Row:
    """One workload compared. A ratio above 1 says that Helios is ahead, whatever the unit."""

    name: str
    measured: Measured
    peers: Mapping[str, Spread]
    to_base: Spread | None
    to_best: Spread | None
    best: str


def rows(results: Results) -> list[Row]:
    """Every workload that was measured at all, in order."""
    return [
        _row(name, measured, results.values[name])
        for name, measured in results.workloads.items()
        if results.values.get(name)
    ]


def advantage(row: Row, peer: str) -> float | None:
    """How many times better a peer's median is than the base's; None without the two."""
    if peer not in row.peers or BASE not in row.peers:
        return None
    ratio = row.peers[peer].median / row.peers[BASE].median
    return ratio if row.measured.more else 1 / ratio


def goal(workload: str) -> Goal | None:
    """What is to be reached on a workload, if anything."""
    return next((goal for goal in GOALS if workload in goal.workloads), None)


def _row(name: str, measured: Measured, values: Mapping[str, Sequence[float]]) -> Row:
    peers = {peer: spread(samples) for peer, samples in values.items()}
    others = [peer for peer in peers if not is_ours(peer)]
    best = (max if measured.more else min)(others, key=lambda p: peers[p].median, default="")
    return Row(
        name,
        measured,
        peers,
        _ratio(measured, values, BASE),
        _ratio(measured, values, best),
        best,
    )


def is_ours(peer: str) -> bool:
    """Whether a name is Helios in some profile."""
    return peer == OURS or peer.startswith(f"{OURS}-")


def _ratio(measured: Measured, values: Mapping[str, Sequence[float]], peer: str) -> Spread | None:
    ours, theirs = values.get(OURS), values.get(peer)
    if not ours or not theirs:
        return None
    return paired_ratio(ours, theirs) if measured.more else paired_ratio(theirs, ours)
