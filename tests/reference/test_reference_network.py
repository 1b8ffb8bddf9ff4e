"""Network operations of the reference runtime against PyTorch and transformers."""

import numpy as np
import pytest
import torch
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from helios.runtime.reference import network


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(7)


def floats(generator: np.random.Generator, *shape: int) -> np.ndarray:
    return generator.standard_normal(shape, dtype=np.float32)


def agree(actual: np.ndarray, expected: torch.Tensor, tolerance: float = 1e-5) -> None:
    expected_array = expected.numpy()
    assert actual.dtype == np.float32
    assert actual.shape == expected_array.shape
    assert np.abs(actual - expected_array).max() <= tolerance * np.abs(expected_array).max()


def test_rms_norm(generator: np.random.Generator) -> None:
    x, weight = floats(generator, 5, 3, 64), floats(generator, 64)
    expected = torch.nn.functional.rms_norm(
        torch.from_numpy(x), (64,), torch.from_numpy(weight), eps=1e-5
    )
    agree(network.rms_norm(x, weight, epsilon=1e-5), expected)


@pytest.mark.parametrize("rows", [0, 1, 16, 17, 40])
@pytest.mark.parametrize("biased", [False, True])
def test_linear(generator: np.random.Generator, rows: int, biased: bool) -> None:
    x, weight = floats(generator, rows, 96), floats(generator, 50, 96)
    bias = floats(generator, 50) if biased else None
    actual = network.linear(x, weight, bias)
    expected = torch.nn.functional.linear(
        torch.from_numpy(x),
        torch.from_numpy(weight),
        None if bias is None else torch.from_numpy(bias),
    )
    assert actual.shape == (rows, 50)
    if rows:
        agree(actual, expected)


def test_linear_rows_do_not_depend_on_each_other(generator: np.random.Generator) -> None:
    x, weight = floats(generator, 37, 576), floats(generator, 1536, 576)
    whole = network.linear(x, weight, None)
    for row in (0, 5, 15, 16, 36):
        assert np.array_equal(network.linear(x[row : row + 1], weight, None)[0], whole[row])
    assert np.array_equal(network.linear(x[3:24], weight, None), whole[3:24])


def test_rope_matches_transformers(generator: np.random.Generator) -> None:
    x, positions = floats(generator, 6, 4, 32), np.array([0, 1, 5, 9, 100, 8191], dtype=np.int32)
    frequencies = (1e4 ** -(np.arange(0, 32, 2) / 32)).astype(np.float32)
    angles = torch.from_numpy(positions.astype(np.float32))[:, None] * torch.from_numpy(frequencies)
    both = torch.cat([angles, angles], -1)
    q = torch.from_numpy(x).transpose(0, 1)[None]
    expected, _ = apply_rotary_pos_emb(q, q, both.cos()[None], both.sin()[None])
    actual = network.rope(x, positions, frequencies, interleaved=False, magnitude=1.0)
    agree(actual, expected[0].transpose(0, 1))


def test_interleaved_rope_is_half_rope_of_permuted_columns(generator: np.random.Generator) -> None:
    x, positions = floats(generator, 3, 2, 16), np.array([2, 3, 40], dtype=np.int32)
    frequencies = np.linspace(0.1, 1, 8).astype(np.float32)
    order = np.concatenate([np.arange(0, 16, 2), np.arange(1, 16, 2)])
    half = network.rope(x[..., order], positions, frequencies, interleaved=False, magnitude=1.5)
    pairs = network.rope(x, positions, frequencies, interleaved=True, magnitude=1.5)
    assert np.array_equal(pairs[..., order], half)


def test_partial_rope_leaves_the_rest(generator: np.random.Generator) -> None:
    x = floats(generator, 2, 1, 16)
    frequencies = np.ones(4, dtype=np.float32)
    y = network.rope(x, np.array([1, 2]), frequencies, interleaved=False, magnitude=1.0)
    assert np.array_equal(y[..., 8:], x[..., 8:])
    assert not np.array_equal(y[..., :8], x[..., :8])


@pytest.mark.parametrize("function", ["silu", "gelu", "gelu_tanh"])
def test_gated_activation(generator: np.random.Generator, function: str) -> None:
    gate, up = floats(generator, 4, 33) * 4, floats(generator, 4, 33)
    oracle = {
        "silu": torch.nn.functional.silu,
        "gelu": torch.nn.functional.gelu,
        "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    }[function]
    expected = oracle(torch.from_numpy(gate)) * torch.from_numpy(up)
    agree(network.gated_activation(gate, up, function=function), expected)


@pytest.mark.parametrize("window", [0, 1, 5])
@pytest.mark.parametrize("softcap", [0.0, 20.0])
@pytest.mark.parametrize("with_sinks", [False, True])
def test_paged_attention(
    generator: np.random.Generator, window: int, softcap: float, with_sinks: bool
) -> None:
    """Two rows with histories of 3 and 9 tokens, 4 and 2 new ones, pages of 4 in mixed order."""
    heads, groups, dim, page_tokens = 6, 2, 16, 4
    history, new, slots = [3, 9], [4, 2], np.array([2, 0], dtype=np.int32)
    table = np.full((3, 4), -1, dtype=np.int32)
    table[2], table[0] = [5, 1, 7, 0], [3, 8, 2, 6]
    keys = np.zeros((9, page_tokens, groups, dim), dtype=np.float32)
    values = np.zeros_like(keys)
    sinks = floats(generator, heads) if with_sinks else None
    all_k = [floats(generator, h + n, groups, dim) for h, n in zip(history, new, strict=True)]
    all_v = [floats(generator, h + n, groups, dim) for h, n in zip(history, new, strict=True)]
    for row, (k, v) in enumerate(zip(all_k, all_v, strict=True)):
        owner = np.full(len(k), row, dtype=np.int32)
        positions = np.arange(len(k), dtype=np.int32)
        network.cache_write(k, owner, positions, slots, table, keys)
        network.cache_write(v, owner, positions, slots, table, values)
    rows = np.repeat(np.arange(2, dtype=np.int32), new)
    positions = np.concatenate([np.arange(h, h + n) for h, n in zip(history, new, strict=True)])
    q = floats(generator, sum(new), heads, dim)
    actual = network.paged_attention(
        q, rows, positions.astype(np.int32), slots, table, keys, values, sinks,
        scale=0.3, window=window, softcap=softcap,
    )  # fmt: skip
    for t, (row, position) in enumerate(zip(rows, positions, strict=True)):
        start = max(0, position + 1 - window) if window else 0
        k = torch.from_numpy(all_k[row][start : position + 1]).repeat_interleave(3, 1)
        v = torch.from_numpy(all_v[row][start : position + 1]).repeat_interleave(3, 1)
        scores = torch.einsum("hd,nhd->hn", torch.from_numpy(q[t]), k) * 0.3
        if softcap:
            scores = softcap * torch.tanh(scores / softcap)
        if sinks is not None:
            scores = torch.cat([scores, torch.from_numpy(sinks)[:, None]], -1)
        weights = torch.softmax(scores, -1)[:, : len(k)]
        agree(actual[t], torch.einsum("hn,nhd->hd", weights, v))


def test_storage_rounds_to_nearest_even() -> None:
    x = np.array([1.0, 1.00390625, 1.01171875, -3.14159, 1e-40, np.inf, np.nan], dtype=np.float32)
    stored = network.to_storage(x, np.dtype(np.uint16))
    expected = torch.from_numpy(x).to(torch.bfloat16).to(torch.float32).numpy()
    assert np.array_equal(network.from_storage(stored), expected, equal_nan=True)
