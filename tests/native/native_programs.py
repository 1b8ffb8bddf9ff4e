"""Running single operations, and small programs, through lowering and the native executor."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from native_tools import NO_TRANSFERS, Array, Packed, address, executor

from helios import _native
from helios.contract.operation import Operation
from helios.program.builder import ProgramBuilder
from helios.program.ir import BufferKind, DType, ExtentKind, Program, Ref
from helios.program.ops import OPS, WEIGHT, OperandSpec
from helios.runtime.cpu.lower import lifetimes, lower
from helios.runtime.cpu.numerics import PROFILES, Numerics
from helios.runtime.cpu.pages import key_planes
from helios.runtime.cpu.placement import PackedWeight, Placement, place
from helios.runtime.cpu.schedule import schedule

DTYPES = {
    np.dtype(np.float32): DType.F32,
    np.dtype(np.float16): DType.F16,
    np.dtype(np.uint16): DType.BF16,
    np.dtype(np.int32): DType.I32,
    np.dtype(np.uint32): DType.U32,
    np.dtype(np.uint64): DType.U64,
}
NUMPY = {dtype: array for array, dtype in DTYPES.items()}
# Leading dimensions that a submission chooses, by their names in the op table.
DYNAMIC = {"T": "T", "A": "T", "...": "T", "B": "B", "S": "S"}


class Bench:
    """Arrays, weights and a builder, bound to one executor."""

    def __init__(self, isa: str, threads: int = 1, numerics: Numerics = PROFILES["f32"]) -> None:
        self.executor = executor(isa, threads)
        self.numerics = numerics
        self.builder = ProgramBuilder("bench", Operation.PREFILL)
        for name in ("B", "T", "S"):
            self.builder.extent(name, ExtentKind.DYNAMIC, 1 << 12)
        self.arrays: dict[str, Array] = {}
        self.keys: frozenset[str] = frozenset()  # planes of them, whatever the program reads
        self.weights: dict[str, PackedWeight] = {}
        self._keep: list[Any] = []

    def buffer(self, name: str, array: Array, kind: BufferKind, lead: str | None) -> Ref:
        """Declare an array as a buffer whose first dimension is an extent, if `lead` says so."""
        array = np.ascontiguousarray(array)
        self.arrays[name] = array
        shape: tuple[int | str, ...] = array.shape
        if lead is not None:
            shape = (lead, *array.shape[1:])
        return self.builder.buffer(name, kind, DTYPES[array.dtype], shape)

    def vector(self, name: str, values: Array) -> Ref:
        """A weight as plain float32."""
        values = np.ascontiguousarray(values, dtype=np.float32)
        self._keep.append(values)
        rows = int(np.prod(values.shape[:-1]))
        self.weights[name] = PackedWeight(address(values), "flat", rows, values.shape[-1])
        return self.builder.weight(name, values.shape)

    def matrix(self, name: str, packed: Packed) -> Ref:
        """A weight in a layout of the kernels."""
        self._keep.append(packed)
        layout = packed.layout.lower()
        self.weights[name] = PackedWeight(address(packed.data), layout, packed.rows, packed.columns)
        return self.builder.weight(name, (packed.rows, packed.columns))

    def run(
        self, lengths: Mapping[str, int], *, fuse: bool = False, program: Program | None = None
    ) -> dict[str, Array]:
        """Run the program; returns every value that has a place, at those lengths."""
        program = program or self.builder.build()
        layouts = {name: weight.layout for name, weight in self.weights.items()}
        nodes = schedule(program, layouts, fuse=fuse, numerics=self.numerics)
        capacity = {"B": 0, "T": 0, "S": 0, **lengths}
        lives = lifetimes(nodes, capacity)
        offsets = place(lives, 1 << 30)
        size = max((offsets[life.name] + life.nbytes for life in lives), default=0)
        arena = _native.Memory(size + 64)
        placement = Placement(
            arena.address,
            offsets,
            {name: address(array) for name, array in self.arrays.items()},
            self.weights,
            key_planes([program]) | self.keys,
        )
        steps = lower(nodes, placement, capacity, self.numerics)
        extents = (capacity["B"], capacity["T"], capacity["S"])
        loaded = self.executor.load(steps, extents)
        self.executor.run(loaded, extents, NO_TRANSFERS, NO_TRANSFERS)
        self.executor.unload(loaded)
        found: dict[str, Array] = {}
        for value in program.values():
            if value.name in offsets:
                dtype = NUMPY[value.type.dtype]
                offset, nbytes = offsets[value.name], value.type.nbytes(capacity)
                raw = arena.view()[offset : offset + nbytes].copy()
                found[value.name] = raw.view(dtype).reshape(value.type.resolve(capacity))
        return found


def run_op(
    kind: str,
    *operands: Array | None,
    isa: str,
    threads: int = 1,
    numerics: Numerics = PROFILES["f32"],
    keys: frozenset[str] = frozenset(),
    **attributes: Any,
) -> tuple[Array, ...]:
    """One operation on arrays; writes to state, cache and completion arrays happen in place."""
    bench = Bench(isa, threads, numerics)
    bench.keys = keys
    lengths: dict[str, int] = {}
    refs = [
        None if array is None else _declare(bench, spec, array, lengths)
        for spec, array in zip(OPS[kind].operands, operands, strict=False)
    ]
    if "tokens" in attributes:
        lengths["T"] = int(np.sum(operands[0]))
    results = bench.builder.op(kind, *refs, **attributes)
    found = bench.run(lengths)
    for spec, array in zip(OPS[kind].operands, operands, strict=False):
        if array is not None and spec.name in bench.arrays:
            array[...] = bench.arrays[spec.name]
    return tuple(found[r.name] for r in results)


def _declare(bench: Bench, spec: OperandSpec, array: Array, lengths: dict[str, int]) -> Ref:
    if WEIGHT in spec.places:
        if array.ndim == 1:
            return bench.vector(spec.name, array)
        packed = Packed(bench.executor, "F32", array.view(np.uint8), array.shape[1])
        return bench.matrix(spec.name, packed)
    kind = BufferKind.TRANSPORT
    for candidate in (BufferKind.STATE, BufferKind.CACHE, BufferKind.COMPLETION):
        if candidate in spec.places:
            kind = candidate
    lead = spec.shape[0] if spec.shape else None
    extent = (
        DYNAMIC.get(str(lead)) if kind in (BufferKind.TRANSPORT, BufferKind.COMPLETION) else None
    )
    if extent is not None:
        lengths[extent] = array.shape[0]
    return bench.buffer(spec.name, array, kind, extent)
