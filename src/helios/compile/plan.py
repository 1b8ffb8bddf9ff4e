"""A compiled plan: every decision about a model on a device, frozen and hashed.

A plan's id is the SHA-256 of its canonical JSON. It is read back only by compiling again and
comparing, never by trusting the text.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from helios.compile.capabilities import DeviceDescriptor
from helios.compile.demand import Demand, Workload
from helios.compile.liveness import Placement


@dataclass(frozen=True, slots=True)
class Limits:
    """What a loaded model is sized for.

    `context` tokens per sequence, `sequences` at once, `batch_tokens` in one step, `pages` of
    attention history and `snapshots` continuation rows.
    """

    context: int
    sequences: int
    batch_tokens: int
    pages: int
    snapshots: int


@dataclass(frozen=True, slots=True)
class Rejection:
    """A provider that was not chosen, and why."""

    provider: str
    reason: str


@dataclass(frozen=True, slots=True)
class OpPlan:
    """The provider of one operation, why it was chosen, and what was rejected."""

    index: int
    kind: str
    provider: str
    reason: str
    rejected: tuple[Rejection, ...]


@dataclass(frozen=True, slots=True)
class ProgramPlan:
    """One program: its extent capacities, providers, arena and scratch."""

    name: str
    operation: str
    lengths: Mapping[str, int]
    ops: tuple[OpPlan, ...]
    placements: tuple[Placement, ...]
    arena_nbytes: int
    scratch: Demand


@dataclass(frozen=True, slots=True)
class WeightPlan:
    """How one weight reaches the device. Identity weights are mapped and cost no memory twice."""

    name: str
    storage: str
    layout: str
    materializer: str
    exact: bool
    stored_nbytes: int
    nbytes: int
    mapped: bool


@dataclass(frozen=True, slots=True)
class BufferPlan:
    """One buffer: `copies` is the number of frames for transport and completion storage."""

    name: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    copies: int
    nbytes: int  # of all copies


@dataclass(frozen=True, slots=True)
class Section:
    """A line of the memory table."""

    name: str
    nbytes: int


@dataclass(frozen=True)
class Plan:
    """Everything that loading will do. Frozen; `id` is the hash of all the rest."""

    device: DeviceDescriptor
    catalog: str  # fingerprint
    contract: str  # SHA-256 of the contract and manifest
    limits: Limits
    programs: tuple[ProgramPlan, ...]
    weights: tuple[WeightPlan, ...]
    buffers: tuple[BufferPlan, ...]
    retained: tuple[str, ...]
    page_tokens: int
    page_nbytes: int
    sequence_nbytes: int
    snapshot_nbytes: int

    def to_json(self) -> str:
        """Canonical JSON: the same plan gives the same text."""
        return json.dumps(_plain(asdict(self)), sort_keys=True, separators=(",", ":"))

    @cached_property
    def id(self) -> str:
        """SHA-256 of the canonical JSON."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def program(self, name: str) -> ProgramPlan:
        """The plan of the program of that name."""
        return next(p for p in self.programs if p.name == name)

    def sections(self) -> tuple[Section, ...]:
        """Where the bytes go, in the order in which they are allocated."""
        by_kind: dict[str, int] = {}
        for buffer in self.buffers:
            by_kind[buffer.kind] = by_kind.get(buffer.kind, 0) + buffer.nbytes
        by_layout: dict[str, int] = {}
        for weight in self.weights:
            name = f"weights {weight.layout}" + (" (mapped)" if weight.mapped else "")
            by_layout[name] = by_layout.get(name, 0) + weight.nbytes
        return (
            *(Section(name, nbytes) for name, nbytes in sorted(by_layout.items())),
            Section("pages", by_kind.get("cache", 0)),
            Section("state rows", by_kind.get("state", 0)),
            Section("transport", by_kind.get("transport", 0) + by_kind.get("completion", 0)),
            Section("tuned choices", by_kind.get("tuned", 0)),
            Section("step arena", self.arena_nbytes),
            Section("scratch", self.scratch_nbytes),
        )

    @property
    def arena_nbytes(self) -> int:
        """Bytes of the arena that all programs share."""
        return max((p.arena_nbytes for p in self.programs), default=0)

    @property
    def scratch_nbytes(self) -> int:
        """Bytes of scratch that all programs share, at their full capacity."""
        return max(
            (
                p.scratch.nbytes(
                    Workload(
                        self.limits.context,
                        self.limits.context,
                        p.lengths.get("B", 1),
                        p.lengths.get("T", 1),
                        self.limits.pages,
                    )
                )
                for p in self.programs
            ),
            default=0,
        )

    @property
    def total_nbytes(self) -> int:
        """All bytes the loaded model occupies."""
        return sum(section.nbytes for section in self.sections())


def _plain(data: Any) -> Any:
    """Mappings in key order and tuples as lists, for canonical JSON."""
    if isinstance(data, Mapping):
        return {str(k): _plain(v) for k, v in data.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(v) for v in data]
    return data
