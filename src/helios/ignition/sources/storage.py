"""How many bytes a tensor takes in its storage."""

from math import prod

from helios.contract.kinds import WeightStorage
from helios.contract.rules.resources import BLOCKS
from helios.errors import SourceError


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
