"""Are a tensor's stored numbers finite? Floats themselves, or the scales of quantised blocks."""

import numpy as np
import numpy.typing as npt

from helios.contract.kinds import WeightStorage
from helios.contract.rules.resources import BLOCKS
from helios.errors import SourceError

# Byte offsets of the half-precision scales and minima within a block.
_SCALES = {
    WeightStorage.Q8_0: (0,),
    WeightStorage.Q4_0: (0,),
    WeightStorage.Q4_1: (0, 2),
    WeightStorage.Q5_0: (0,),
    WeightStorage.Q5_1: (0, 2),
    WeightStorage.Q2_K: (80, 82),
    WeightStorage.Q3_K: (108,),
    WeightStorage.Q4_K: (0, 2),
    WeightStorage.Q5_K: (0, 2),
    WeightStorage.Q6_K: (208,),
    WeightStorage.IQ4_NL: (0,),
}
_EXPONENT_F16, _EXPONENT_BF16, _EXPONENT_F32 = 0x7C00, 0x7F80, 0x7F800000
_MXFP4_NAN = 0xFF


def check_finite(name: str, storage: WeightStorage, data: memoryview) -> None:
    """Raise `SourceError` naming the tensor unless every number of whole blocks is finite."""
    bad = _not_finite(storage, np.frombuffer(data, np.uint8))
    if bad:
        raise SourceError(
            f"holds {bad} values or scales that are not finite",
            field=name,
            value=storage.name,
            remedy="the checkpoint is damaged or overflowed; convert or download it again",
        )


def _not_finite(storage: WeightStorage, raw: npt.NDArray[np.uint8]) -> int:
    """How many stored floats or scales have an all-ones exponent."""
    match storage:
        case WeightStorage.F32:
            return _count(raw.view("<u4"), _EXPONENT_F32)
        case WeightStorage.F16:
            return _count(raw.view("<u2"), _EXPONENT_F16)
        case WeightStorage.BF16:
            return _count(raw.view("<u2"), _EXPONENT_BF16)
    blocks = raw.reshape(-1, BLOCKS[storage][1])
    if storage is WeightStorage.MXFP4:
        return int((blocks[:, 0] == _MXFP4_NAN).sum())
    scales = [blocks[:, offset : offset + 2] for offset in _SCALES[storage]]
    return sum(_count(np.ascontiguousarray(s).view("<u2"), _EXPONENT_F16) for s in scales)


def _count(bits: npt.NDArray[np.unsignedinteger], exponent: int) -> int:
    return int(((bits & exponent) == exponent).sum())
