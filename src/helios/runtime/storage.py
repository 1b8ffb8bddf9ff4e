"""The memory of a loaded model on a host device, exactly as planned.

Every buffer of the plan becomes one NumPy array of its planned shape: persistent and retained
ones once, the rest once per frame. BF16 has no NumPy type and is kept as its 16-bit patterns.
Fresh pages come zeroed from the system and are committed when first touched.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.compile.plan import BufferPlan, Plan

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

ALIGNMENT = 64


class Storage:
    """All buffers of a plan. `frames[i]` maps the names of per-frame buffers of frame i."""

    def __init__(self, plan: Plan) -> None:
        self.persistent: dict[str, Array] = {}
        self.frames: tuple[dict[str, Array], ...] = tuple({} for _ in range(_frames(plan)))
        for buffer in plan.buffers:
            if buffer.kind in ("transport", "completion") and buffer.copies > 1:
                for frame in self.frames:
                    frame[buffer.name] = _allocate(buffer)
            else:
                self.persistent[buffer.name] = _allocate(buffer)

    def array(self, name: str, frame: int) -> Array:
        """The array of that name as the given frame sees it."""
        found = self.frames[frame].get(name)
        return self.persistent[name] if found is None else found


def _frames(plan: Plan) -> int:
    return max((b.copies for b in plan.buffers), default=1)


def _allocate(buffer: BufferPlan) -> Array:
    dtype = np.dtype(NUMPY_TYPES[buffer.dtype])
    count = int(np.prod(buffer.shape, dtype=np.int64))
    raw = np.zeros(count * dtype.itemsize + ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + count * dtype.itemsize].view(dtype).reshape(buffer.shape)
