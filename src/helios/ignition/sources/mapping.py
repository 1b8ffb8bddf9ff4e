"""Files mapped read only, and their digests."""

import hashlib
import mmap
from pathlib import Path

from helios.errors import SourceError

_DIGEST_CHUNK = 1 << 22
_POINTER = b"version https://git-lfs.github.com/spec/"


def map_file(path: Path) -> memoryview:
    """The bytes of a file, mapped; the mapping lives as long as a view of it does.

    Raises `SourceError` for a file that can't be read, and for one that only stands for its
    content, as a clone without Git's large-file extension leaves it.
    """
    try:
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise SourceError(
            f"can't be read: {error}", field=str(path), remedy="give a readable, non-empty file"
        ) from None
    if bytes(data[: len(_POINTER)]) == _POINTER:
        raise SourceError(
            "is a pointer to a large file, not the file",
            field=str(path),
            remedy="run git lfs pull in its folder, or download it",
        )
    return data


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
