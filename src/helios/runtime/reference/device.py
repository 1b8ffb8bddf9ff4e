"""The reference device: interprets programs over NumPy arrays."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.compile.accuracy import TensorError, require_accuracy
from helios.compile.composition import CompiledModel, RuntimeComposition
from helios.errors import DeviceError
from helios.program.ir import Buffer, BufferKind, Op, Program, Ref, Value, Weight
from helios.program.ops import OPS
from helios.runtime import late
from helios.runtime.device import Progress, WeightSource
from helios.runtime.packing import PackedStep
from helios.runtime.reference.catalog import DESCRIPTOR, catalog, functions
from helios.runtime.reference.materialize import materializers
from helios.runtime.storage import NUMPY_TYPES, Storage

Array = NDArray[Any]
Observer = Callable[[str, int, str, Array], None]


class ReferenceRuntime:
    """NumPy float32 on the host."""

    descriptor = DESCRIPTOR

    def __init__(self) -> None:
        known = materializers()
        self._composition = RuntimeComposition(self, functions(), known, catalog(known))
        self._materializers = known

    def composition(self) -> RuntimeComposition:
        """The composition of this runtime with its own catalog."""
        return self._composition

    def load(
        self,
        compiled: CompiledModel,
        storage: Storage,
        weights: WeightSource,
        progress: Progress | None = None,
    ) -> "ReferenceRunner":
        """Materialise all weights and bind the programs.

        Raises `ForeignPlanError` for a model that another composition compiled and
        `AccuracyError` for an approximation beyond its bound.
        """
        compiled.require_composition(self._composition)
        arrays: dict[str, Array] = {}
        errors: dict[str, TensorError] = {}
        total = sum(w.stored_nbytes for w in compiled.plan.weights)
        done = 0
        for plan in compiled.plan.weights:
            shape = compiled.contract.weights[plan.name].shape
            materialize = self._materializers[plan.materializer]
            arrays[plan.name], error = materialize(weights.weight(plan.name).data, shape)
            if not plan.exact:
                require_accuracy(plan, error)
                errors[plan.name] = error
            done += plan.stored_nbytes
            if progress is not None:
                progress(done, total)
        return ReferenceRunner(compiled, self._composition.registry, storage, arrays, errors)


class ReferenceRunner:
    """Runs programs operation by operation, each value in its planned place of the arena.

    `observer(program, op index, value name, array)`, if set, sees every result; what it writes
    into the array is what later operations read.
    """

    def __init__(
        self,
        compiled: CompiledModel,
        registry: Mapping[str, Callable[..., Any]],
        storage: Storage,
        weights: Mapping[str, Array],
        errors: Mapping[str, TensorError],
    ) -> None:
        self._programs = {p.name: p for p in compiled.programs}
        self._functions = {
            p.name: tuple(registry[op.provider] for op in p.ops) for p in compiled.plan.programs
        }
        self._offsets = {
            p.name: {place.name: place.offset for place in p.placements}
            for p in compiled.plan.programs
        }
        mapped = {w.name for w in compiled.plan.weights if w.mapped}
        self.allocated_nbytes = sum(a.nbytes for n, a in weights.items() if n not in mapped)
        self.errors = errors
        self._storage = storage
        self._weights = weights
        self._late = late.late_inputs(compiled.contract)
        self._supplied = [threading.Event() for _ in range(compiled.plan.frames)]
        for supplied in self._supplied:
            supplied.set()
        self.observer: Observer | None = None

    def run(self, step: PackedStep) -> None:
        """Interpret the step's program."""
        program: Program = self._programs[step.program]
        values: dict[str, Array] = {}
        for index, op in enumerate(program.ops):
            self._run_op(step, index, op, values)

    def hold(self, frame: int) -> None:
        """Let a step of the frame wait at its first late input."""
        self._supplied[frame].clear()

    def release(self, frame: int) -> None:
        """Let it go on."""
        self._supplied[frame].set()

    def tune(self, program: str, budget: float) -> int:
        """Write the neutral choices, which takes no trials."""
        self.run(PackedStep(program, 0, {}, ()))
        return 0

    def close(self) -> None:
        """Forget weights and programs."""
        self._weights = {}
        self._programs = {}

    def _run_op(self, step: PackedStep, index: int, op: Op, values: dict[str, Array]) -> None:
        operands = [self._fetch(ref, step, values) for ref in op.operands]
        operands += [None] * (len(OPS[op.kind].operands) - len(operands))
        found = self._functions[step.program][index](*operands, **op.attributes)
        results = found if isinstance(found, tuple) else (found,)
        for value, array in zip(op.results, results, strict=False):
            placed = self._place(step.program, value, array)
            values[value.name] = placed
            if self.observer is not None:
                self.observer(step.program, index, value.name, placed)

    def _place(self, program: str, value: Value, array: Array) -> Array:
        dtype = np.dtype(NUMPY_TYPES[value.type.dtype.text])
        offset = self._offsets[program][value.name]
        nbytes = array.size * dtype.itemsize
        placed = self._storage.arena[offset : offset + nbytes].view(dtype).reshape(array.shape)
        placed[...] = array
        return placed

    def _fetch(self, ref: Ref | None, step: PackedStep, values: dict[str, Array]) -> Array | None:
        if ref is None:
            return None
        if isinstance(ref, Value):
            return values[ref.name]
        if isinstance(ref, Weight):
            return self._weights[ref.name]
        if ref.name in self._late and not self._supplied[step.frame].wait(late.LATE_SECONDS):
            raise DeviceError(
                "the host did not supply late input while the step ran",
                field=f"{step.program}.{ref.name}",
            )
        array = self._storage.array(ref.name, step.frame)
        return _live(ref, array, step.lengths)


def _live(buffer: Buffer, array: Array, lengths: Mapping[str, int]) -> Array:
    """The part of a per-frame buffer that this step uses; persistent buffers whole."""
    if buffer.kind not in (BufferKind.TRANSPORT, BufferKind.COMPLETION):
        return array
    dims = zip(buffer.type.shape, array.shape, strict=True)
    return array[tuple(slice(lengths.get(d, n) if isinstance(d, str) else d) for d, n in dims)]
