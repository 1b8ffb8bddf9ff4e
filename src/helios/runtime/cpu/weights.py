"""Weights in the layouts of the kernels, in one block of memory."""

from collections.abc import Mapping
from math import prod

import numpy as np

from helios import _native
from helios.compile.accuracy import TensorError, require_accuracy
from helios.compile.liveness import aligned
from helios.compile.plan import WeightPlan
from helios.contract.prepared import PreparedContract
from helios.runtime.cpu.placement import PackedWeight
from helios.runtime.device import Progress, WeightSource

_INTERLEAVED_ROWS = 16


class PackedWeights:
    """All weights of a plan. Mapped ones stay in the core's file, which must outlive this.

    `errors` tells what approximations did; one beyond its bound raises `AccuracyError`.
    """

    def __init__(
        self,
        executor: _native.Executor,
        plans: tuple[WeightPlan, ...],
        contract: PreparedContract,
        source: WeightSource,
        progress: Progress | None,
    ) -> None:
        shapes = {p.name: contract.weights[p.name].shape for p in plans}
        own = [p for p in plans if not p.mapped]
        self._memory = _native.Memory(sum(aligned(_nbytes(p, shapes[p.name])) for p in own))
        self._mapped: list[np.ndarray] = []
        self.nbytes = self._memory.nbytes
        self.by_name: dict[str, PackedWeight] = {}
        self.errors: dict[str, TensorError] = {}
        place = self._memory.address
        total, done = sum(p.stored_nbytes for p in plans), 0
        for plan in plans:
            shape = shapes[plan.name]
            stored = source.weight(plan.name).data
            data = np.frombuffer(stored, dtype=np.uint8)
            rows, columns = _matrix(shape)
            address = place
            if plan.mapped:
                address = self._keep(data)
            else:
                if plan.exact:
                    layout = plan.layout.upper()
                    executor.pack(plan.storage.upper(), layout, rows, columns, data, place)
                else:
                    self.errors[plan.name] = _transcode(executor, plan, columns, stored, place)
                place += aligned(_nbytes(plan, shape))
            self.by_name[plan.name] = PackedWeight(address, plan.layout, rows, columns)
            done += plan.stored_nbytes
            if progress is not None:
                progress(done, total)

    def _keep(self, data: np.ndarray) -> int:
        """The address of mapped float32 values; unaligned ones are copied."""
        if data.ctypes.data % 4:
            data = data.copy()
            self.nbytes += data.nbytes
        self._mapped.append(data)
        return int(data.ctypes.data)


def _transcode(
    executor: _native.Executor, plan: WeightPlan, columns: int, stored: memoryview, place: int
) -> TensorError:
    """Pack a tensor by way of 8-bit blocks, in pieces of whole interleaved rows."""
    from helios.runtime.transcode import BLOCK, Transcoder

    layout = plan.layout.upper()
    made = Transcoder(stored, plan.storage)
    row_blocks = columns // BLOCK
    for first, blocks in made.pieces(_INTERLEAVED_ROWS * row_blocks):
        address = place + _native.packed_bytes(layout, first // row_blocks, columns)
        flat = np.ascontiguousarray(blocks).reshape(-1)
        executor.pack("Q8_0", layout, len(blocks) // row_blocks, columns, flat, address)
    require_accuracy(plan, made.error)
    return made.error


def _matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns; a vector is one row."""
    return prod(shape[:-1]), shape[-1]


def _nbytes(plan: WeightPlan, shape: tuple[int, ...]) -> int:
    return _native.packed_bytes(plan.layout.upper(), *_matrix(shape))


def layouts(weights: Mapping[str, PackedWeight]) -> Mapping[str, str]:
    """The layout of every weight."""
    return {name: weight.layout for name, weight in weights.items()}
