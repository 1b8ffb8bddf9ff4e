"""Weights in the layouts of the kernels, in one block of memory."""

from collections.abc import Mapping
from math import prod

import numpy as np

from helios import _native
from helios.compile.liveness import aligned
from helios.compile.plan import WeightPlan
from helios.contract.prepared import PreparedContract
from helios.runtime.cpu.placement import PackedWeight
from helios.runtime.device import Progress, WeightSource


class PackedWeights:
    """All weights of a plan. Mapped ones stay in the core's file, which must outlive this."""

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
        place = self._memory.address
        total, done = sum(p.stored_nbytes for p in plans), 0
        for plan in plans:
            shape = shapes[plan.name]
            data = np.frombuffer(source.weight(plan.name).data, dtype=np.uint8)
            rows, columns = _matrix(shape)
            address = place
            if plan.mapped:
                address = self._keep(data)
            else:
                layout = plan.layout.upper()
                executor.pack(plan.storage.upper(), layout, rows, columns, data, place)
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


def _matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns; a vector is one row."""
    return prod(shape[:-1]), shape[-1]


def _nbytes(plan: WeightPlan, shape: tuple[int, ...]) -> int:
    return _native.packed_bytes(plan.layout.upper(), *_matrix(shape))


def layouts(weights: Mapping[str, PackedWeight]) -> Mapping[str, str]:
    """The layout of every weight."""
    return {name: weight.layout for name, weight in weights.items()}
