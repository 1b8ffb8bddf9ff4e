"""Logit processing and sampling against the reference runtime."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_programs import Bench, run_op
from native_tools import ISAS
from numpy.typing import NDArray

from helios.program.ir import BufferKind
from helios.runtime.cpu.numerics import PROFILES
from helios.runtime.cpu.schedule import schedule
from helios.runtime.reference import sampling

MANY = settings(max_examples=60, derandomize=True, deadline=None)
isas = st.sampled_from(ISAS)


def full(count: int, value: Any, dtype: Any) -> NDArray[Any]:
    return np.full(count, value, dtype=dtype)


def draw(isa: str, logits: NDArray[np.float32], threads: int = 1, **chosen: Any) -> Any:
    n = len(logits)
    settings_ = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 0} | chosen
    operands = (
        full(n, settings_["temperature"], np.float32),
        full(n, settings_["top_k"], np.int32),
        full(n, settings_["top_p"], np.float32),
        full(n, settings_["min_p"], np.float32),
        full(n, settings_["seed"], np.uint64),
        np.arange(n, dtype=np.int32),
    )
    (native,) = run_op("sample", logits, *operands, isa=isa, threads=threads)
    return native, sampling.sample(logits, *operands)


@MANY
@given(
    isa=isas,
    vocabulary=st.integers(1, 600),
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.5]),
    top_k=st.sampled_from([0, 1, 2, 40, 5000]),
    top_p=st.sampled_from([1.0, 0.95, 0.5, 0.01]),
    min_p=st.sampled_from([0.0, 0.05, 0.9]),
    seed=st.integers(0, 2**64 - 1),
    levels=st.sampled_from([0, 3]),
)
def test_draws_what_the_reference_draws(
    isa: str,
    vocabulary: int,
    temperature: float,
    top_k: int,
    top_p: float,
    min_p: float,
    seed: int,
    levels: int,
) -> None:
    rng = np.random.default_rng(vocabulary)
    logits = rng.standard_normal((6, vocabulary), dtype=np.float32) * np.float32(3)
    if levels:  # many equal logits
        logits = np.round(logits / levels) * levels
    native, reference = draw(
        isa, logits, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, seed=seed
    )
    np.testing.assert_array_equal(native, reference)


@pytest.mark.parametrize("isa", ISAS)
def test_greedy_takes_the_first_of_the_largest(isa: str) -> None:
    logits = np.zeros((3, 77), dtype=np.float32)
    logits[1, [5, 76]] = 2
    logits[2] = -np.inf
    logits[2, 76] = -5
    native, _ = draw(isa, logits, temperature=0.0)
    np.testing.assert_array_equal(native, [0, 5, 76])


@pytest.mark.parametrize("isa", ISAS)
def test_forbidden_tokens_are_never_drawn(isa: str) -> None:
    logits = np.full((64, 50), -np.inf, dtype=np.float32)
    logits[:, [3, 17]] = 0
    native, reference = draw(isa, logits, temperature=5.0, seed=11)
    assert set(native.tolist()) == {3, 17}
    np.testing.assert_array_equal(native, reference)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("chosen", [{}, {"temperature": 0.0}, {"top_k": 5}, {"top_p": 0.5}])
def test_logits_that_are_no_numbers_still_give_a_token(isa: str, chosen: dict[str, Any]) -> None:
    logits = np.random.default_rng(1).standard_normal((4, 300), dtype=np.float32)
    logits[0] = np.nan
    logits[1, ::7] = np.nan
    logits[2, 299] = np.nan
    logits[3, 5] = np.inf
    settings_ = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.1} | chosen
    (drawn,) = run_op(
        "sample",
        logits,
        np.array([settings_["temperature"]] * 4, np.float32),
        np.array([settings_["top_k"]] * 4, np.int32),
        np.array([settings_["top_p"]] * 4, np.float32),
        np.array([settings_["min_p"]] * 4, np.float32),
        np.array([9] * 4, np.uint64),
        np.arange(4, dtype=np.int32),
        isa=isa,
    )
    assert ((drawn >= 0) & (drawn < 300)).all()


@pytest.mark.parametrize("isa", ISAS)
def test_a_large_vocabulary_and_threads(isa: str) -> None:
    rng = np.random.default_rng(5)
    logits = rng.standard_normal((5, 49152), dtype=np.float32)
    for chosen in ({"top_k": 50}, {"top_p": 0.9}, {"top_k": 1000, "top_p": 0.3}):
        native, reference = draw(isa, logits, 3, temperature=0.8, seed=3, **chosen)
        np.testing.assert_array_equal(native, reference)


@MANY
@given(isa=isas, seed=st.integers(0, 999), vocabulary=st.integers(1, 90))
def test_process_logits(isa: str, seed: int, vocabulary: int) -> None:
    rng = np.random.default_rng(seed)
    s, r, k, z = 4, 6, 5, 3
    operands = (
        rng.standard_normal((s, vocabulary), dtype=np.float32),
        rng.integers(0, r, s, dtype=np.int32),
        rng.integers(0, 2, (r, vocabulary), dtype=np.int32),
        rng.integers(0, 3, (r, vocabulary), dtype=np.int32),
        rng.choice(np.array([1.0, 1.3, 0.7], dtype=np.float32), s),
        rng.choice(np.array([0.0, 0.5], dtype=np.float32), s),
        rng.choice(np.array([0.0, 0.25], dtype=np.float32), s),
        rng.integers(-1, vocabulary, (s, k), dtype=np.int32),
        rng.standard_normal((s, k), dtype=np.float32),
        rng.integers(0, 5, s, dtype=np.int32),
        rng.integers(0, 5, s, dtype=np.int32),
        rng.integers(-1, vocabulary, (s, z), dtype=np.int32),
    )
    (got,) = run_op("process_logits", *operands, isa=isa)
    np.testing.assert_allclose(got, sampling.process_logits(*operands), rtol=1e-6, atol=1e-6)


@MANY
@given(isa=isas, seed=st.integers(0, 999), vocabulary=st.integers(1, 130))
def test_mask_logits(isa: str, seed: int, vocabulary: int) -> None:
    rng = np.random.default_rng(seed)
    words = -(-vocabulary // 32)
    operands = (
        rng.standard_normal((3, vocabulary), dtype=np.float32),
        np.array([2, 0, 3], dtype=np.int32),
        rng.integers(0, 2**32, (4, words), dtype=np.uint32),
        np.array([1, 0, 1, 0], dtype=np.int32),
    )
    (got,) = run_op("mask_logits", *operands, isa=isa, words=words)
    np.testing.assert_array_equal(got, sampling.mask_logits(*operands, words=words))


@pytest.mark.parametrize("read_again", [False, True])
def test_logits_are_masked_in_place_only_where_nothing_else_reads_them(read_again: bool) -> None:
    rng = np.random.default_rng(1)
    logits = rng.standard_normal((4, 64), dtype=np.float32)
    rows = np.arange(4, dtype=np.int32)
    mask = rng.integers(0, 2**32, (4, 2), dtype=np.uint32)
    active = np.array([1, 0, 1, 1], dtype=np.int32)
    kept, told = np.zeros_like(logits), np.zeros_like(logits)
    bench = Bench(ISAS[0])
    build, transport, completion = bench.builder, BufferKind.TRANSPORT, BufferKind.COMPLETION
    given = bench.buffer("logits", logits, transport, "S")
    scaled = build.value("scale", given, factor=2.0)
    masked = build.value(
        "mask_logits",
        scaled,
        bench.buffer("sampled", rows, transport, "S"),
        bench.buffer("mask", mask, transport, "B"),
        bench.buffer("active", active, transport, "B"),
        words=2,
    )
    build.op("store", masked, bench.buffer("masked", kept, completion, "S"))
    if read_again:
        build.op("store", scaled, bench.buffer("scaled", told, completion, "S"))
    views = schedule(build.build(), {}, fuse=True, numerics=PROFILES["f32"]).views
    assert (masked.name in views) == (not read_again)
    bench.run({"S": 4, "B": 4}, fuse=True)
    want = sampling.mask_logits(2 * logits, rows, mask, active, words=2)
    np.testing.assert_array_equal(kept, want)
    if read_again:
        np.testing.assert_array_equal(told, 2 * logits)


@MANY
@given(isa=isas, seed=st.integers(0, 999), vocabulary=st.integers(20, 3000))
def test_log_probabilities(isa: str, seed: int, vocabulary: int) -> None:
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((4, vocabulary), dtype=np.float32) * np.float32(4)
    logits[0, 0] = -np.inf
    tokens = rng.integers(-1, vocabulary, 4, dtype=np.int32)
    tokens[0] = vocabulary - 1
    (got,) = run_op("log_probability", logits, tokens, isa=isa)
    want = sampling.log_probability(logits, tokens)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    count = rng.integers(-1, 25, 4, dtype=np.int32)
    ids, values = run_op("top_log_probabilities", logits, count, isa=isa, maximum=20)
    want_ids, want_values = sampling.top_log_probabilities(logits, count, maximum=20)
    np.testing.assert_array_equal(ids, want_ids)
    np.testing.assert_allclose(values, want_values, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("isa", ISAS)
def test_a_row_alone_has_the_same_log_probability(isa: str) -> None:
    rng = np.random.default_rng(8)
    logits = rng.standard_normal((9, 5000), dtype=np.float32)
    tokens = rng.integers(0, 5000, 9, dtype=np.int32)
    (whole,) = run_op("log_probability", logits, tokens, isa=isa, threads=3)
    for a in range(9):
        (alone,) = run_op("log_probability", logits[a : a + 1], tokens[a : a + 1], isa=isa)
        np.testing.assert_array_equal(alone[0], whole[a])
