"""Paged attention against the reference runtime, and the same bits however it is cut."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_programs import run_op
from native_tools import ISAS
from numpy.typing import NDArray

from helios.errors import DeviceError
from helios.runtime.reference import network

PAGE = 8


@dataclass
class Case:
    """Rows with histories in shuffled pages, and the queries of their newest tokens."""

    q: NDArray[np.float32]
    rows: NDArray[np.int32]
    positions: NDArray[np.int32]
    slots: NDArray[np.int32]
    table: NDArray[np.int32]
    keys: NDArray[Any]
    values: NDArray[Any]
    sinks: NDArray[np.float32] | None

    def operands(self) -> tuple[Any, ...]:
        return (
            self.q,
            self.rows,
            self.positions,
            self.slots,
            self.table,
            self.keys,
            self.values,
            self.sinks,
        )

    def only(self, tokens: slice) -> "Case":
        return Case(
            self.q[tokens].copy(),
            self.rows[tokens].copy(),
            self.positions[tokens].copy(),
            self.slots,
            self.table,
            self.keys,
            self.values,
            self.sinks,
        )


def case(
    histories: list[tuple[int, int]],
    heads: int = 4,
    key_heads: int = 2,
    dim: int = 32,
    dtype: Any = np.float16,
    sinks: bool = False,
    seed: int = 0,
) -> Case:
    """`histories`: for each row, tokens already there and tokens that are new."""
    rng = np.random.default_rng(seed)
    slots = rng.permutation(len(histories) + 2)[: len(histories)].astype(np.int32)
    columns = max(-(-(old + new) // PAGE) for old, new in histories)
    pages = rng.permutation(len(histories) * columns + 3).astype(np.int32)
    table = np.full((len(histories) + 2, columns), -1, dtype=np.int32)
    for row, slot in enumerate(slots):
        used = -(-sum(histories[row]) // PAGE)
        table[slot, :used] = pages[row * columns : row * columns + used]
    rows = [np.full(new, row) for row, (_, new) in enumerate(histories)]
    positions = [np.arange(old, old + new) for old, new in histories]
    count = sum(new for _, new in histories)
    planes = rng.standard_normal((2, len(pages), PAGE, key_heads, dim), dtype=np.float32)
    stored = network.to_storage(planes, np.dtype(dtype))
    return Case(
        rng.standard_normal((count, heads, dim), dtype=np.float32),
        np.concatenate(rows).astype(np.int32),
        np.concatenate(positions).astype(np.int32),
        slots,
        table,
        stored[0],
        stored[1],
        rng.standard_normal(heads, dtype=np.float32) if sinks else None,
    )


def attend(c: Case, isa: str, threads: int = 1, **attributes: Any) -> NDArray[np.float32]:
    given_ = {"scale": 0.2, "window": 0, "softcap": 0.0} | attributes
    operands = c.operands()[: 8 if c.sinks is not None else 7]
    (y,) = run_op("paged_attention", *operands, isa=isa, threads=threads, **given_)
    return y


def expected(c: Case, **attributes: Any) -> NDArray[np.float32]:
    given_ = {"scale": 0.2, "window": 0, "softcap": 0.0} | attributes
    return network.paged_attention(*c.operands(), **given_)


@settings(max_examples=40, derandomize=True, deadline=None)
@given(
    isa=st.sampled_from(ISAS),
    histories=st.lists(st.tuples(st.integers(0, 90), st.integers(1, 20)), min_size=1, max_size=4),
    shape=st.sampled_from([(4, 2, 32), (3, 3, 64), (8, 1, 40), (9, 3, 64), (2, 2, 256), (4, 4, 9)]),
    dtype=st.sampled_from([np.float16, np.uint16, np.float32]),
    window=st.sampled_from([0, 1, 5, 33, 70]),
    softcap=st.sampled_from([0.0, 2.0]),
    sinks=st.booleans(),
    seed=st.integers(0, 99),
)
def test_matches_the_reference(
    isa: str,
    histories: list[tuple[int, int]],
    shape: tuple[int, int, int],
    dtype: Any,
    window: int,
    softcap: float,
    sinks: bool,
    seed: int,
) -> None:
    c = case(histories, *shape, dtype=dtype, sinks=sinks, seed=seed)
    got = attend(c, isa, window=window, softcap=softcap)
    want = expected(c, window=window, softcap=softcap)
    assert np.abs(got - want).max() <= 2e-5 * max(np.abs(want).max(), 1.0)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("window", [0, 300])
def test_long_histories_cross_spans(isa: str, window: int) -> None:
    c = case([(700, 20), (255, 2), (0, 300)], 6, 2, 64)
    got, want = attend(c, isa, window=window), expected(c, window=window)
    assert np.abs(got - want).max() <= 2e-5


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("window", [0, 40, 400])
def test_a_token_alone_has_the_bits_it_has_in_a_batch(isa: str, window: int) -> None:
    c = case([(600, 40), (3, 1), (70, 5)], 6, 2, 64, sinks=True)
    whole = attend(c, isa, window=window)
    for begin, end in [(0, 1), (39, 40), (40, 41), (13, 22), (41, 46), (10, 46)]:
        np.testing.assert_array_equal(
            attend(c.only(slice(begin, end)), isa, window=window), whole[begin:end]
        )
    for threads in (2, 3):
        np.testing.assert_array_equal(attend(c, isa, threads, window=window), whole)
        last = c.only(slice(39, 40))
        np.testing.assert_array_equal(attend(last, isa, threads, window=window), whole[39:40])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("histories", [[(2100, 1)], [(40 * i, 1) for i in range(9)]])
def test_decoding_rows_have_the_same_bits_on_any_number_of_threads(
    isa: str, histories: list[tuple[int, int]]
) -> None:
    c = case(histories, 14, 2, 32)
    whole = attend(c, isa)
    assert np.abs(whole - expected(c)).max() <= 2e-5
    for threads in (2, 3):
        np.testing.assert_array_equal(attend(c, isa, threads), whole)
    for token in range(len(histories)):
        np.testing.assert_array_equal(
            attend(c.only(slice(token, token + 1)), isa), whole[token : token + 1]
        )


@pytest.mark.parametrize("isa", ISAS)
def test_unused_memory_is_never_read_into_a_result(isa: str) -> None:
    c = case([(5, 1), (20, 3)], 4, 2, 32)
    clean = attend(c, isa)
    keys, values = c.keys.copy(), c.values.copy()
    for plane in (keys, values):
        seen = np.zeros(plane.shape[:2], dtype=bool)
        for row, slot in enumerate(c.slots):
            for p in range(int(c.positions[c.rows == row].max()) + 1):
                seen[c.table[slot, p // PAGE], p % PAGE] = True
        plane[~seen] = np.nan
    dirty = Case(c.q, c.rows, c.positions, c.slots, c.table, keys, values, None)
    np.testing.assert_array_equal(attend(dirty, isa), clean)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", [np.float16, np.uint16, np.float32])
@pytest.mark.parametrize("dim", [64, 9])
def test_cache_write(isa: str, dtype: Any, dim: int) -> None:
    c = case([(13, 9), (0, 1), (8, 40)], 2, 2, dim, dtype)
    x = np.random.default_rng(3).standard_normal((len(c.rows), 2, dim), dtype=np.float32)
    x.reshape(-1)[:4] = [0.0, -0.0, 1e-7, 60000.0]
    got, want = c.keys.copy(), c.keys.copy()
    where = (c.rows, c.positions, c.slots, c.table)
    run_op("cache_write", x, *where, got, isa=isa)
    network.cache_write(x, *where, want)
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


def test_indices_out_of_range_are_refused() -> None:
    c = case([(5, 2)])
    broken = [
        ("slots", np.array([9], dtype=np.int32)),
        ("rows", np.array([0, 1], dtype=np.int32)),
        ("positions", np.array([5, 600], dtype=np.int32)),
        ("table", np.full_like(c.table, 1000)),
    ]
    for name, value in broken:
        wrong = case([(5, 2)])
        setattr(wrong, name, value)
        with pytest.raises(DeviceError, match="must lie between"):
            attend(wrong, ISAS[0])
