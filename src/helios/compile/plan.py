"""A compiled plan: every decision about a model on a device, frozen and hashed.

A plan's id is the SHA-256 of its canonical JSON. A plan can be had only from the compiler; one
that was written down is read back only by compiling again and comparing.
"""

from collections.abc import Mapping
from dataclasses import InitVar, field, fields
from functools import cached_property
from typing import Any, NoReturn

from helios.compile.canonical import digest, frozen, plain, to_json
from helios.compile.capabilities import DeviceDescriptor
from helios.compile.liveness import Placement
from helios.errors import CompileError, ForeignPlanError
from helios.records import dataclass

SEAL = object()
"""What the compiler passes to prove that it made the plan."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a loaded model is sized for.

    `context` tokens per sequence, `sequences` at once, `batch_tokens` in one step (at least one
    for each sequence), `pages` of attention history and `snapshots` continuation rows.
    """

    context: int
    sequences: int
    batch_tokens: int
    pages: int
    snapshots: int

    def __post_init__(self) -> None:
        for name in ("context", "sequences", "batch_tokens", "pages"):
            if getattr(self, name) < 1:
                raise CompileError("must be positive", field=name, value=getattr(self, name))
        if self.snapshots < 0:
            raise CompileError("can't be negative", field="snapshots", value=self.snapshots)
        if self.sequences > self.batch_tokens:
            raise CompileError(
                "a step has a token for every sequence",
                field="batch_tokens",
                value=self.batch_tokens,
                remedy=f"give at least {self.sequences}, or fewer sequences",
            )


@dataclass(frozen=True, slots=True)
class Rejection:
    """A provider that was not chosen, and why."""

    provider: str
    reason: str


@dataclass(frozen=True, slots=True)
class OpPlan:
    """The provider of an operation, why it was chosen, and what was rejected."""

    kind: str
    provider: str
    reason: str
    rejected: tuple[Rejection, ...]


@dataclass(frozen=True, slots=True)
class ProgramPlan:
    """One program: its extent capacities, providers, and the places of its values.

    `ops` follows the program's operations. `roles` names the values and buffers that a language
    model's driver knows by role. `retained` values keep their bytes to the end of a step.
    """

    name: str
    operation: str
    lengths: Mapping[str, int] = field(hash=False)
    roles: Mapping[str, str] = field(hash=False)
    ops: tuple[OpPlan, ...]
    placements: tuple[Placement, ...]
    retained: tuple[str, ...]
    arena_nbytes: int
    scratch_nbytes: int

    def __post_init__(self) -> None:
        for name in ("lengths", "roles"):
            object.__setattr__(self, name, frozen(getattr(self, name)))


@dataclass(frozen=True, slots=True)
class WeightPlan:
    """How one weight reaches the device.

    A mapped weight lies in the core's file and is used there; its bytes count as resident all
    the same. `bound` is the relative L2 error allowed to an approximate materializer.
    """

    name: str
    storage: str
    layout: str
    materializer: str
    exact: bool
    stored_nbytes: int
    nbytes: int
    mapped: bool
    bound: float | None = None


@dataclass(frozen=True, slots=True)
class BufferPlan:
    """One buffer: `copies` is the number of frames for transport and completion storage."""

    name: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    copies: int
    nbytes: int  # of all copies, each aligned


@dataclass(frozen=True, slots=True)
class Section:
    """A line of the memory table."""

    name: str
    nbytes: int


@dataclass(frozen=True)
class Plan:
    """Everything that loading will do. Sealed; `id` is the hash of all the rest."""

    seal: InitVar[object]
    device: DeviceDescriptor
    catalog: str  # fingerprint
    contract: str  # SHA-256 of the contract and the programs
    limits: Limits
    frames: int
    approximate: Mapping[str, float] = field(hash=False)
    retained: tuple[str, ...]
    copied: bool
    programs: tuple[ProgramPlan, ...]
    weights: tuple[WeightPlan, ...]
    buffers: tuple[BufferPlan, ...]
    sections: tuple[Section, ...]
    page_tokens: int
    arena_nbytes: int
    scratch_nbytes: int
    provider_nbytes: int
    staging_nbytes: int

    def __post_init__(self, seal: object) -> None:
        if seal is not SEAL:
            raise ForeignPlanError(
                "a plan comes from RuntimeComposition.compile alone", field="plan"
            )
        object.__setattr__(self, "approximate", frozen(self.approximate))

    def __reduce__(self) -> NoReturn:
        raise ForeignPlanError(
            "a plan is sealed", field="plan", remedy="send its JSON and read it back there"
        )

    def body(self) -> dict[str, Any]:
        """The plan as plain data without its id. Decisions that repeat are listed once."""
        # Most are the same object, and objects are told apart faster than decisions.
        known = {id(op): op for program in self.programs for op in program.ops}
        decisions = list(dict.fromkeys(known.values()))
        index = {decision: place for place, decision in enumerate(decisions)}
        place = {key: index[decision] for key, decision in known.items()}
        body = {f.name: plain(getattr(self, f.name)) for f in fields(self) if f.name != "programs"}
        body["decisions"] = plain(decisions)
        body["programs"] = [_program_body(program, place) for program in self.programs]
        return body

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, its id included."""
        return {"id": self.id, **self.body()}

    def to_json(self) -> str:
        """Canonical JSON: the same plan gives the same text."""
        return to_json(self.to_dict())

    @cached_property
    def id(self) -> str:
        """SHA-256 of the canonical JSON of everything else."""
        return digest(to_json(self.body()))

    def program(self, name: str) -> ProgramPlan:
        """The plan of the program of that name."""
        return next(p for p in self.programs if p.name == name)

    @property
    def total_nbytes(self) -> int:
        """All bytes the loaded model occupies, staging at load included."""
        return sum(section.nbytes for section in self.sections)


def _program_body(program: ProgramPlan, place: Mapping[int, int]) -> dict[str, Any]:
    body: dict[str, Any] = {
        f.name: plain(getattr(program, f.name)) for f in fields(program) if f.name != "ops"
    }
    body["ops"] = [place[id(op)] for op in program.ops]
    return body
