"""Building blocks for tests of the native kernels: arrays with addresses, packed weights, steps."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from helios import _native

Array = NDArray[Any]
NO_TRANSFERS = np.zeros((0, 3), dtype=np.int64)
ISAS: tuple[str, ...] = tuple(_native.build_info()["isas"])
QUANTISED = [
    "Q4_0",
    "Q4_1",
    "Q5_0",
    "Q5_1",
    "Q8_0",
    "Q2_K",
    "Q3_K",
    "Q4_K",
    "Q5_K",
    "Q6_K",
    "IQ4_NL",
    "MXFP4",
]


@contextmanager
def forced_isa(name: str) -> Iterator[None]:
    before = os.environ.get("HELIOS_ISA")
    os.environ["HELIOS_ISA"] = name
    try:
        yield
    finally:
        if before is None:
            del os.environ["HELIOS_ISA"]
        else:
            os.environ["HELIOS_ISA"] = before


def executor(isa: str, threads: int = 1) -> _native.Executor:
    with forced_isa(isa):
        return _native.Executor(threads)


def stored(storage: str, rows: int, columns: int, rng: np.random.Generator) -> Array:
    """Random raw bytes of a stored matrix with sane scales, [rows, row bytes]."""
    if storage == "F32":
        return rng.standard_normal((rows, columns), dtype=np.float32).view(np.uint8)
    if storage == "F16":
        return rng.standard_normal((rows, columns)).astype(np.float16).view(np.uint8)
    if storage == "BF16":
        values = rng.standard_normal((rows, columns), dtype=np.float32)
        return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    kind = gguf.GGMLQuantizationType[storage]
    block, nbytes = gguf.GGML_QUANT_SIZES[kind]
    raw = rng.integers(0, 256, (rows, columns // block, nbytes), dtype=np.uint8)
    halves = {"Q4_1": (0, 2), "Q5_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q2_K": (80, 82)}
    halves |= {"Q3_K": (108,), "Q6_K": (208,)}
    if storage == "MXFP4":
        raw[..., 0] = rng.integers(120, 130, raw.shape[:2])
    else:
        for place in halves.get(storage, (0,)):
            scale = rng.uniform(-0.05, 0.05, raw.shape[:2]).astype(np.float16)
            raw[..., place : place + 2] = scale.view(np.uint8).reshape(*raw.shape[:2], 2)
    return raw.reshape(rows, -1)


def floats(storage: str, raw: Array) -> NDArray[np.float32]:
    """The values of a stored matrix, by the format's own library."""
    if storage == "F32":
        return raw.view(np.float32)
    if storage == "F16":
        return raw.view(np.float16).astype(np.float32)
    if storage == "BF16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    values: NDArray[np.float32] = gguf.dequantize(raw, gguf.GGMLQuantizationType[storage])
    return values


class Packed:
    """A stored matrix packed into a layout."""

    def __init__(
        self, runner: _native.Executor, storage: str, raw: Array, columns: int, layout: str = ""
    ) -> None:
        self.rows, self.columns = len(raw), columns
        self.layout = layout or _native.natural_layout(storage)
        self.number = _native.layout_number(self.layout)
        self.data = np.zeros(_native.packed_bytes(self.layout, self.rows, columns), dtype=np.uint8)
        source = np.ascontiguousarray(raw).reshape(-1)
        runner.pack(storage, self.layout, self.rows, columns, source, address(self.data))

    def floats(self) -> NDArray[np.float32]:
        out = np.empty((self.rows, self.columns), dtype=np.float32)
        _native.unpack(self.layout, self.rows, self.columns, self.data, out)
        return out


def address(array: Array | None) -> int:
    return 0 if array is None else int(array.ctypes.data)


def run(
    runner: _native.Executor,
    steps: Sequence[tuple[str, dict[str, Any]]],
    extents: tuple[int, int, int] = (0, 0, 0),
    capacity: tuple[int, int, int] | None = None,
) -> None:
    program = runner.load(list(steps), capacity or extents)
    runner.run(program, extents, NO_TRANSFERS, NO_TRANSFERS)
    runner.unload(program)


def linear_steps(
    x: Array,
    weights: Sequence[Packed],
    outs: Sequence[Array],
    planes: int = 1,
    biases: Sequence[Array | None] | None = None,
    residuals: Sequence[Array | None] | None = None,
    **more: Any,
) -> list[tuple[str, dict[str, Any]]]:
    """Quantisation (for `planes` > 0) and the product of x [T, K] with each weight."""
    none = [None] * len(weights)
    columns = x.shape[1]
    steps: list[tuple[str, dict[str, Any]]] = []
    linear: dict[str, Any] = {
        "count": "T",
        "columns": columns,
        "x": address(x),
        "weights": [address(w.data) for w in weights],
        "layouts": [w.number for w in weights],
        "rows": [w.rows for w in weights],
        "biases": [address(b) for b in biases or none],
        "residuals": [address(r) for r in residuals or none],
        "outs": [address(o) for o in outs],
    }
    if planes:
        region = {"region": 0, "planes": planes}
        steps.append(("quantise", {"count": "T", "x": address(x), "columns": columns, **region}))
        linear |= region
    steps.append(("linear", linear | more))
    return steps
