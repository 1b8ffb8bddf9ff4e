"""Matrix products: right for every layout, and the same bits however they are cut."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_tools import ISAS, QUANTISED, Packed, executor, floats, linear_steps, run, stored
from numpy.typing import NDArray

Floats = NDArray[np.float32]
ALL = [*QUANTISED, "F32", "F16", "BF16"]
TOLERANCE = {0: 1e-5, 1: 2e-2, 2: 1e-4}  # float, 8-bit and 16-bit activations


def product(isa: str, storage: str, x: Floats, raw: Any, planes: int, threads: int = 1) -> Floats:
    runner = executor(isa, threads)
    packed = Packed(runner, storage, raw, x.shape[1])
    y = np.full((len(x), packed.rows), np.nan, dtype=np.float32)
    run(runner, linear_steps(x, [packed], [y], planes), (0, len(x), 0))
    return y


def planes_of(storage: str, planes: int) -> int:
    return 0 if storage in ("F32", "F16", "BF16") else planes


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("storage", ALL)
@pytest.mark.parametrize("planes", [0, 1, 2])
def test_products_match_float64(isa: str, storage: str, planes: int) -> None:
    planes = planes_of(storage, planes)
    rng = np.random.default_rng(1)
    raw = stored(storage, 45, 512, rng)
    x = rng.standard_normal((19, 512), dtype=np.float32)
    expected = x.astype(np.float64) @ floats(storage, raw).astype(np.float64).T
    got = product(isa, storage, x, raw, planes)
    assert np.abs(got - expected).max() <= TOLERANCE[planes] * np.abs(expected).max()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("storage", ["Q4_1", "Q4_K", "Q8_0", "Q5_1", "Q6_K", "Q2_K", "F32", "F16"])
@pytest.mark.parametrize("planes", [0, 1, 2])
def test_a_row_alone_has_the_bits_it_has_in_a_batch(isa: str, storage: str, planes: int) -> None:
    planes = planes_of(storage, planes)
    rng = np.random.default_rng(2)
    raw = stored(storage, 50, 256, rng)
    x = rng.standard_normal((150, 256), dtype=np.float32)
    whole = product(isa, storage, x, raw, planes)
    for begin, end in [(0, 1), (7, 8), (16, 18), (3, 6), (40, 47), (131, 150), (1, 130)]:
        part = product(isa, storage, np.ascontiguousarray(x[begin:end]), raw, planes)
        np.testing.assert_array_equal(part, whole[begin:end])
    for threads in (2, 3):
        np.testing.assert_array_equal(product(isa, storage, x, raw, planes, threads), whole)


@settings(max_examples=25, derandomize=True, deadline=None)
@given(
    isa=st.sampled_from(ISAS),
    storage=st.sampled_from(ALL),
    planes=st.sampled_from([0, 1, 2]),
    rows=st.integers(1, 70),
    tokens=st.integers(1, 40),
    groups=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_random_shapes(
    isa: str, storage: str, planes: int, rows: int, tokens: int, groups: int, seed: int
) -> None:
    planes = planes_of(storage, planes)
    columns = 256 * groups if storage.endswith("_K") else 32 * groups
    rng = np.random.default_rng(seed)
    raw = stored(storage, rows, columns, rng)
    x = rng.standard_normal((tokens, columns), dtype=np.float32)
    weight = floats(storage, raw).astype(np.float64)
    expected = x.astype(np.float64) @ weight.T
    # Quantisation errors are relative to the terms, which may cancel in a small product.
    terms = np.sqrt(columns) * np.abs(x).max() * np.abs(weight).max()
    got = product(isa, storage, x, raw, planes)
    assert np.abs(got - expected).max() <= TOLERANCE[planes] * terms


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("planes", [1, 2])
def test_the_largest_nibbles_do_not_overflow(isa: str, sign: float, planes: int) -> None:
    raw = np.zeros((16, 40), dtype=np.uint8)
    raw.reshape(16, 2, 20)[..., :2] = np.frombuffer(np.float16(1).tobytes(), dtype=np.uint8)
    raw.reshape(16, 2, 20)[..., 4:] = 255
    x = np.full((3, 64), 127 * sign, dtype=np.float32)
    got = product(isa, "Q4_1", x, raw, planes)
    np.testing.assert_allclose(got, sign * 64 * 15 * 127, rtol=1e-6)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("level", [-128, 127])
@pytest.mark.parametrize("planes", [1, 2])
def test_the_largest_bytes_do_not_overflow(isa: str, level: int, planes: int) -> None:
    raw = np.zeros((16, 34), dtype=np.uint8)
    raw[:, :2] = np.frombuffer(np.float16(1).tobytes(), dtype=np.uint8)
    raw[:, 2:] = np.int8(level).view(np.uint8)
    x = np.concatenate([np.full((2, 32), 127), np.full((2, 32), -127)]).astype(np.float32)
    got = product(isa, "Q8_0", x, raw, planes)
    np.testing.assert_allclose(got, level * x.sum(axis=1)[:, None].repeat(16, 1), rtol=1e-6)


@pytest.mark.parametrize("isa", ISAS)
def test_sixteen_bit_activations_reach_their_largest_value(isa: str) -> None:
    raw = np.zeros((16, 34), dtype=np.uint8)
    raw[:, :2] = np.frombuffer(np.float16(1).tobytes(), dtype=np.uint8)
    raw[:, 2:] = np.int8(127).view(np.uint8)
    x = np.array([[32512, -32512, 255, 254, 128, 127] + [0] * 26], dtype=np.float32)
    got = product(isa, "Q8_0", x, raw, 2)
    np.testing.assert_array_equal(got, np.full((1, 16), 127 * x.sum(), dtype=np.float32))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("planes", [1, 2])
def test_zero_tiny_and_infinite_rows(isa: str, planes: int) -> None:
    rng = np.random.default_rng(3)
    raw = stored("Q4_1", 16, 64, rng)
    x = np.zeros((4, 64), dtype=np.float32)
    x[1] = 1e-40
    x[2, 5] = np.inf
    x[3] = 1.0
    got = product(isa, "Q4_1", x, raw, planes)
    np.testing.assert_array_equal(got[:2], np.zeros((2, 16)))
    assert not np.isfinite(got[2]).any()
    assert np.isfinite(got[3]).all()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("planes", [0, 1])
@pytest.mark.parametrize("tokens", [1, 33])
def test_bias_residual_and_several_outputs(isa: str, planes: int, tokens: int) -> None:
    rng = np.random.default_rng(4)
    runner = executor(isa, 2)
    x = rng.standard_normal((tokens, 64), dtype=np.float32)
    weights = [
        Packed(runner, storage, stored(storage, rows, 64, rng), 64)
        for storage, rows in [("Q4_1", 20), ("Q8_0", 48), ("Q5_1", 7)]
    ]
    plain = [np.zeros((tokens, w.rows), dtype=np.float32) for w in weights]
    fused = [np.zeros_like(y) for y in plain]
    biases = [rng.standard_normal(w.rows, dtype=np.float32) for w in weights[:2]]
    residual = rng.standard_normal((tokens, 48), dtype=np.float32)
    for y, w in zip(plain, weights, strict=True):
        run(runner, linear_steps(x, [w], [y], planes), (0, tokens, 0))
    run(
        runner,
        linear_steps(
            x, weights, fused, planes, biases=[*biases, None], residuals=[None, residual, None]
        ),
        (0, tokens, 0),
    )
    np.testing.assert_array_equal(fused[0], plain[0] + biases[0])
    np.testing.assert_array_equal(fused[1], residual + (plain[1] + biases[1]))
    np.testing.assert_array_equal(fused[2], plain[2])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("tokens", [1, 2, 130])
@pytest.mark.parametrize(("planes", "leaves"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_fused_gate_and_quantisation_change_no_bit(
    isa: str, tokens: int, planes: int, leaves: int
) -> None:
    rng = np.random.default_rng(5)
    runner = executor(isa, 2)
    x = rng.standard_normal((tokens, 64), dtype=np.float32)
    gate = Packed(runner, "Q4_1", stored("Q4_1", 96, 64, rng), 64)
    up = Packed(runner, "Q4_1", stored("Q4_1", 96, 64, rng), 64)
    down = Packed(runner, "Q4_1", stored("Q4_1", 40, 96, rng), 96)
    g, u, a = (np.zeros((tokens, 96), dtype=np.float32) for _ in range(3))
    plain, fused = (np.zeros((tokens, 40), dtype=np.float32) for _ in range(2))
    activation = {"count": "T", "columns": 96, "function": 0}
    activation |= {"gate": g.ctypes.data, "up": u.ctypes.data, "out": a.ctypes.data}
    run(
        runner,
        [
            *linear_steps(x, [gate, up], [g, u], planes),
            ("gated_activation", activation),
            *linear_steps(a, [down], [plain], leaves),
        ],
        (0, tokens, 0),
    )
    more = {"gate": 0, "out_region": 1, "out_planes": leaves}
    first = linear_steps(x, [gate, up], [a, a], planes, **more)
    first[1][1]["outs"] = [0, 0]
    second = linear_steps(a, [down], [fused], leaves)[1]
    second[1]["region"] = 1
    run(runner, [*first, second], (0, tokens, 0))
    np.testing.assert_array_equal(fused, plain)


def test_no_tokens_is_no_work() -> None:
    rng = np.random.default_rng(6)
    runner = executor(ISAS[0], 2)
    packed = Packed(runner, "Q4_1", stored("Q4_1", 16, 32, rng), 32)
    x, y = np.zeros((4, 32), dtype=np.float32), np.full((4, 16), 7, dtype=np.float32)
    run(runner, linear_steps(x, [packed], [y]), (0, 0, 0), capacity=(1, 4, 1))
    assert (y == 7).all()
