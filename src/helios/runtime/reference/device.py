"""The reference device: interprets programs over NumPy arrays."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from helios.compile.capabilities import (
    CapabilityCatalog,
    DeviceDescriptor,
    Layout,
    MaterializerKind,
    MaterializerSpec,
    ProviderSpec,
)
from helios.compile.composition import CompiledModel, RuntimeComposition
from helios.compile.demand import Demand
from helios.contract.kinds import WeightStorage
from helios.program.ir import Buffer, BufferKind, Op, Program, Ref, Value, Weight
from helios.program.ops import OPS, WEIGHT
from helios.runtime.device import Progress, WeightSource
from helios.runtime.packing import PackedStep
from helios.runtime.reference import network, sampling, state
from helios.runtime.storage import Storage

Array = NDArray[Any]
Observer = Callable[[str, int, str, Array], None]

DESCRIPTOR = DeviceDescriptor(kind="reference", isa="numpy", numerics="f32")

_MODULES = (network, sampling, state)
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    kind: next(getattr(m, kind) for m in _MODULES if hasattr(m, kind)) for kind in OPS
}


@dataclass(frozen=True, slots=True)
class Dequantise:
    """Turns a stored tensor into float32, exactly."""

    spec: MaterializerSpec

    def __call__(self, data: memoryview, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """The tensor's float32 values."""
        kind = gguf.GGMLQuantizationType[self.spec.storage.upper()]
        raw = np.frombuffer(data, dtype=np.uint8)
        if kind is gguf.GGMLQuantizationType.F32:
            return raw.view(np.float32).reshape(shape)
        block, nbytes = gguf.GGML_QUANT_SIZES[kind]
        rows = raw.reshape(-1, shape[-1] // block * nbytes)
        values: NDArray[np.float32] = gguf.dequantize(rows, kind)
        return np.ascontiguousarray(values.reshape(shape), dtype=np.float32)


def _materializers() -> dict[str, Dequantise]:
    found = {}
    for storage in WeightStorage:
        name = storage.name.lower()
        kind = MaterializerKind.IDENTITY if name == "f32" else MaterializerKind.REPACK
        spec = MaterializerSpec(f"reference.{name}", kind, name, "f32")
        found[spec.name] = Dequantise(spec)
    return found


def _catalog(materializers: Mapping[str, Dequantise]) -> CapabilityCatalog:
    providers = tuple(
        ProviderSpec(
            name=f"reference.{kind}",
            operation=kind,
            version=spec.version,
            weight_layouts={o.name: ("f32",) for o in spec.operands if WEIGHT in o.places},
            attributes={},
            scratch=Demand(),
        )
        for kind, spec in OPS.items()
    )
    return CapabilityCatalog(
        device=DESCRIPTOR,
        layouts=(Layout("f32", block=1, block_nbytes=4),),
        providers=providers,
        materializers=tuple(m.spec for m in materializers.values()),
    )


class ReferenceRuntime:
    """NumPy float32 on the host."""

    descriptor = DESCRIPTOR

    def composition(self) -> RuntimeComposition:
        """The composition of this runtime with its own catalog."""
        materializers = _materializers()
        registry = {f"reference.{kind}": function for kind, function in _FUNCTIONS.items()}
        return RuntimeComposition(self, registry, materializers, _catalog(materializers))

    def load(
        self,
        compiled: CompiledModel,
        storage: Storage,
        weights: WeightSource,
        progress: Progress | None = None,
    ) -> "ReferenceRunner":
        """Dequantise all weights and bind the programs."""
        materializers = _materializers()
        arrays: dict[str, Array] = {}
        total = sum(w.stored_nbytes for w in compiled.plan.weights)
        done = 0
        for plan in compiled.plan.weights:
            shape = compiled.contract.weights[plan.name].shape
            materialise = materializers[plan.materializer]
            arrays[plan.name] = materialise(weights.weight(plan.name).data, shape)
            done += plan.stored_nbytes
            if progress is not None:
                progress(done, total)
        return ReferenceRunner(compiled.programs, storage, arrays)


class ReferenceRunner:
    """Runs programs operation by operation.

    `observer(program, op index, value name, array)`, if set, sees every result.
    """

    def __init__(
        self, programs: tuple[Program, ...], storage: Storage, weights: Mapping[str, Array]
    ) -> None:
        self._programs = {p.name: p for p in programs}
        self._last_uses = {p.name: _last_uses(p) for p in programs}
        self._storage = storage
        self._weights = weights
        self.observer: Observer | None = None

    def run(self, step: PackedStep) -> None:
        """Interpret the step's program."""
        program = self._programs[step.program]
        values: dict[str, Array] = {}
        for index, op in enumerate(program.ops):
            self._run_op(step, index, op, values)
            for name in self._last_uses[program.name][index]:
                del values[name]

    def close(self) -> None:
        """Forget weights and programs."""
        self._weights = {}
        self._programs = {}

    def _run_op(self, step: PackedStep, index: int, op: Op, values: dict[str, Array]) -> None:
        operands = [self._fetch(ref, step, values) for ref in op.operands]
        operands += [None] * (len(OPS[op.kind].operands) - len(operands))
        found = _FUNCTIONS[op.kind](*operands, **op.attributes)
        results = found if isinstance(found, tuple) else (found,)
        for value, array in zip(op.results, results, strict=False):
            values[value.name] = array
            if self.observer is not None:
                self.observer(step.program, index, value.name, array)

    def _fetch(self, ref: Ref | None, step: PackedStep, values: dict[str, Array]) -> Array | None:
        if ref is None:
            return None
        if isinstance(ref, Value):
            return values[ref.name]
        if isinstance(ref, Weight):
            return self._weights[ref.name]
        array = self._storage.array(ref.name, step.frame)
        return _live(ref, array, step.lengths)


def _live(buffer: Buffer, array: Array, lengths: Mapping[str, int]) -> Array:
    """The part of a per-frame buffer that this step uses; persistent buffers whole."""
    if buffer.kind not in (BufferKind.TRANSPORT, BufferKind.COMPLETION):
        return array
    dims = zip(buffer.type.shape, array.shape, strict=True)
    return array[tuple(slice(lengths.get(d, n) if isinstance(d, str) else d) for d, n in dims)]


def _last_uses(program: Program) -> list[list[str]]:
    """Per operation, the values that nothing needs after it."""
    last: dict[str, int] = {}
    for index, op in enumerate(program.ops):
        for ref in (*op.operands, *op.results):
            if isinstance(ref, Value):
                last[ref.name] = index
    dead: list[list[str]] = [[] for _ in program.ops]
    for name, index in last.items():
        dead[index].append(name)
    return dead
