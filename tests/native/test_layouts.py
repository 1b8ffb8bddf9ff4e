"""Every stored format arrives in its layout without a changed value."""

import numpy as np
import pytest
from native_tools import QUANTISED, Packed, executor, floats, stored

from helios import _native
from helios.errors import DeviceError


@pytest.mark.parametrize("storage", [*QUANTISED, "F32", "F16", "BF16"])
@pytest.mark.parametrize("rows", [1, 16, 37])
def test_packing_keeps_every_value(storage: str, rows: int) -> None:
    rng = np.random.default_rng(rows)
    raw = stored(storage, rows, 512, rng)
    packed = Packed(executor("baseline", 2), storage, raw, 512)
    np.testing.assert_array_equal(packed.floats(), floats(storage, raw))


@pytest.mark.parametrize("storage", ["Q8_0", "Q4_K", "F16", "BF16", "F32"])
def test_flat_is_plain_float32(storage: str) -> None:
    raw = stored(storage, 5, 256, np.random.default_rng(0))
    packed = Packed(executor("baseline"), storage, raw, 256, "FLAT")
    np.testing.assert_array_equal(
        packed.data.view(np.float32).reshape(5, 256), floats(storage, raw)
    )


def test_sixteen_bit_floats_widen_to_f32() -> None:
    raw = stored("BF16", 18, 40, np.random.default_rng(0))
    packed = Packed(executor("baseline"), "BF16", raw, 40, "F32")
    np.testing.assert_array_equal(packed.floats(), floats("BF16", raw))


@pytest.mark.parametrize(
    ("storage", "layout"), [("Q4_K", "W4G32"), ("Q8_0", "W4G32"), ("F32", "W8G32"), ("F32", "BF16")]
)
def test_a_layout_that_would_lose_values_is_refused(storage: str, layout: str) -> None:
    raw = stored(storage, 16, 256, np.random.default_rng(0))
    with pytest.raises(DeviceError, match="does not hold"):
        Packed(executor("baseline"), storage, raw, 256, layout)


def test_a_scale_that_overflows_the_layout_is_refused() -> None:
    raw = stored("Q4_0", 16, 32, np.random.default_rng(0))
    raw[3, :2] = np.frombuffer(np.float16(60000).tobytes(), dtype=np.uint8)
    with pytest.raises(DeviceError, match="16 bits"):
        Packed(executor("baseline"), "Q4_0", raw, 32)


def test_more_columns_than_memory_holds_are_refused_even_without_rows() -> None:
    with pytest.raises(DeviceError, match="there is no matrix of 0 rows"):
        _native.packed_bytes("F32", 0, 2**63 - 1)


def test_a_source_of_another_size_is_refused() -> None:
    runner = executor("baseline")
    out = np.zeros(4096, dtype=np.uint8)
    with pytest.raises(DeviceError, match="take 576 bytes"):
        runner.pack("Q4_0", "W4G32", 32, 32, np.zeros(575, dtype=np.uint8), out.ctypes.data)
    with pytest.raises(DeviceError, match="multiple of 32"):
        _native.stored_row_bytes("Q4_0", 33)
    with pytest.raises(DeviceError, match="unknown storage"):
        _native.natural_layout("Q1_X")
