"""The CPU device: programs lowered to native steps over planned memory."""

from collections.abc import Mapping, Sequence

import numpy as np

from helios import _native
from helios.compile.accuracy import TensorError
from helios.compile.composition import CompiledModel, RuntimeComposition
from helios.compile.plan import Plan, ProgramPlan
from helios.errors import CompileError, ConfigurationError, DeviceError
from helios.program.extents import ROWS, SAMPLED, TOKENS
from helios.program.ir import Program
from helios.records import dataclass
from helios.runtime.cpu.catalog import catalog, descriptor, functions, materializers
from helios.runtime.cpu.lower import lifetimes, lower
from helios.runtime.cpu.lowering import Step
from helios.runtime.cpu.numerics import DEFAULT_NUMERICS, Numerics, profile
from helios.runtime.cpu.pages import key_planes
from helios.runtime.cpu.placement import PackedWeight, Placement, place
from helios.runtime.cpu.schedule import Schedule, schedule
from helios.runtime.cpu.tuning import measured
from helios.runtime.cpu.weights import PackedWeights, layouts
from helios.runtime.device import Progress, WeightSource
from helios.runtime.late import late_inputs
from helios.runtime.packing import PackedStep
from helios.runtime.storage import Storage

_NO_TRANSFERS = np.zeros((0, 3), dtype=np.int64)


class CpuRuntime:
    """The native kernels on some threads, in one numerical profile.

    `threads` None takes every processor that this process may use. Raises `ConfigurationError`
    for a count or profile that can't be had, or an instruction set forced in vain.
    """

    def __init__(self, threads: int | None = None, numerics: str = DEFAULT_NUMERICS) -> None:
        if threads is not None and not 1 <= threads <= 1024:
            raise ConfigurationError(
                "must lie between 1 and 1024", field="--threads", value=threads
            )
        self.threads = threads or _native.usable_processors()
        self.descriptor = descriptor(_native.isa(), numerics)
        self._numerics = profile(numerics)
        known = materializers()
        self._composition = RuntimeComposition(
            self, functions(), known, catalog(self.descriptor, known, self.threads)
        )

    def composition(self) -> RuntimeComposition:
        """The composition of this runtime with its own catalog."""
        return self._composition

    def load(
        self,
        compiled: CompiledModel,
        storage: Storage,
        weights: WeightSource,
        progress: Progress | None = None,
    ) -> "CpuRunner":
        """Pack all weights, lower every program for every frame.

        Raises `ForeignPlanError` for a model that another composition compiled and
        `AccuracyError` for an approximation beyond its bound.
        """
        compiled.require_composition(self._composition)
        executor = _native.Executor(self.threads)
        packed = PackedWeights(
            executor, compiled.plan.weights, compiled.contract, weights, progress
        )
        return CpuRunner(executor, compiled, storage, packed, self._numerics)


@dataclass(frozen=True, slots=True)
class LateInput:
    """The buffers that the host fills while a program runs, and where each frame waits for it."""

    buffers: frozenset[str]
    latches: Sequence[_native.Latch]


@dataclass(frozen=True, slots=True)
class Lowered:
    """A program's native steps and the capacities they were lowered for."""

    steps: list[Step]
    capacity: tuple[int, int, int]


