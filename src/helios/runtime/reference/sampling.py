"""Logit processing and sampling in NumPy, one row at a time."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]

_WORD = 0xFFFFFFFF


def philox(key: int, counter: int) -> tuple[int, int, int, int]:
    """Philox4x32-10 at a 64-bit key and a 128-bit counter (Salmon et al., SC'11)."""
    k0, k1 = key & _WORD, key >> 32 & _WORD
    c0, c1, c2, c3 = (counter >> shift & _WORD for shift in (0, 32, 64, 96))
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & _WORD, p0 >> 32 ^ c3 ^ k1, p0 & _WORD
        k0, k1 = (k0 + 0x9E3779B9) & _WORD, (k1 + 0xBB67AE85) & _WORD
    return c0, c1, c2, c3


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) for a seed and a token position."""
    return (philox(seed, position)[0] >> 8) * 2.0**-24


def process_logits(
    logits: Floats,
    slots: Ints,
    prompt_histogram: Ints,
    output_histogram: Ints,
    repetition: Floats,
    presence: Floats,
    frequency: Floats,
    bias_tokens: Ints,
    bias_values: Floats,
    minimum_output: Ints,
    output_count: Ints,
    eos_tokens: Ints,
) -> Floats:
    """logits [S, V] with bias, minimum output and penalties of each row's slot."""
    y = logits.copy()
    for s, slot in enumerate(slots):
        row = y[s]
        biased = bias_tokens[s] >= 0
        np.add.at(row, bias_tokens[s][biased], bias_values[s][biased])
        if output_count[s] < minimum_output[s]:
            row[eos_tokens[s][eos_tokens[s] >= 0]] = -np.inf
        counts = output_histogram[slot]
        if repetition[s] != 1.0:
            seen = (prompt_histogram[slot] > 0) | (counts > 0)
            scaled = np.where(row > 0, row / repetition[s], row * repetition[s])
            row[seen] = scaled[seen]
        if presence[s] or frequency[s]:
            row -= frequency[s] * counts.astype(np.float32) + presence[s] * (counts > 0)
    return y


def mask_logits(
    logits: Floats, sampled_rows: Ints, mask: NDArray[np.uint32], active: Ints, *, words: int
) -> Floats:
    """logits [S, V] with the tokens that a row's grammar forbids at minus infinity."""
    y = logits.copy()
    for s, b in enumerate(sampled_rows):
        if active[b]:
            bits = np.unpackbits(mask[b, :words].view(np.uint8), bitorder="little")
            y[s, bits[: y.shape[1]] == 0] = -np.inf
    return y


def sample(
    logits: Floats,
    temperature: Floats,
    top_k: Ints,
    top_p: Floats,
    min_p: Floats,
    seed: NDArray[np.uint64],
    position: Ints,
) -> Ints:
    """logits [S, V] -> [S]."""
    tokens = np.empty(len(logits), dtype=np.int32)
    for s, row in enumerate(logits):
        if temperature[s] == 0:
            tokens[s] = np.argmax(row)
        else:
            tokens[s] = _draw(
                row / temperature[s],
                int(top_k[s]),
                float(top_p[s]),
                float(min_p[s]),
                uniform(int(seed[s]), int(position[s])),
            )
    return tokens


def _draw(row: Floats, top_k: int, top_p: float, min_p: float, u: float) -> int:
    weights = np.exp(row - row.max()).astype(np.float64)
    kept = np.ones(len(row), dtype=bool)
    if top_k or top_p < 1:
        order = np.argsort(-row, kind="stable")  # ties by smaller id
        if top_k:
            order = order[:top_k]
        if top_p < 1:
            mass = np.cumsum(weights[order])
            reach = int(np.searchsorted(mass, top_p * mass[-1])) + 1
            order = order[:reach]
        kept[:] = False
        kept[order] = True
    kept &= weights >= min_p * weights.max()
    mass = np.cumsum(np.where(kept, weights, 0.0))
    drawn = int(np.searchsorted(mass, u * mass[-1], side="right"))
    return min(drawn, int(np.flatnonzero(kept)[-1]))


def log_probability(logits: Floats, tokens: Ints) -> Floats:
    """logits [A, V], tokens [A] -> [A]; 0 for negative tokens."""
    values = np.zeros(len(logits), dtype=np.float32)
    for a, token in enumerate(tokens):
        if token >= 0:
            values[a] = logits[a, token] - _log_total(logits[a])
    return values


def top_log_probabilities(logits: Floats, count: Ints, *, maximum: int) -> tuple[Ints, Floats]:
    """logits [A, V], count [A] -> ids [A, maximum] and log-probabilities [A, maximum]."""
    ids = np.full((len(logits), maximum), -1, dtype=np.int32)
    values = np.full((len(logits), maximum), -np.inf, dtype=np.float32)
    for a, row in enumerate(logits):
        wanted = min(int(count[a]), maximum, len(row))
        if wanted > 0:
            order = np.argsort(-row, kind="stable")[:wanted]
            ids[a, :wanted] = order
            values[a, :wanted] = row[order] - _log_total(row)
    return ids, values


def _log_total(row: Floats) -> np.float32:
    top = row.max()
    return np.float32(top + np.log(np.exp((row - top).astype(np.float64)).sum()))
