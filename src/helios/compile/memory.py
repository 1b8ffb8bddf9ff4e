"""The memory of a compiled model as arithmetic: sections and peaks at any limits.

Nothing here depends on the limits a model was compiled at, so one compilation answers for all
limits, and compiling again at other limits gives exactly what was predicted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from math import prod

from helios.compile.canonical import frozen
from helios.compile.demand import Demand, Workload
from helios.compile.liveness import Arena, aligned
from helios.compile.plan import BufferPlan, Limits, Section, WeightPlan
from helios.contract.tensor import BufferKind, TensorType
from helios.errors import CompileError
from helios.program.extents import CONTINUATIONS, PAGES, ROWS, SAMPLED, SLOTS, TOKENS
from helios.program.ir import Program
from helios.records import dataclass

_SECTION_OF = {
    BufferKind.CACHE: "pages",
    BufferKind.STATE: "state rows",
    BufferKind.TRANSPORT: "transport",
    BufferKind.COMPLETION: "transport",
    BufferKind.TUNED: "tuned choices",
}
SNAPSHOTS = "snapshots"


@dataclass(frozen=True, slots=True)
class SymbolicBuffer:
    """A buffer of one type in all programs, and the programs (by place) that name it."""

    name: str
    kind: BufferKind
    type: TensorType
    copies: int
    programs: tuple[int, ...]

    @property
    def section(self) -> str:
        """The section of the memory table that the buffer counts in."""
        rows = self.type.shape[0] if self.type.shape else 0
        return SNAPSHOTS if rows == CONTINUATIONS else _SECTION_OF[self.kind]


@dataclass(frozen=True, slots=True)
class ProgramMemory:
    """What one program needs: the capacities of its extents, its arena and its scratch.

    `scratch` lists demands of operations that run one after another, so the largest counts;
    `held` lists, per provider, demands that last to the program's end, so the largest of each
    provider count together.
    """

    name: str
    capacities: Mapping[str, int] = field(hash=False)
    arena: Arena
    scratch: tuple[Demand, ...]
    held: tuple[tuple[Demand, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "capacities", frozen(self.capacities))

    def lengths(self, limits: Limits) -> dict[str, int]:
        """The most that each extent can be under the limits."""
        chosen = {
            ROWS: limits.sequences,
            SAMPLED: limits.sequences,
            TOKENS: limits.batch_tokens,
            SLOTS: limits.sequences,
            PAGES: limits.pages,
            CONTINUATIONS: limits.snapshots,
        }
        return {
            name: min(capacity, chosen.get(name, capacity)) if capacity else chosen[name]
            for name, capacity in self.capacities.items()
        }

    def scratch_nbytes(self, limits: Limits) -> int:
        """Scratch of a run at full capacity."""
        lengths = self.lengths(limits)
        rows = lengths.get(ROWS, 0)
        workload = Workload(
            limits.context, limits.context, rows, lengths.get(TOKENS, rows), limits.pages
        )
        groups = (self.scratch, *self.held)
        return sum(aligned(_largest(group, workload)) for group in groups)


def _largest(demands: tuple[Demand, ...], workload: Workload) -> int:
    return max((demand.nbytes(workload) for demand in demands), default=0)


def program_memory(
    program: Program,
    arena: Arena,
    scratch: tuple[Demand, ...],
    held: tuple[tuple[Demand, ...], ...] = (),
) -> ProgramMemory:
    """The memory of a program; `CompileError` where an extent has no stated capacity."""
    known = {ROWS, SAMPLED, TOKENS, SLOTS, PAGES, CONTINUATIONS}
    for extent in program.extents:
        if not extent.capacity and extent.name not in known:
            raise CompileError(
                "no capacity is stated for this extent",
                field=f"{program.name}.extents.{extent.name}",
                value=_inputs_of(program, extent.name),
                remedy="state one in the program; the compiler does not guess",
            )
    capacities = {extent.name: extent.capacity for extent in program.extents}
    return ProgramMemory(program.name, capacities, arena, scratch, held)


def _inputs_of(program: Program, extent: str) -> list[str]:
    return [b.name for b in program.buffers() if extent in b.type.shape]


@dataclass(frozen=True)
class MemoryModel:
    """All demand of a model on a device.

    `provider_data` holds bindings of all operations and persistent data of all providers;
    `staging_nbytes` is needed while weights are materialised. `copied_nbytes` are stored weights
    that the core keeps in private memory although they were materialised: nobody can give back
    a part of that.
    """

    weights: tuple[WeightPlan, ...]
    buffers: tuple[SymbolicBuffer, ...]
    programs: tuple[ProgramMemory, ...]
    provider_data: tuple[Demand, ...]
    staging_nbytes: int
    copied_nbytes: int
    page_tokens: int

    @cached_property
    def _like(self) -> Counter[tuple[str, TensorType, int, tuple[int, ...]]]:
        """How many buffers there are of each kind: the layers repeat the same few."""
        return Counter((b.section, b.type, b.copies, b.programs) for b in self.buffers)

    @cached_property
    def _tables(self) -> tuple[Section, ...]:
        """The sections of weights, which no limit changes."""
        sizes: dict[str, int] = {}
        for weight in self.weights:
            name = f"weights {weight.layout}" + (", mapped" if weight.mapped else "")
            sizes[name] = sizes.get(name, 0) + weight.nbytes
        return tuple(Section(name, nbytes) for name, nbytes in sorted(sizes.items()))

    def buffer_plans(self, limits: Limits) -> tuple[BufferPlan, ...]:
        """Every buffer at its planned shape."""
        lengths = [program.lengths(limits) for program in self.programs]
        return tuple(
            _buffer_plan(b, _largest_shape(b.type, b.programs, lengths)) for b in self.buffers
        )

    def arena_nbytes(self, limits: Limits) -> int:
        """Bytes of the arena that all programs share."""
        return max((p.arena.nbytes(p.lengths(limits)) for p in self.programs), default=0)

    def scratch_nbytes(self, limits: Limits) -> int:
        """Bytes of scratch that all programs share."""
        return max((p.scratch_nbytes(limits) for p in self.programs), default=0)

    def provider_nbytes(self, limits: Limits) -> int:
        """Bytes that providers keep for as long as the model is loaded."""
        workload = Workload(
            limits.context, limits.context, limits.sequences, limits.batch_tokens, limits.pages
        )
        return sum(aligned(demand.nbytes(workload)) for demand in self.provider_data)

    def sections(self, limits: Limits) -> tuple[Section, ...]:
        """The memory table.

        Weights are materialised before any storage is touched, so staging takes the room that
        storage takes later, and counts only as far as it exceeds that.
        """
        storage = dict.fromkeys(("pages", SNAPSHOTS, *_SECTION_OF.values()), 0)
        lengths = [program.lengths(limits) for program in self.programs]
        for (section, type_, copies, programs), count in self._like.items():
            one = _padded_nbytes(type_, _largest_shape(type_, programs, lengths))
            storage[section] += count * copies * one
        later = (
            *(Section(name, nbytes) for name, nbytes in storage.items()),
            Section("step arena", self.arena_nbytes(limits)),
            Section("scratch", self.scratch_nbytes(limits)),
        )
        staging = max(0, self.staging_nbytes - sum(section.nbytes for section in later))
        provider_data = Section("provider data", self.provider_nbytes(limits))
        copied = Section("copied core", self.copied_nbytes)
        return (*self._tables, copied, *later, provider_data, Section("staging", staging))

    def total_nbytes(self, limits: Limits) -> int:
        """All bytes at those limits."""
        return sum(section.nbytes for section in self.sections(limits))

    def peak_nbytes(self, workload: Workload) -> int:
        """Bytes the workload needs: a model sized for it and for nothing more."""
        return self.total_nbytes(self.limits_of(workload))

    def limits_of(self, workload: Workload) -> Limits:
        """The smallest limits that a workload can run under."""
        filled = workload.sequences * -(-workload.frontier // self.page_tokens)
        return Limits(
            context=workload.context,
            sequences=workload.sequences,
            batch_tokens=max(workload.tokens, workload.sequences),
            pages=workload.pages or filled,
            snapshots=0,
        )


def _largest_shape(
    type_: TensorType, programs: Sequence[int], lengths: Sequence[Mapping[str, int]]
) -> tuple[int, ...]:
    shapes = [type_.resolve(lengths[program]) for program in programs]
    return tuple(max(dims) for dims in zip(*shapes, strict=True))


def _padded_nbytes(type_: TensorType, shape: Sequence[int]) -> int:
    return aligned(type_.dtype.nbytes * prod(shape))


def _buffer_plan(buffer: SymbolicBuffer, shape: tuple[int, ...]) -> BufferPlan:
    return BufferPlan(
        name=buffer.name,
        kind=buffer.kind.name.lower(),
        dtype=buffer.type.dtype.text,
        shape=shape,
        copies=buffer.copies,
        nbytes=buffer.copies * _padded_nbytes(buffer.type, shape),
    )
