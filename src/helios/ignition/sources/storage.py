"""How a tensor's numbers are stored: block geometry of every supported weight storage."""

from enum import IntEnum
from math import prod

from helios.errors import SourceError
from helios.schema import manifest_pb2 as pb


class Storage(IntEnum):
    """Weight storages, numbered as on the wire."""

    F32 = pb.WEIGHT_STORAGE_F32
    F16 = pb.WEIGHT_STORAGE_F16
    BF16 = pb.WEIGHT_STORAGE_BF16
    Q8_0 = pb.WEIGHT_STORAGE_Q8_0
    Q4_0 = pb.WEIGHT_STORAGE_Q4_0
    Q4_1 = pb.WEIGHT_STORAGE_Q4_1
    Q5_0 = pb.WEIGHT_STORAGE_Q5_0
    Q5_1 = pb.WEIGHT_STORAGE_Q5_1
    Q2_K = pb.WEIGHT_STORAGE_Q2_K
    Q3_K = pb.WEIGHT_STORAGE_Q3_K
    Q4_K = pb.WEIGHT_STORAGE_Q4_K
    Q5_K = pb.WEIGHT_STORAGE_Q5_K
    Q6_K = pb.WEIGHT_STORAGE_Q6_K
    IQ4_NL = pb.WEIGHT_STORAGE_IQ4_NL
    MXFP4 = pb.WEIGHT_STORAGE_MXFP4

    @property
    def block(self) -> tuple[int, int]:
        """Elements and bytes of one block; blocks run along the innermost dimension."""
        return _BLOCKS[self]


_BLOCKS = {
    Storage.F32: (1, 4),
    Storage.F16: (1, 2),
    Storage.BF16: (1, 2),
    Storage.Q8_0: (32, 34),
    Storage.Q4_0: (32, 18),
    Storage.Q4_1: (32, 20),
    Storage.Q5_0: (32, 22),
    Storage.Q5_1: (32, 24),
    Storage.Q2_K: (256, 84),
    Storage.Q3_K: (256, 110),
    Storage.Q4_K: (256, 144),
    Storage.Q5_K: (256, 176),
    Storage.Q6_K: (256, 210),
    Storage.IQ4_NL: (32, 18),
    Storage.MXFP4: (32, 17),
}


def stored_nbytes(name: str, storage: Storage, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor of that storage and logical shape (outermost first).

    Raises `SourceError` where a row is not a whole number of blocks.
    """
    elements, nbytes = storage.block
    if shape[-1] % elements:
        raise SourceError(
            f"rows of {storage.name} must be whole blocks of {elements} elements",
            field=name,
            value=shape,
            remedy="convert the checkpoint again",
        )
    return prod(shape) // elements * nbytes