class CpuRunner:
    """A plan's programs, loaded in the executor once per frame."""

    def __init__(
        self,
        executor: _native.Executor,
        compiled: CompiledModel,
        storage: Storage,
        weights: PackedWeights,
        numerics: Numerics,
    ) -> None:
        self._executor = executor
        self._storage = storage
        self._weights = weights
        self._loaded: dict[tuple[str, int], int] = {}
        scratch = storage.scratch
        self._latches = [_native.Latch() for _ in range(compiled.plan.frames)]
        late = LateInput(late_inputs(compiled.contract), self._latches)
        self._tuning = compiled.contract.tuning
        self._compiled, self._numerics = compiled, numerics
        self._keys = key_planes(compiled.programs)
        for program in compiled.programs:
            if program.name in self._tuning:
                continue
            frames = range(compiled.plan.frames)
            lowered = lower_program(
                program,
                compiled.plan,
                storage,
                frames,
                weights.by_name,
                numerics,
                self._keys,
                late,
            )
            for frame, steps in zip(frames, lowered, strict=True):
                self._loaded[program.name, frame] = executor.load(
                    steps.steps, steps.capacity, int(scratch.ctypes.data), scratch.nbytes
                )
        self.errors: Mapping[str, TensorError] = weights.errors

    @property
    def allocated_nbytes(self) -> int:
        """Packed weights, and workspace for which the planned scratch was too small."""
        return self._weights.nbytes + self._executor.allocated_bytes

    def run(self, step: PackedStep) -> None:
        """Run a packed step. Raises `DeviceError` where a frame's index is out of range."""
        loaded = self._loaded.get((step.program, step.frame))
        if loaded is None:
            raise DeviceError("no such program", field="step.program", value=step.program)
        extents = (step.lengths[ROWS], step.lengths[TOKENS], step.lengths[SAMPLED])
        self._executor.run(loaded, extents, _NO_TRANSFERS, _NO_TRANSFERS)

    def hold(self, frame: int) -> None:
        """Let a step of the frame wait at its first late input."""
        self._latches[frame].hold()

    def release(self, frame: int) -> None:
        """Let it go on."""
        self._latches[frame].release()

    def tune(self, program: str, budget: float) -> int:
        """Measure the choices of one tuning program on this executor's threads.

        It is loaded for this run only, in the memory that
        serving programs use later.
        """
        captured = next(p for p in self._compiled.programs if p.name == program)
        plan, weights = self._compiled.plan, self._weights.by_name
        (lowered,) = lower_program(
            captured, plan, self._storage, (0,), weights, self._numerics, self._keys
        )
        trials = np.zeros(len(lowered.steps), dtype=np.int64)
        steps = measured(
            lowered.steps, captured, self._compiled.programs, self._weights.by_name, budget, trials
        )
        scratch = self._storage.scratch
        loaded = self._executor.load(
            steps, lowered.capacity, int(scratch.ctypes.data), scratch.nbytes
        )
        self._executor.run(loaded, lowered.capacity, _NO_TRANSFERS, _NO_TRANSFERS)
        self._executor.unload(loaded)
        return int(trials.sum())

    def close(self) -> None:
        """Forget programs; memory goes with the last reference."""
        for loaded in self._loaded.values():
            self._executor.unload(loaded)
        self._loaded.clear()


def lower_program(
    program: Program,
    plan: Plan,
    storage: Storage,
    frames: Sequence[int],
    weights: Mapping[str, PackedWeight],
    numerics: Numerics,
    keys: frozenset[str],
    late: LateInput | None = None,
) -> list[Lowered]:
    """The native steps of one program, for each of the frames.

    Values that a plan retains keep their planned places and nothing is fused, so that every
    operation's result can be observed. Otherwise the fused program is placed anew inside the
    planned arena. `keys` names the planes of keys, and `late` is what programs of serving wait for.
    """
    program_plan = plan.program(program.name)
    fused = _fused(program, program_plan, plan.arena_nbytes, layouts(weights), numerics)
    nodes, offsets = fused or _as_planned(program, program_plan, layouts(weights), numerics)
    lengths = program_plan.lengths
    capacity = (lengths.get(ROWS, 0), lengths.get(TOKENS, 0), lengths.get(SAMPLED, 0))
    arena = int(storage.arena.ctypes.data)
    buffers = [buffer.name for buffer in program.buffers()]
    return [
        Lowered(
            lower(
                nodes,
                Placement(
                    arena=arena,
                    value_offset=offsets,
                    buffer_address={b: storage.address(b, frame) for b in buffers},
                    weights=weights,
                    keys=keys,
                    late=late.buffers if late else frozenset(),
                    latch=late.latches[frame].address if late else 0,
                ),
                lengths,
                numerics,
            ),
            capacity,
        )
        for frame in frames
    ]


def _fused(
    program: Program, plan: ProgramPlan, arena: int, known: Mapping[str, str], numerics: Numerics
) -> tuple[Schedule, Mapping[str, int]] | None:
    """The fused schedule and its places; None where values are observed or it needs more room."""
    if plan.retained:
        return None
    nodes = schedule(program, known, fuse=True, numerics=numerics)
    try:
        return nodes, place(lifetimes(nodes, plan.lengths), arena)
    except CompileError:
        return None


def _as_planned(
    program: Program, plan: ProgramPlan, known: Mapping[str, str], numerics: Numerics
) -> tuple[Schedule, Mapping[str, int]]:
    nodes = schedule(program, known, fuse=False, numerics=numerics)
    return nodes, {p.name: p.offset for p in plan.placements}
