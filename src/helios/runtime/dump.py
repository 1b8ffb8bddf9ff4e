"""Tensors in a file: the safetensors format, small enough to write here.

A little-endian u64, that many bytes of JSON, then the tensors' bytes without holes
(https://github.com/huggingface/safetensors#format).
"""

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from helios.errors import ConfigurationError
from helios.records import dataclass
from helios.runtime.storage import Array

_MAX_HEADER = 100_000_000
_TYPES = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "I64": np.int64,
    "I32": np.int32,
    "U64": np.uint64,
    "U32": np.uint32,
    "U8": np.uint8,
}
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}


@dataclass(frozen=True, slots=True)
class Dump:
    """Named arrays and text metadata."""

    arrays: Mapping[str, Array]
    metadata: Mapping[str, str]


def write_dump(path: Path, dump: Dump) -> None:
    """Write arrays in name order."""
    header: dict[str, Any] = {"__metadata__": dict(dump.metadata)}
    offset = 0
    for name, array in sorted(dump.arrays.items()):
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, array in sorted(dump.arrays.items()):
            file.write(np.ascontiguousarray(array).tobytes())


def read_dump(path: Path) -> Dump:
    """Read a dump; `ConfigurationError` for a file that is none."""
    try:
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        if len(data) < 8 or length > min(_MAX_HEADER, len(data) - 8):
            raise ValueError("the file is shorter than its header")
        header = json.loads(data[8 : 8 + length])
        metadata = header.pop("__metadata__", {})
        body = memoryview(data)[8 + length :]
        arrays = {name: _array(entry, body) for name, entry in header.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"can't be read as a dump: {error}",
            field=str(path),
            remedy="write one with `helios run --capture`",
        ) from None
    return Dump(arrays, {str(k): str(v) for k, v in metadata.items()})


def _array(entry: Mapping[str, Any], body: memoryview) -> Array:
    start, end = entry["data_offsets"]
    shape = tuple(entry["shape"])
    dtype = np.dtype(_TYPES[entry["dtype"]])
    if not 0 <= start <= end <= len(body) or end - start != prod(shape) * dtype.itemsize:
        raise ValueError("a tensor lies outside the file")
    return np.frombuffer(body[start:end], dtype=dtype).reshape(shape)
