"""Packed layout, state rows and pages against the reference runtime."""

import numpy as np
import pytest
from native_programs import run_op
from native_tools import ISAS

from helios.errors import DeviceError
from helios.runtime.reference import state

ISA = ISAS[0]


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def test_packed_layout() -> None:
    lengths, endpoints = ints(3, 1, 0, 5), ints(10, 0, 7, 2)
    got = run_op("token_rows", lengths, endpoints, isa=ISA, tokens="T")
    for a, b in zip(got, state.token_rows(lengths, endpoints, tokens="T"), strict=True):
        np.testing.assert_array_equal(a, b)
    rows, pending = got[0], ints(7, 8, 9, 10)
    tokens = ints(-1, 4, 5, -1, 1, 2, -1, 3, 3)
    (resolved,) = run_op("resolve_tokens", tokens, rows, pending, isa=ISA)
    np.testing.assert_array_equal(resolved, state.resolve_tokens(tokens, rows, pending))
    for sampled in (ints(0, 1, 3), ints(3, 0), ints(1)):
        (last,) = run_op("last_tokens", lengths, sampled, isa=ISA)
        np.testing.assert_array_equal(last, state.last_tokens(lengths, sampled))
    (total,) = run_op("add_integers", lengths, endpoints, isa=ISA)
    np.testing.assert_array_equal(total, lengths + endpoints)
    (one,) = run_op("ones", lengths, isa=ISA)
    np.testing.assert_array_equal(one, ints(1, 1, 1, 1))


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint64])
@pytest.mark.parametrize("inner", [(), (5,), (3, 70)])
def test_rows_are_read_written_and_cleared(dtype: type, inner: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    store = rng.integers(0, 99, (6, *inner)).astype(dtype)
    rows = ints(4, 0, 2)
    (got,) = run_op("state_read", store, rows, isa=ISA)
    np.testing.assert_array_equal(got, store[rows])
    value = rng.integers(0, 99, (3, *inner)).astype(dtype)
    want = store.copy()
    want[rows] = value
    run_op("state_write", store, rows, value, isa=ISA)
    np.testing.assert_array_equal(store, want)
    want[rows] = 0
    run_op("state_clear", store, rows, isa=ISA)
    np.testing.assert_array_equal(store, want)


def test_counters_and_histograms() -> None:
    counter = ints(5, 6, 7)
    run_op("state_add", counter, ints(2, 0), ints(10, -1), isa=ISA)
    np.testing.assert_array_equal(counter, [4, 6, 17])
    histogram = np.zeros((3, 9), dtype=np.int32)
    run_op("histogram_add", histogram, ints(1, 1, 2), ints(8, 8, 0), isa=ISA)
    assert histogram[1, 8] == 2
    assert histogram[2, 0] == 1
    assert histogram.sum() == 3


def test_current_page() -> None:
    slots, endpoints, selector = ints(2, 0, 1, 1), ints(17, 16, 5, 5), ints(0, 0, -1, 4)
    table = np.arange(12, dtype=np.int32).reshape(3, 4) + 100
    (page,) = run_op("current_page", slots, endpoints, selector, table, isa=ISA, page_tokens=8)
    np.testing.assert_array_equal(
        page, state.current_page(slots, endpoints, selector, table, page_tokens=8)
    )


def test_pages_are_saved_and_loaded() -> None:
    rng = np.random.default_rng(1)
    plane = rng.standard_normal((5, 4, 2, 3)).astype(np.float16)
    kept = np.zeros((2, 4, 2, 3), dtype=np.float16)
    run_op("page_save", plane, ints(3, -1, 2), kept, ints(1, 0, -1), isa=ISA)
    np.testing.assert_array_equal(kept[1], plane[3])
    assert not kept[0].any()
    run_op("page_load", kept, ints(1), plane, ints(0), isa=ISA)
    np.testing.assert_array_equal(plane[0], plane[3])


def test_store_copies_the_rows_of_a_step() -> None:
    value = np.arange(6, dtype=np.float32).reshape(3, 2)
    record = np.zeros((3, 2), dtype=np.float32)
    run_op("store", value, record, isa=ISA)
    np.testing.assert_array_equal(record, value)


def test_indices_out_of_range_are_refused() -> None:
    store = ints(1, 2, 3)
    with pytest.raises(DeviceError, match="must lie between 0 and 2, got 3"):
        run_op("state_read", store, ints(0, 3), isa=ISA)
    with pytest.raises(DeviceError, match="got -1"):
        run_op("state_write", store, ints(-1), ints(0), isa=ISA)
    with pytest.raises(DeviceError, match="got 9"):
        run_op("histogram_add", np.zeros((2, 9), dtype=np.int32), ints(0), ints(9), isa=ISA)
    with pytest.raises(DeviceError, match="tokens"):
        run_op("embedding", ints(50), np.zeros((4, 8), dtype=np.float32), isa=ISA, scale=1.0)
