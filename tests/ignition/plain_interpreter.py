"""A slow, literal interpreter of captured programs: one operation at a time, in float32.

It exists to check what recipes and preparation write against oracles from elsewhere, and shares no
code with any runtime.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

from helios.program import extents
from helios.program.ir import Buffer, BufferKind, DType, Op, Program, Value, Weight

_NUMPY = {
    DType.F32: np.float32,
    DType.F16: np.float16,
    DType.I32: np.int32,
    DType.U32: np.uint32,
    DType.U64: np.uint64,
}


class Machine:
    """Weights and persistent buffers; `run` interprets one program over given inputs."""

    def __init__(
        self, weights: Mapping[str, np.ndarray], slots: int, pages: int, continuations: int = 4
    ) -> None:
        self.weights = weights
        self.loaded = {
            extents.SLOTS: slots,
            extents.PAGES: pages,
            extents.CONTINUATIONS: continuations,
        }
        self.buffers: dict[str, np.ndarray] = {}

    def run(
        self, program: Program, inputs: Mapping[str, np.ndarray], lengths: Mapping[str, int]
    ) -> dict[str, np.ndarray]:
        """Every value and completion record of the step, by name."""
        known = {**self.loaded, **lengths}
        step = _Step(self, inputs, known)
        for op in program.ops:
            results = _OPS[op.kind](step, op)
            for value, result in zip(op.results, results, strict=True):
                assert result.shape == value.type.resolve(known), (op.kind, result.shape, value)
                step.values[value.name] = result
        return step.values


class _Step:
    def __init__(
        self, machine: Machine, inputs: Mapping[str, np.ndarray], known: Mapping[str, int]
    ) -> None:
        self.machine = machine
        self.inputs = inputs
        self.known = known
        self.values: dict[str, np.ndarray] = {}

    def get(self, item: object) -> np.ndarray:
        if isinstance(item, Value):
            return self.values[item.name]
        if isinstance(item, Weight):
            weight = self.machine.weights[item.name]
            assert weight.shape == item.type.shape, (item, weight.shape)
            return weight
        assert isinstance(item, Buffer)
        if item.kind is BufferKind.TRANSPORT:
            array = self.inputs[item.name]
            assert array.shape == item.type.resolve(self.known), (item.name, array.shape)
            return array
        return self.machine.buffers.setdefault(
            item.name, np.zeros(item.type.resolve(self.known), _NUMPY[item.type.dtype])
        )

    def all(self, op: Op) -> list[np.ndarray]:
        return [self.get(item) for item in op.operands if item is not None]


Handler = Callable[[_Step, Op], Sequence[np.ndarray]]
_OPS: dict[str, Handler] = {}


def _op(handler: Handler) -> Handler:
    _OPS[handler.__name__.removeprefix("_")] = handler
    return handler


@_op
def _token_rows(step: _Step, op: Op) -> Sequence[np.ndarray]:
    lengths, endpoints = step.all(op)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    positions = [e + i for e, n in zip(endpoints, lengths, strict=True) for i in range(n)]
    return rows.astype(np.int32), np.array(positions, np.int32)


@_op
def _resolve_tokens(step: _Step, op: Op) -> Sequence[np.ndarray]:
    tokens, rows, pending = step.all(op)
    return (np.where(tokens < 0, pending[rows], tokens),)


@_op
def _last_tokens(step: _Step, op: Op) -> Sequence[np.ndarray]:
    lengths, sampled = step.all(op)
    return ((np.cumsum(lengths) - 1)[sampled].astype(np.int32),)


@_op
def _gather(step: _Step, op: Op) -> Sequence[np.ndarray]:
    source, index = step.all(op)
    return (source[index],)


@_op
def _add_integers(step: _Step, op: Op) -> Sequence[np.ndarray]:
    left, right = step.all(op)
    return (left + right,)


@_op
def _embedding(step: _Step, op: Op) -> Sequence[np.ndarray]:
    tokens, table = step.all(op)
    return (table[tokens] * np.float32(op.attributes["scale"]),)


@_op
def _linear(step: _Step, op: Op) -> Sequence[np.ndarray]:
    x, weight, *bias = step.all(op)
    y = torch.from_numpy(x) @ torch.from_numpy(weight).T
    return (y.numpy() + bias[0] if bias else y.numpy(),)


@_op
def _rms_norm(step: _Step, op: Op) -> Sequence[np.ndarray]:
    x, weight = step.all(op)
    mean = np.mean(x * x, axis=-1, keepdims=True)
    return (x / np.sqrt(mean + np.float32(op.attributes["epsilon"])) * weight,)


@_op
def _rope(step: _Step, op: Op) -> Sequence[np.ndarray]:
    x, positions, frequencies = step.all(op)
    pairs = len(frequencies)
    angles = positions[:, None].astype(np.float32) * frequencies
    magnitude = np.float32(op.attributes["magnitude"])
    cos, sin = np.cos(angles)[:, None] * magnitude, np.sin(angles)[:, None] * magnitude
    if op.attributes["interleaved"]:
        first, second = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
    else:
        first, second = slice(0, pairs), slice(pairs, 2 * pairs)
    y = x.copy()
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., second] * cos + x[..., first] * sin
    return (y,)


@_op
def _split_heads(step: _Step, op: Op) -> Sequence[np.ndarray]:
    (x,) = step.all(op)
    heads, dim, offset = (int(op.attributes[k]) for k in ("heads", "dim", "offset"))
    return (x[:, offset : offset + heads * dim].reshape(len(x), heads, dim),)


@_op
def _merge_heads(step: _Step, op: Op) -> Sequence[np.ndarray]:
    (x,) = step.all(op)
    return (x.reshape(len(x), -1),)


@_op
def _cache_write(step: _Step, op: Op) -> Sequence[np.ndarray]:
    x, rows, positions, slots, table, plane = step.all(op)
    for t in range(len(x)):
        page, offset = divmod(int(positions[t]), plane.shape[1])
        plane[table[slots[rows[t]], page], offset] = x[t]
    return ()


@_op
def _paged_attention(step: _Step, op: Op) -> Sequence[np.ndarray]:
    q, rows, positions, slots, table, keys, values, *sinks = step.all(op)
    scale, softcap = float(op.attributes["scale"]), float(op.attributes["softcap"])
    window, group = int(op.attributes["window"]), q.shape[1] // keys.shape[2]
    y = np.empty_like(q)
    for t in range(len(q)):
        end = int(positions[t]) + 1
        start = max(0, end - window) if window else 0
        where = np.arange(start, end)
        pages = table[slots[rows[t]], where // keys.shape[1]]
        k = keys[pages, where % keys.shape[1]].astype(np.float32)
        v = values[pages, where % keys.shape[1]].astype(np.float32)
        for head in range(q.shape[1]):
            scores = k[:, head // group] @ q[t, head] * scale
            if softcap:
                scores = softcap * np.tanh(scores / softcap)
            peak = max(scores.max(), sinks[0][head]) if sinks else scores.max()
            weights = np.exp(scores - peak)
            total = weights.sum() + (np.exp(sinks[0][head] - peak) if sinks else 0.0)
            y[t, head] = (weights / total) @ v[:, head // group]
    return (y,)


@_op
def _gated_activation(step: _Step, op: Op) -> Sequence[np.ndarray]:
    gate, up = (torch.from_numpy(x) for x in step.all(op))
    functional = torch.nn.functional
    function = {
        "silu": functional.silu,
        "gelu": functional.gelu,
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    }[str(op.attributes["function"])]
    return ((function(gate) * up).numpy(),)


@_op
def _add(step: _Step, op: Op) -> Sequence[np.ndarray]:
    left, right = step.all(op)
    return (left + right,)


@_op
def _scale(step: _Step, op: Op) -> Sequence[np.ndarray]:
    (x,) = step.all(op)
    return (x * np.float32(op.attributes["factor"]),)


@_op
def _softcap(step: _Step, op: Op) -> Sequence[np.ndarray]:
    (x,) = step.all(op)
    cap = np.float32(op.attributes["cap"])
    return (cap * np.tanh(x / cap),)


@_op
def _process_logits(step: _Step, op: Op) -> Sequence[np.ndarray]:
    operands = step.all(op)
    logits, slots, prompt, output = operands[:4]
    repetition, presence, frequency, ids, values, minimum, count, eos = operands[4:]
    y = logits.copy()
    for s, slot in enumerate(slots):
        used = ids[s] >= 0
        np.add.at(y[s], ids[s][used], values[s][used])
        if count[s] < minimum[s]:
            y[s, eos[s][eos[s] >= 0]] = -np.inf
        seen = (prompt[slot] > 0) | (output[slot] > 0)
        penalised = np.where(y[s] > 0, y[s] / repetition[s], y[s] * repetition[s])
        y[s] = np.where(seen, penalised, y[s])
        y[s] -= frequency[s] * output[slot] + presence[s] * (output[slot] > 0)
    return (y.astype(np.float32),)


@_op
def _mask_logits(step: _Step, op: Op) -> Sequence[np.ndarray]:
    logits, rows, mask, active = step.all(op)
    y, tokens = logits.copy(), np.arange(logits.shape[1])
    for s, row in enumerate(rows):
        if active[row]:
            allowed = mask[row][tokens // 32] >> (tokens % 32).astype(np.uint32) & 1
            y[s, allowed == 0] = -np.inf
    return (y,)


@_op
def _sample(step: _Step, op: Op) -> Sequence[np.ndarray]:
    logits, temperature, *_ = step.all(op)
    assert not temperature.any(), "this interpreter only samples greedily"
    return (logits.argmax(axis=1).astype(np.int32),)


@_op
def _log_probability(step: _Step, op: Op) -> Sequence[np.ndarray]:
    logits, tokens = step.all(op)
    chosen = _log_softmax(logits)[np.arange(len(tokens)), np.maximum(tokens, 0)]
    return (np.where(tokens < 0, np.float32(0), chosen),)


@_op
def _top_log_probabilities(step: _Step, op: Op) -> Sequence[np.ndarray]:
    logits, count = step.all(op)
    maximum = int(op.attributes["maximum"])
    ids = np.full((len(logits), maximum), -1, np.int32)
    values = np.full((len(logits), maximum), -math.inf, np.float32)
    for row, likely in enumerate(_log_softmax(logits)):
        best = np.argsort(-likely, kind="stable")[: max(int(count[row]), 0)]
        ids[row, : len(best)], values[row, : len(best)] = best, likely[best]
    return ids, values


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    return torch.log_softmax(torch.from_numpy(logits), dim=-1).numpy()


@_op
def _state_read(step: _Step, op: Op) -> Sequence[np.ndarray]:
    state, rows = step.all(op)
    return (state[rows],)


@_op
def _state_write(step: _Step, op: Op) -> Sequence[np.ndarray]:
    state, rows, value = step.all(op)
    state[rows] = value
    return ()


@_op
def _state_clear(step: _Step, op: Op) -> Sequence[np.ndarray]:
    state, rows = step.all(op)
    state[rows] = 0
    return ()


@_op
def _state_add(step: _Step, op: Op) -> Sequence[np.ndarray]:
    state, rows, value = step.all(op)
    state[rows] += value
    return ()


@_op
def _histogram_add(step: _Step, op: Op) -> Sequence[np.ndarray]:
    histogram, rows, tokens = step.all(op)
    histogram[rows, tokens] += 1
    return ()


@_op
def _ones(step: _Step, op: Op) -> Sequence[np.ndarray]:
    return (np.ones_like(step.all(op)[0]),)


@_op
def _current_page(step: _Step, op: Op) -> Sequence[np.ndarray]:
    slots, endpoints, selector, table = step.all(op)
    index, partial = np.divmod(endpoints, int(op.attributes["page_tokens"]))
    index = np.minimum(index, table.shape[1] - 1)
    wanted = (selector >= 0) & (partial > 0)
    return (np.where(wanted, table[slots, index], -1).astype(np.int32),)


@_op
def _page_save(step: _Step, op: Op) -> Sequence[np.ndarray]:
    plane, pages, continuation, rows = step.all(op)
    for page, row in zip(pages, rows, strict=True):
        if page >= 0 and row >= 0:
            continuation[row] = plane[page]
    return ()


@_op
def _page_load(step: _Step, op: Op) -> Sequence[np.ndarray]:
    continuation, rows, plane, pages = step.all(op)
    for page, row in zip(pages, rows, strict=True):
        if page >= 0 and row >= 0:
            plane[page] = continuation[row]
    return ()


@_op
def _store(step: _Step, op: Op) -> Sequence[np.ndarray]:
    record = op.operands[1]
    assert isinstance(record, Buffer)
    step.values[record.name] = step.get(op.operands[0])
    return ()
