"""Network operations against the reference runtime, on every instruction set."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_programs import run_op
from native_tools import ISAS
from numpy.typing import NDArray

from helios.program.ops import OPS
from helios.runtime.reference import network

Floats = NDArray[np.float32]
MIXED = settings(max_examples=30, derandomize=True, deadline=None)
isas = st.sampled_from(ISAS)
seeds = st.integers(0, 1000)


def normal(rng: np.random.Generator, *shape: int, size: float = 1.0) -> Floats:
    return np.float32(size) * rng.standard_normal(shape, dtype=np.float32)


def agree(kind: str, got: Any, expected: Any) -> None:
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= OPS[kind].tolerance * np.abs(expected).max()


@MIXED
@given(isa=isas, seed=seeds, rows=st.integers(1, 9), width=st.integers(1, 130))
def test_rms_norm(isa: str, seed: int, rows: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    x, weight = normal(rng, rows, width), normal(rng, width)
    (got,) = run_op("rms_norm", x, weight, isa=isa, epsilon=1e-5)
    agree("rms_norm", got, network.rms_norm(x, weight, epsilon=1e-5))


@pytest.mark.parametrize("isa", ISAS)
def test_rms_norm_of_heads(isa: str) -> None:
    rng = np.random.default_rng(0)
    x, weight = normal(rng, 5, 3, 32), normal(rng, 32)
    (got,) = run_op("rms_norm", x, weight, isa=isa, epsilon=1e-6)
    agree("rms_norm", got, network.rms_norm(x, weight, epsilon=1e-6))


@MIXED
@given(
    isa=isas,
    seed=seeds,
    tokens=st.integers(1, 6),
    heads=st.integers(1, 4),
    pairs=st.integers(1, 40),
    rest=st.integers(0, 9),
    interleaved=st.booleans(),
)
def test_rope(
    isa: str, seed: int, tokens: int, heads: int, pairs: int, rest: int, interleaved: bool
) -> None:
    rng = np.random.default_rng(seed)
    x = normal(rng, tokens, heads, 2 * pairs + rest)
    positions = rng.integers(0, 8192, tokens, dtype=np.int32)
    frequencies = (1e4 ** -(np.arange(pairs) / pairs)).astype(np.float32)
    attributes = {"interleaved": interleaved, "magnitude": 1.25}
    (got,) = run_op("rope", x, positions, frequencies, isa=isa, **attributes)
    agree("rope", got, network.rope(x, positions, frequencies, **attributes))


@MIXED
@given(
    isa=isas,
    seed=seeds,
    width=st.integers(1, 70),
    function=st.sampled_from(["silu", "gelu", "gelu_tanh"]),
    size=st.sampled_from([0.01, 1.0, 30.0]),
)
def test_gated_activation(isa: str, seed: int, width: int, function: str, size: float) -> None:
    rng = np.random.default_rng(seed)
    gate, up = normal(rng, 3, width, size=size), normal(rng, 3, width)
    (got,) = run_op("gated_activation", gate, up, isa=isa, function=function)
    # The oracle is computed in double precision: near zero the reference itself cancels.
    wide = gate.astype(np.float64), up.astype(np.float64)
    agree("gated_activation", got, network.gated_activation(*wide, function=function))


@MIXED
@given(isa=isas, seed=seeds, width=st.integers(1, 70), size=st.sampled_from([1e-3, 1.0, 200.0]))
def test_elementwise(isa: str, seed: int, width: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    x, y = normal(rng, 4, width, size=size), normal(rng, 4, width)
    agree("add", run_op("add", x, y, isa=isa)[0], x + y)
    agree("scale", run_op("scale", x, isa=isa, factor=0.37)[0], network.scale(x, factor=0.37))
    agree("softcap", run_op("softcap", x, isa=isa, cap=30.0)[0], network.softcap(x, cap=30.0))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("scale", [1.0, 24.0])
def test_embedding(isa: str, scale: float) -> None:
    rng = np.random.default_rng(0)
    table = normal(rng, 37, 40)
    tokens = rng.integers(0, 37, 11, dtype=np.int32)
    (got,) = run_op("embedding", tokens, table, isa=isa, scale=scale)
    np.testing.assert_array_equal(got, network.embedding(tokens, table, scale=scale))


@pytest.mark.parametrize("offset", [0, 32])
def test_heads_are_split_and_merged(offset: int) -> None:
    x = np.arange(3 * 96, dtype=np.float32).reshape(3, 96)
    (split,) = run_op("split_heads", x, isa=ISAS[0], heads=4, dim=16, offset=offset)
    np.testing.assert_array_equal(split, network.split_heads(x, heads=4, dim=16, offset=offset))
    (merged,) = run_op("merge_heads", split, isa=ISAS[0], width=64)
    np.testing.assert_array_equal(merged, x[:, offset : offset + 64])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("function", ["silu", "gelu", "gelu_tanh"])
def test_activations_do_not_depend_on_the_place_in_a_row(isa: str, function: str) -> None:
    rng = np.random.default_rng(1)
    gate = normal(rng, 1, 61, size=4.0)
    one = np.ones_like(gate)
    (whole,) = run_op("gated_activation", gate, one, isa=isa, function=function)
    for place in (0, 7, 15, 16, 45, 60):
        alone = gate[:, place : place + 1]
        (got,) = run_op("gated_activation", alone, one[:, :1], isa=isa, function=function)
        np.testing.assert_array_equal(got[0, 0], whole[0, place])


@pytest.mark.parametrize("isa", ISAS)
def test_extremes_stay_finite(isa: str) -> None:
    gate = np.array([[-1e30, -100, -0.0, 0.0, 100, 1e30]], dtype=np.float32)
    for function in ("silu", "gelu", "gelu_tanh"):
        one = np.ones_like(gate)
        (got,) = run_op("gated_activation", gate, one, isa=isa, function=function)
        np.testing.assert_allclose(got, np.maximum(gate, 0), atol=1e-10)
