"""Stored tensors to 8-bit blocks, a bounded piece at a time, with the error that makes."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import gguf
import numpy as np
from numpy.typing import NDArray

from helios.compile.accuracy import TensorError
from helios.runtime.device import STAGING_NBYTES

Floats = NDArray[np.float32]
Blocks = NDArray[np.uint8]

BLOCK = 32  # elements of an 8-bit block: signed bytes and an f16 scale, as Q8_0 has them

# The library's coders keep up to a dozen arrays of a piece's size at a time.
_PIECE_ELEMENTS = STAGING_NBYTES // (16 * 4)

_Q8_0 = gguf.GGMLQuantizationType.Q8_0


def decoded(data: memoryview, storage: str) -> Iterator[tuple[int, Floats]]:
    """Stored elements as float32, in order and without regard to rows: the first one's place and
    a piece of them."""
    kind = gguf.GGMLQuantizationType[storage.upper()]
    block, nbytes = gguf.GGML_QUANT_SIZES[kind]
    blocks = np.frombuffer(data, dtype=np.uint8).reshape(-1, nbytes)
    step = _PIECE_ELEMENTS // block
    for place in range(0, len(blocks), step):
        yield place * block, gguf.dequantize(blocks[place : place + step], kind).reshape(-1)


def from_blocks(blocks: Blocks) -> Floats:
    """The float32 values of 8-bit blocks, or of rows of them."""
    values: Floats = gguf.dequantize(blocks, _Q8_0)
    return values


@dataclass
class Transcoder:
    """Turns one stored tensor into 8-bit blocks; its rows are whole blocks.

    `error` holds once all pieces were taken.
    """

    data: memoryview
    storage: str
    _difference: float = field(default=0.0, init=False)
    _total: float = field(default=0.0, init=False)
    _broken: int = field(default=0, init=False)

    def pieces(self, multiple: int = 1) -> Iterator[tuple[int, Blocks]]:
        """The first block's place and some blocks, in order; every piece but the last has a
        multiple of so many blocks."""
        rest: list[Blocks] = []
        start = count = 0
        for _, exact in decoded(self.data, self.storage):
            rest.append(self._blocks(exact))
            count += len(rest[-1])
            if count >= multiple:
                joined = np.concatenate(rest)
                whole = count // multiple * multiple
                yield start, joined[:whole]
                rest = [joined[whole:]]
                start, count = start + whole, count - whole
        if count:
            yield start, np.concatenate(rest)

    def _blocks(self, exact: Floats) -> Blocks:
        sound = np.isfinite(exact)
        finite = np.where(sound, exact, np.float32(0)).reshape(-1, BLOCK)
        blocks: Blocks = gguf.quantize(finite, _Q8_0)
        made = from_blocks(blocks)
        self._broken += int(np.count_nonzero(~(sound.reshape(-1, BLOCK) & np.isfinite(made))))
        self._difference += float(np.square(made - finite, dtype=np.float64).sum())
        self._total += float(np.square(finite, dtype=np.float64).sum())
        return blocks

    @property
    def error(self) -> TensorError:
        """How far the blocks are from what was stored."""
        share = self._difference / self._total if self._total else 0.0
        return TensorError(share**0.5, self._broken)
