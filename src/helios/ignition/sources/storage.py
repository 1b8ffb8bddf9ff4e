"""How a tensor's numbers are stored: block geometry of every supported weight storage."""

from math import prod

from helios.contract.kinds import WeightStorage
from helios.errors import SourceError

# Elements and bytes of one block; blocks run along the innermost dimension.
BLOCKS = {
    WeightStorage.F32: (1, 4),
    WeightStorage.F16: (1, 2),
    WeightStorage.BF16: (1, 2),
    WeightStorage.Q8_0: (32, 34),
    WeightStorage.Q4_0: (32, 18),
    WeightStorage.Q4_1: (32, 20),
    WeightStorage.Q5_0: (32, 22),
    WeightStorage.Q5_1: (32, 24),
    WeightStorage.Q2_K: (256, 84),
    WeightStorage.Q3_K: (256, 110),
    WeightStorage.Q4_K: (256, 144),
    WeightStorage.Q5_K: (256, 176),
    WeightStorage.Q6_K: (256, 210),
    WeightStorage.IQ4_NL: (32, 18),
    WeightStorage.MXFP4: (32, 17),
}


def stored_nbytes(name: str, storage: WeightStorage, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor of that storage and logical shape (outermost first).

    Raises `SourceError` where a row is not a whole number of blocks.
    """
    elements, nbytes = BLOCKS[storage]
    if shape[-1] % elements:
        raise SourceError(
            f"rows of {storage.name} must be whole blocks of {elements} elements",
            field=name,
            value=shape,
            remedy="convert the checkpoint again",
        )
    return prod(shape) // elements * nbytes
