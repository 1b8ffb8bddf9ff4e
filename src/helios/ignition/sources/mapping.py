"""Files mapped read only, and their digests."""

import hashlib
import mmap
from pathlib import Path

from helios.errors import SourceError

_DIGEST_CHUNK = 1 << 22


def map_file(path: Path) -> memoryview:
    """The bytes of a file, mapped; the mapping lives as long as a view of it does."""
    try:
        with path.open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise SourceError(
            f"can't be read: {error}", field=str(path), remedy="give a readable, non-empty file"
        ) from None


def present(data: memoryview, start: int, end: int, name: str) -> memoryview:
    """The bytes of a tensor; `SourceError` where it is described and not there."""
    if end > len(data):
        raise SourceError(
            "the tensor is described, but its data is absent",
            field=name,
            remedy="download the whole checkpoint",
        )
    return data[start:end]


def digest(data: memoryview) -> bytes:
    """SHA-256 of a mapped file."""
    state = hashlib.sha256()
    for start in range(0, len(data), _DIGEST_CHUNK):
        state.update(data[start : start + _DIGEST_CHUNK])
    return state.digest()
