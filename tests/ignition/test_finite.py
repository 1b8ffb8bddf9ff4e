"""What counts as finite is what the `gguf` package dequantises to finite numbers."""

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.contract.kinds import SOURCE_STORAGES, WeightStorage
from helios.contract.rules.resources import BLOCKS
from helios.errors import SourceError
from helios.ignition.finite import check_finite

# The package reads an MXFP4 exponent of 255 as a number; the format (OCP MX 1.0) says NaN.
STORAGES = [s for s in SOURCE_STORAGES if s is not WeightStorage.MXFP4]


@pytest.mark.parametrize("storage", STORAGES, ids=lambda s: s.name)
@settings(max_examples=60, derandomize=True, deadline=None)
@given(data=st.data())
def test_refused_exactly_where_dequantising_overflows(
    storage: WeightStorage, data: st.DataObject
) -> None:
    seed = data.draw(st.integers(0, 1 << 16))
    raw = np.random.default_rng(seed).integers(0, 256, 3 * BLOCKS[storage][1], dtype=np.uint8)
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(raw) - 2))
        raw[at : at + 2] = (0x00, data.draw(st.sampled_from((0x7C, 0xFC, 0x7E, 0x7F))))
    with np.errstate(all="ignore"):
        values = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[storage.name])
    assert refuses(storage, raw) == (not np.isfinite(values).all())


def test_a_nan_exponent_is_refused() -> None:
    raw = np.zeros(34, np.uint8)
    assert not refuses(WeightStorage.MXFP4, raw)
    raw[17] = 255
    assert refuses(WeightStorage.MXFP4, raw)


def refuses(storage: WeightStorage, raw: np.ndarray) -> bool:
    try:
        check_finite("x", storage, memoryview(raw))
    except SourceError as error:
        return error.field == "x"
    return False
