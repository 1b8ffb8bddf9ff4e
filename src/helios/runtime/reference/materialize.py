"""Materializers of the reference device: exact float32, and 8-bit blocks if they are asked for.

Tensors are worked through a few rows at a time, so that what is needed beside the stored and the
finished tensor stays within `STAGING_NBYTES` however large the tensor is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import gguf
import numpy as np
from numpy.typing import NDArray

from helios.compile.accuracy import TensorError
from helios.compile.capabilities import Layout, MaterializerKind, MaterializerSpec
from helios.contract.kinds import WeightStorage

Array = NDArray[Any]
Floats = NDArray[np.float32]

F32 = Layout("f32", block=1, block_nbytes=4)
W8 = Layout("w8", block=32, block_nbytes=34)  # signed 8-bit with an f16 scale, as Q8_0

STAGING_NBYTES = 1 << 20
# The library's decoders keep up to a dozen arrays of a piece's size at a time.
_PIECE_ELEMENTS = STAGING_NBYTES // (16 * 4)


class Materialize(Protocol):
    """One way to get a stored tensor into a layout."""

    @property
    def spec(self) -> MaterializerSpec:
        """What it turns into what."""

    def __call__(self, data: memoryview, shape: tuple[int, ...]) -> tuple[Array, TensorError]:
        """The tensor in its layout, and the error that was made."""


@dataclass(frozen=True, slots=True)
class View:
    """Stored float32, used where it lies."""

    spec: MaterializerSpec

    def __call__(self, data: memoryview, shape: tuple[int, ...]) -> tuple[Array, TensorError]:
        """A view of the stored bytes."""
        return np.frombuffer(data, dtype=np.float32).reshape(shape), TensorError(0.0, 0)


@dataclass(frozen=True, slots=True)
class Dequantise:
    """Any stored type as float32, exactly."""

    spec: MaterializerSpec

    def __call__(self, data: memoryview, shape: tuple[int, ...]) -> tuple[Array, TensorError]:
        """A new float32 array."""
        values = np.empty(shape, dtype=np.float32)
        rows = values.reshape(-1, shape[-1])
        for place, piece in decoded(data, self.spec.storage, shape[-1]):
            rows[place : place + len(piece)] = piece
        return values, TensorError(0.0, 0)


@dataclass(frozen=True, slots=True)
class Quantise:
    """A stored floating-point type as 8-bit blocks, approximately."""

    spec: MaterializerSpec

    def __call__(self, data: memoryview, shape: tuple[int, ...]) -> tuple[Array, TensorError]:
        """New blocks, [rows, bytes of a row]."""
        blocks = np.empty((_count(shape[:-1]), shape[-1] // W8.block * W8.block_nbytes), np.uint8)
        difference = total = 0.0
        broken = 0
        for place, exact in decoded(data, self.spec.storage, shape[-1]):
            sound = np.isfinite(exact)
            broken += exact.size - int(np.count_nonzero(sound))
            finite = np.where(sound, exact, np.float32(0))
            piece = gguf.quantize(finite, gguf.GGMLQuantizationType.Q8_0)
            blocks[place : place + len(exact)] = piece
            made = from_blocks(piece)
            broken += int(np.count_nonzero(~np.isfinite(made)))
            difference += float(np.square(made - finite, dtype=np.float64).sum())
            total += float(np.square(finite, dtype=np.float64).sum())
        return blocks, TensorError((difference / total) ** 0.5 if total else 0.0, broken)


def from_blocks(blocks: Array) -> Floats:
    """The float32 values of rows of 8-bit blocks."""
    values: Floats = gguf.dequantize(blocks, gguf.GGMLQuantizationType.Q8_0)
    return values


def decoded(data: memoryview, storage: str, columns: int) -> Iterator[tuple[int, Floats]]:
    """Stored rows as float32, a bounded piece at a time: the first row's place and the rows."""
    kind = gguf.GGMLQuantizationType[storage.upper()]
    block, nbytes = gguf.GGML_QUANT_SIZES[kind]
    rows = np.frombuffer(data, dtype=np.uint8).reshape(-1, columns // block * nbytes)
    step = max(1, _PIECE_ELEMENTS // columns)
    for place in range(0, len(rows), step):
        yield place, gguf.dequantize(rows[place : place + step], kind)


def materializers() -> Mapping[str, Materialize]:
    """Every materializer by name."""
    found: list[Materialize] = []
    for storage in WeightStorage:
        name = storage.name.lower()
        if storage is WeightStorage.F32:
            spec = MaterializerSpec("reference.f32", MaterializerKind.IDENTITY, name, F32.name)
            found.append(View(spec))
        else:
            found.append(Dequantise(_spec(f"reference.{name}", MaterializerKind.REPACK, name, F32)))
    for name in ("f32", "f16", "bf16"):
        spec = _spec(f"reference.{name}-w8", MaterializerKind.TRANSCODE, name, W8)
        found.append(Quantise(spec))
    return {materialize.spec.name: materialize for materialize in found}


def _spec(name: str, kind: MaterializerKind, storage: str, layout: Layout) -> MaterializerSpec:
    return MaterializerSpec(name, kind, storage, layout.name, STAGING_NBYTES)


def _count(dims: tuple[int, ...]) -> int:
    count = 1
    for length in dims:
        count *= length
    return count
