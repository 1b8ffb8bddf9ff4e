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

from helios.contract.operation import Operation
from helios.errors import DeviceError, UnsupportedOperationError
from helios.program.builder import ProgramBuilder
from helios.program.ir import BufferKind, DType, ExtentKind
from helios.runtime.cpu.numerics import PROFILES, Numerics
from helios.runtime.cpu.pages import key_planes
from helios.runtime.reference import network

PAGES = [8, 5, 32]  # tokens: halves of the widest vectors, odd, and whole vectors
F32, A8 = PROFILES["f32"], PROFILES["a8"]


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
    page: int = PAGES[0],
) -> Case:
    """`histories`: for each row, tokens already there and tokens that are new."""
    rng = np.random.default_rng(seed)
    slots = rng.permutation(len(histories) + 2)[: len(histories)].astype(np.int32)
    columns = max(-(-(old + new) // page) for old, new in histories)
    pages = rng.permutation(len(histories) * columns + 3).astype(np.int32)
    table = np.full((len(histories) + 2, columns), -1, dtype=np.int32)
    for row, slot in enumerate(slots):
        used = -(-sum(histories[row]) // page)
        table[slot, :used] = pages[row * columns : row * columns + used]
    rows = [np.full(new, row) for row, (_, new) in enumerate(histories)]
    positions = [np.arange(old, old + new) for old, new in histories]
    count = sum(new for _, new in histories)
    planes = rng.standard_normal((2, len(pages), page, key_heads, dim), dtype=np.float32)
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


def in_pairs(plane: NDArray[Any], isa: str, numerics: Numerics) -> bool:
    """Whether the runtime keeps such a plane as pairs of bfloat16 numbers."""
    wanted = isa == "avx512bf16" and numerics.bfloat16 and plane.dtype != np.float32
    return wanted and plane.shape[1] % 2 == 0 and plane.shape[3] % 2 == 0


def laid_out(plane: NDArray[Any], isa: str, numerics: Numerics, *, keys: bool) -> NDArray[Any]:
    """A plane [N, L, G, D] as it lies in memory, in an array of the same shape and type."""
    shape, dtype = plane.shape, plane.dtype
    by_head = plane.transpose(0, 2, 1, 3)  # [N, G, L, D]
    if in_pairs(plane, isa, numerics):
        floats = network.from_storage(np.ascontiguousarray(by_head))
        by_head = network.to_storage(floats, np.dtype(np.uint16))
        n, g, length, d = by_head.shape
        if keys:
            by_head = by_head.reshape(n, g, length, d // 2, 2).transpose(0, 1, 3, 2, 4)
        else:
            by_head = by_head.reshape(n, g, length // 2, 2, d).swapaxes(3, 4)
    elif keys:
        by_head = by_head.swapaxes(2, 3)
    return np.ascontiguousarray(by_head).view(dtype).reshape(shape)


def attend(
    c: Case, isa: str, threads: int = 1, numerics: Numerics = F32, **attributes: Any
) -> NDArray[np.float32]:
    given_ = {"scale": 0.2, "window": 0, "softcap": 0.0} | attributes
    operands = list(c.operands()[: 8 if c.sinks is not None else 7])
    for place, keys in ((5, True), (6, False)):
        operands[place] = laid_out(operands[place], isa, numerics, keys=keys)
    where: dict[str, Any] = {"isa": isa, "threads": threads, "numerics": numerics}
    (y,) = run_op("paged_attention", *operands, **where, **given_)
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
    page=st.sampled_from(PAGES),
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
    page: int,
) -> None:
    c = case(histories, *shape, dtype=dtype, sinks=sinks, seed=seed, page=page)
    got = attend(c, isa, window=window, softcap=softcap)
    want = expected(c, window=window, softcap=softcap)
    assert np.abs(got - want).max() <= 2e-5 * max(np.abs(want).max(), 1.0)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("window", [0, 300])
def test_long_histories_cross_spans(isa: str, window: int) -> None:
    c = case([(700, 20), (255, 2), (0, 300)], 6, 2, 64)
    got, want = attend(c, isa, window=window), expected(c, window=window)
    assert np.abs(got - want).max() <= 2e-5


def rounded(x: NDArray[Any]) -> NDArray[np.float32]:
    """To bfloat16 and back."""
    floats = np.ascontiguousarray(network.from_storage(x), dtype=np.float32)
    return network.from_storage(network.to_storage(floats, np.dtype(np.uint16)))


@pytest.mark.skipif("avx512bf16" not in ISAS, reason="needs products of bfloat16")
@settings(max_examples=40, derandomize=True, deadline=None)
@given(
    histories=st.lists(st.tuples(st.integers(0, 90), st.integers(1, 20)), min_size=1, max_size=4),
    shape=st.sampled_from(
        [(4, 2, 32), (3, 3, 64), (8, 1, 40), (9, 3, 80), (2, 2, 256), (4, 4, 10)]
    ),
    dtype=st.sampled_from([np.float16, np.uint16]),
    window=st.sampled_from([0, 1, 5, 33, 70]),
    softcap=st.sampled_from([0.0, 2.0]),
    sinks=st.booleans(),
    seed=st.integers(0, 99),
    page=st.sampled_from([8, 6, 32]),
)
def test_products_of_bfloat16_round_what_they_multiply_and_nothing_else(
    histories: list[tuple[int, int]],
    shape: tuple[int, int, int],
    dtype: Any,
    window: int,
    softcap: float,
    sinks: bool,
    seed: int,
    page: int,
) -> None:
    c = case(histories, *shape, dtype=dtype, sinks=sinks, seed=seed, page=page)
    got = attend(c, "avx512bf16", numerics=A8, window=window, softcap=softcap)
    c.q = rounded(c.q * np.float32(0.2))
    c.keys, c.values = rounded(c.keys), rounded(c.values)
    want = expected(c, scale=1.0, window=window, softcap=softcap)
    c.values = np.abs(c.values)
    magnitude = expected(c, scale=1.0, window=window, softcap=softcap)
    # The weights of the values are rounded, too, to 8 bits; their sum is not.
    assert (np.abs(got - want) <= 2.0**-8 * magnitude + 2e-5).all()
    assert not np.array_equal(got, attend(c, "avx512bf16", window=window, softcap=softcap))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    ("dtype", "dim", "page"), [(np.float32, 32, 8), (np.float16, 9, 8), (np.float16, 32, 5)]
)
def test_what_makes_no_pairs_is_multiplied_in_float32(
    isa: str, dtype: Any, dim: int, page: int
) -> None:
    c = case([(50, 20)], dim=dim, dtype=dtype, page=page)
    np.testing.assert_array_equal(attend(c, isa, numerics=A8), attend(c, isa))


@pytest.mark.parametrize("numerics", [F32, A8])
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("window", [0, 40, 400])
@pytest.mark.parametrize("shape", [(6, 2, 64), (9, 3, 80), (8, 2, 9)])
@pytest.mark.parametrize("page", PAGES)
def test_a_token_alone_has_the_bits_it_has_in_a_batch(
    isa: str, numerics: Numerics, window: int, shape: tuple[int, int, int], page: int
) -> None:
    c = case([(600, 40), (3, 1), (70, 5)], *shape, sinks=True, page=page)
    how: dict[str, Any] = {"isa": isa, "numerics": numerics, "window": window}
    whole = attend(c, **how)
    for begin, end in [(0, 1), (39, 40), (40, 41), (13, 22), (41, 46), (10, 46)]:
        np.testing.assert_array_equal(attend(c.only(slice(begin, end)), **how), whole[begin:end])
    for threads in (2, 3):
        np.testing.assert_array_equal(attend(c, threads=threads, **how), whole)
        last = c.only(slice(39, 40))
        np.testing.assert_array_equal(attend(last, threads=threads, **how), whole[39:40])


@pytest.mark.parametrize("numerics", [F32, A8])
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("histories", [[(2100, 1)], [(40 * i, 1) for i in range(9)]])
def test_decoding_rows_have_the_same_bits_on_any_number_of_threads(
    isa: str, numerics: Numerics, histories: list[tuple[int, int]]
) -> None:
    c = case(histories, 14, 2, 32)
    how: dict[str, Any] = {"isa": isa, "numerics": numerics}
    whole = attend(c, **how)
    assert np.abs(whole - expected(c)).max() <= (2e-5 if numerics is F32 else 2e-2)
    for threads in (2, 3):
        np.testing.assert_array_equal(attend(c, threads=threads, **how), whole)
    for token in range(len(histories)):
        np.testing.assert_array_equal(
            attend(c.only(slice(token, token + 1)), **how), whole[token : token + 1]
        )


@pytest.mark.parametrize("numerics", [F32, A8])
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("page", PAGES)
def test_unused_memory_is_never_read_into_a_result(isa: str, numerics: Numerics, page: int) -> None:
    c = case([(5, 1), (20, 3)], 4, 2, 32, page=page)
    clean = attend(c, isa, numerics=numerics)
    keys, values = c.keys.copy(), c.values.copy()
    for plane in (keys, values):
        seen = np.zeros(plane.shape[:2], dtype=bool)
        for row, slot in enumerate(c.slots):
            for p in range(int(c.positions[c.rows == row].max()) + 1):
                seen[c.table[slot, p // page], p % page] = True
        plane[~seen] = np.nan
    dirty = Case(c.q, c.rows, c.positions, c.slots, c.table, keys, values, None)
    np.testing.assert_array_equal(attend(dirty, isa, numerics=numerics), clean)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("keys", [True, False])
@pytest.mark.parametrize("numerics", [F32, A8])
@pytest.mark.parametrize("dtype", [np.float16, np.uint16, np.float32])
@pytest.mark.parametrize("dim", [64, 9])
@pytest.mark.parametrize("page", PAGES)
def test_cache_write(
    isa: str, keys: bool, numerics: Numerics, dtype: Any, dim: int, page: int
) -> None:
    c = case([(13, 9), (0, 1), (8, 40)], 2, 2, dim, dtype, page=page)
    x = np.random.default_rng(3).standard_normal((len(c.rows), 2, dim), dtype=np.float32)
    x.reshape(-1)[:4] = [0.0, -0.0, 1e-7, 60000.0]
    where = (c.rows, c.positions, c.slots, c.table)
    got = np.zeros_like(c.keys)
    planes = frozenset({"plane"} if keys else ())
    run_op("cache_write", x, *where, got, isa=isa, numerics=numerics, keys=planes)
    pairs = in_pairs(got, isa, numerics)
    want = np.zeros(got.shape, dtype=np.uint16 if pairs else dtype)
    network.cache_write(x, *where, want)
    want = laid_out(want, isa, numerics, keys=keys)
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


def test_a_plane_is_for_keys_or_for_values() -> None:
    b = ProgramBuilder("shared", Operation.DECODE)
    for name in ("B", "T"):
        b.extent(name, ExtentKind.DYNAMIC, 8)
    plane = b.buffer("plane", BufferKind.CACHE, DType.F16, (4, 8, 2, 32))
    integers = {"rows": "T", "positions": "T", "slots": "B"}
    given = [
        b.buffer(name, BufferKind.TRANSPORT, DType.I32, (lead,)) for name, lead in integers.items()
    ]
    table = b.buffer("table", BufferKind.TRANSPORT, DType.I32, (4, 2))
    q = b.buffer("q", BufferKind.TRANSPORT, DType.F32, ("T", 2, 32))
    b.value("paged_attention", q, *given, table, plane, plane, scale=1.0, window=0, softcap=0.0)
    with pytest.raises(UnsupportedOperationError, match="reads plane as both"):
        key_planes([b.build()])


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
