"""Network operations in NumPy, one row or token at a time where it matters.

Batch invariance is the one thing that shapes this code: a row's numbers may depend on no other
row. Matrix products therefore always see tiles of the same height, and attention takes one
token after another over exactly its own history.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Array = NDArray[Any]

# A BLAS chooses its loops by matrix shape, so every product has this many rows, padded by zeros;
# more of them, and some kernels treat the first rows of a tile otherwise than the last.
TILE_ROWS = 8


def embedding(tokens: Ints, table: Floats, *, scale: float) -> Floats:
    """tokens [T], table [V, E] -> [T, E]."""
    rows: Floats = table[tokens]
    return rows if scale == 1.0 else rows * np.float32(scale)


def linear(
    x: Floats,
    weight: Floats,
    bias: Floats | None,
    choices: Ints | None = None,
    *,
    coarse: bool = False,
) -> Floats:
    """x [A, K], weight [N, K], bias [N] -> [A, N]. There is one way to cut this, whatever was
    chosen, and it is as exact where it may be coarse."""
    count = x.shape[0]
    y = np.empty((count, weight.shape[0]), dtype=np.float32)
    tile = np.zeros((TILE_ROWS, x.shape[1]), dtype=np.float32)
    for start in range(0, count, TILE_ROWS):
        live = min(TILE_ROWS, count - start)
        tile[:live] = x[start : start + live]
        tile[live:] = 0
        y[start : start + live] = (tile @ weight.T)[:live]
    if bias is not None:
        y += bias
    return y


def tune_linear(weight: Array, choices: Ints, *, coarse: bool = False) -> None:
    """The neutral choices: here every product is computed in one way."""
    choices[...] = 0


def rms_norm(x: Floats, weight: Floats, *, epsilon: float) -> Floats:
    """x [..., E], weight [E] -> [..., E]."""
    mean: Floats = np.mean(np.square(x), axis=-1, keepdims=True, dtype=np.float32)
    root: Floats = np.sqrt(mean + np.float32(epsilon))
    return x / root * weight


def rope(
    x: Floats, positions: Ints, frequencies: Floats, *, interleaved: bool, magnitude: float
) -> Floats:
    """x [T, H, D], positions [T], frequencies [F] -> [T, H, D]; the last D - 2F elements stay."""
    count = len(frequencies)
    angles = positions.astype(np.float32)[:, None] * frequencies
    cosine = (np.cos(angles) * np.float32(magnitude))[:, None]
    sine = (np.sin(angles) * np.float32(magnitude))[:, None]
    y = x.copy()
    if interleaved:
        first, second = slice(0, 2 * count, 2), slice(1, 2 * count, 2)
    else:
        first, second = slice(0, count), slice(count, 2 * count)
    y[..., first] = x[..., first] * cosine - x[..., second] * sine
    y[..., second] = x[..., second] * cosine + x[..., first] * sine
    return y


def split_heads(x: Floats, *, heads: int, dim: int, offset: int) -> Floats:
    """x [T, W] -> [T, heads, dim], from column `offset`."""
    return x[:, offset : offset + heads * dim].reshape(len(x), heads, dim)


def merge_heads(x: Floats, *, width: int) -> Floats:
    """x [T, H, D] -> [T, H * D]."""
    return x.reshape(len(x), width)


def gated_activation(gate: Floats, up: Floats, *, function: str) -> Floats:
    """gate [T, F], up [T, F] -> [T, F]."""
    return _ACTIVATIONS[function](gate) * up


def add(left: Floats, right: Floats) -> Floats:
    """Element by element."""
    return left + right


def scale(x: Floats, *, factor: float) -> Floats:
    """factor · x."""
    return x * np.float32(factor)


def softcap(x: Floats, *, cap: float) -> Floats:
    """cap · tanh(x / cap)."""
    y: Floats = np.float32(cap) * np.tanh(x / np.float32(cap))
    return y


def cache_write(
    x: Floats, rows: Ints, positions: Ints, slots: Ints, page_table: Ints, plane: NDArray[Any]
) -> None:
    """x [T, G, D] into plane [N, L, G, D]."""
    length = plane.shape[1]
    pages = page_table[slots[rows], positions // length]
    plane[pages, positions % length] = to_storage(x, plane.dtype)


def paged_attention(
    q: Floats,
    rows: Ints,
    positions: Ints,
    slots: Ints,
    page_table: Ints,
    keys: NDArray[Any],
    values: NDArray[Any],
    sinks: Floats | None,
    *,
    scale: float,
    window: int,
    softcap: float,
) -> Floats:
    """q [T, H, D], planes [N, L, G, D], sinks [H] -> [T, H, D]."""
    y = np.empty_like(q)
    for row in np.unique(rows):
        mine = np.flatnonzero(rows == row)
        end = int(positions[mine].max()) + 1
        pages = page_table[slots[row], : -(-end // keys.shape[1])]
        k, v = _history(keys, pages), _history(values, pages)  # [G, end, D]
        for t in mine:
            stop = int(positions[t]) + 1
            start = max(0, stop - window) if window else 0
            y[t] = _attend(q[t], k[:, start:stop], v[:, start:stop], sinks, scale, softcap)
    return y


def _history(plane: NDArray[Any], pages: Ints) -> Floats:
    records = from_storage(plane[pages])  # [pages, L, G, D]
    return records.reshape(-1, *plane.shape[2:]).transpose(1, 0, 2)


def _attend(
    q: Floats, k: Floats, v: Floats, sinks: Floats | None, scale: float, softcap: float
) -> Floats:
    groups = len(k)
    heads = q.reshape(groups, -1, q.shape[-1])
    # Copied, so that the products see the same strides and alignment however long the row is.
    k, v = np.ascontiguousarray(k), np.ascontiguousarray(v)
    scores = heads @ k.transpose(0, 2, 1) * np.float32(scale)  # [G, H / G, n]
    if softcap:
        scores = np.float32(softcap) * np.tanh(scores / np.float32(softcap))
    top = scores.max(axis=-1, keepdims=True)
    sink = None if sinks is None else sinks.reshape(groups, -1, 1)
    if sink is not None:
        top = np.maximum(top, sink)
    weights = np.exp(scores - top)
    total = weights.sum(axis=-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink - top)
    mixed: Floats = (weights @ v / total).reshape(q.shape)
    return mixed


def to_storage(x: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
    """float32 rounded to nearest even in a plane's type; uint16 stands for bf16."""
    if dtype != np.uint16:
        return x.astype(dtype)
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(x), 0x7FC0, rounded).astype(np.uint16)


def from_storage(x: NDArray[Any]) -> Floats:
    """The float32 values of a plane."""
    if x.dtype != np.uint16:
        return x.astype(np.float32)
    return (x.astype(np.uint32) << 16).view(np.float32)


def _silu(x: Floats) -> Floats:
    y: Floats = x / (1 + np.exp(-x))
    return y


def _gelu(x: Floats) -> Floats:
    erf = np.frompyfunc(math.erf, 1, 1)(x * math.sqrt(0.5)).astype(np.float32)
    y: Floats = np.float32(0.5) * x * (1 + erf)
    return y


def _gelu_tanh(x: Floats) -> Floats:
    inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x * x * x)
    y: Floats = np.float32(0.5) * x * (1 + np.tanh(inner))
    return y


_ACTIVATIONS: Mapping[str, Callable[[Floats], Floats]] = {
    "silu": _silu,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
}
