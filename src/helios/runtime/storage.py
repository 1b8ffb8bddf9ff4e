"""The memory of a loaded model on a host device, exactly as planned.

One block of fresh pages holds everything: each buffer of the plan (persistent and retained ones
once, the rest once per frame), then the step arena and the scratch that all programs share.
Pages come zeroed from the system and are committed when first touched. BF16 has no NumPy type
and is kept as its 16-bit patterns.
"""

import mmap
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.compile.liveness import aligned
from helios.compile.plan import BufferPlan, Plan
from helios.errors import DeviceError

Array = NDArray[Any]

NUMPY_TYPES: Mapping[str, type[np.generic]] = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": np.uint16,
    "i32": np.int32,
    "u32": np.uint32,
    "u64": np.uint64,
    "u8": np.uint8,
    "i64": np.int64,
}


class Storage:
    """All memory of a plan except its weights. `frames[i]` maps the buffers of frame i.

    `arena` holds the values of a step at the plan's placements; `scratch` is free between
    operations. Every array starts at a multiple of 64 bytes.
    """

    def __init__(self, plan: Plan) -> None:
        buffers = sum(buffer.nbytes for buffer in plan.buffers)
        self.allocated_nbytes = buffers + plan.arena_nbytes + plan.scratch_nbytes
        self._free = _reserve(self.allocated_nbytes)
        self.persistent: dict[str, Array] = {}
        self.frames: tuple[dict[str, Array], ...] = tuple({} for _ in range(plan.frames))
        for buffer in plan.buffers:
            if buffer.kind in ("transport", "completion") and buffer.copies > 1:
                for frame in self.frames:
                    frame[buffer.name] = self._carve(buffer)
            else:
                self.persistent[buffer.name] = self._carve(buffer)
        self.arena = self._take(plan.arena_nbytes)
        self.scratch = self._take(plan.scratch_nbytes)

    def array(self, name: str, frame: int) -> Array:
        """The array of that name as the given frame sees it."""
        found = self.frames[frame].get(name)
        return self.persistent[name] if found is None else found

    def address(self, name: str, frame: int) -> int:
        """Where that array begins."""
        return int(self.array(name, frame).ctypes.data)

    def _carve(self, buffer: BufferPlan) -> Array:
        dtype = np.dtype(NUMPY_TYPES[buffer.dtype])
        nbytes = prod(buffer.shape) * dtype.itemsize
        return self._take(aligned(nbytes))[:nbytes].view(dtype).reshape(buffer.shape)

    def _take(self, nbytes: int) -> Array:
        taken, self._free = self._free[:nbytes], self._free[nbytes:]
        return taken


def _reserve(nbytes: int) -> Array:
    try:
        block = mmap.mmap(-1, max(nbytes, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError, ValueError) as error:
        raise DeviceError(
            f"the system gives no memory: {error}",
            field="storage",
            value=nbytes,
            remedy="free memory, or load with smaller limits",
        ) from error
    return np.frombuffer(block, dtype=np.uint8)
