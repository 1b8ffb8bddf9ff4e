"""Materializers of the reference device: exact float32, and 8-bit blocks if they are asked for.

Tensors are worked through a piece at a time, so that what is needed beside the stored and the
finished tensor stays within `STAGING_NBYTES` however large the tensor is.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from helios.compile.accuracy import TensorError
from helios.compile.capabilities import Layout, MaterializerKind, MaterializerSpec
from helios.contract.kinds import SOURCE_STORAGES, WeightStorage
from helios.records import dataclass
from helios.runtime.device import STAGING_NBYTES
from helios.runtime.transcode import Transcoder, decoded

Array = NDArray[Any]

F32 = Layout("f32", block=1, block_nbytes=4)
W8 = Layout("w8", block=32, block_nbytes=34)  # signed 8-bit with an f16 scale, as Q8_0


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
        flat = values.reshape(-1)
        for place, piece in decoded(data, self.spec.storage):
            flat[place : place + len(piece)] = piece
        return values, TensorError(0.0, 0)


@dataclass(frozen=True, slots=True)
class Quantise:
    """A stored floating-point type as 8-bit blocks, approximately."""

    spec: MaterializerSpec

    def __call__(self, data: memoryview, shape: tuple[int, ...]) -> tuple[Array, TensorError]:
        """New blocks, [rows, bytes of a row]."""
        blocks = np.empty((_count(shape[:-1]), shape[-1] // W8.block * W8.block_nbytes), np.uint8)
        flat = blocks.reshape(-1, W8.block_nbytes)
        made = Transcoder(data, self.spec.storage)
        for place, piece in made.pieces():
            flat[place : place + len(piece)] = piece
        return blocks, made.error


def materializers() -> Mapping[str, Materialize]:
    """Every materializer by name."""
    found: list[Materialize] = []
    for storage in SOURCE_STORAGES:
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
