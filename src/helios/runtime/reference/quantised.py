"""Operations over matrices in 8-bit blocks: decoded a bounded number of rows at a time."""

import numpy as np
from numpy.typing import NDArray

from helios.runtime.reference import network
from helios.runtime.reference.materialize import W8
from helios.runtime.transcode import from_blocks

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Blocks = NDArray[np.uint8]

BLOCK_ROWS = 256

tune_linear = network.tune_linear


def linear(
    x: Floats,
    weight: Blocks,
    bias: Floats | None,
    choices: Ints | None = None,
    *,
    coarse: bool = False,
) -> Floats:
    """x [A, K], weight [N, blocks of K], bias [N] -> [A, N]."""
    y = np.empty((len(x), len(weight)), dtype=np.float32)
    for start in range(0, len(weight), BLOCK_ROWS):
        stop = start + BLOCK_ROWS
        part = None if bias is None else bias[start:stop]
        y[:, start:stop] = network.linear(x, from_blocks(weight[start:stop]), part)
    return y


def embedding(tokens: Ints, table: Blocks, *, scale: float) -> Floats:
    """tokens [T], table [V, blocks of E] -> [T, E]."""
    if not len(tokens):
        return np.empty((0, table.shape[1] // W8.block_nbytes * W8.block), dtype=np.float32)
    rows = from_blocks(table[tokens])
    return rows if scale == 1.0 else rows * np.float32(scale)
