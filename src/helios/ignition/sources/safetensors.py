"""Safetensors files: a bounded header reader over a mapping.

The format is a little-endian u64, that many bytes of JSON, then tensor data without holes
(https://github.com/huggingface/safetensors#format).
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NoReturn

from helios.contract.kinds import WeightStorage
from helios.errors import SourceError
from helios.ignition.sources.mapping import map_file, present
from helios.ignition.sources.source import SourceTensor
from helios.ignition.sources.storage import stored_nbytes

MAX_HEADER = 100_000_000  # the format's own limit
MAX_DIMENSIONS = 8
_DTYPES = {"F32": WeightStorage.F32, "F16": WeightStorage.F16, "BF16": WeightStorage.BF16}


def _any(name: str) -> bool:
    return True


def read_safetensors(
    path: Path, *, complete: bool = True, wanted: Callable[[str], bool] = _any
) -> Mapping[str, SourceTensor]:
    """The wanted tensors of one file, mapped; raises `SourceError` for a file that is not sound.

    Tensors that nobody wants may have any type and shape. Without `complete`, the file may end
    anywhere after its header.
    """
    data = map_file(path)
    header, start = _header(data, path.name)
    spans: dict[str, tuple[int, int]] = {}
    tensors: dict[str, SourceTensor] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if not isinstance(entry, dict):
            _refuse(path.name, name, "must be described by an object", entry)
        spans[name] = span = _span(name, entry, data[start:], path.name, complete)
        if wanted(name):
            tensors[name] = _tensor(name, entry, data[start:], span, path.name)
    size = len(data) - start if complete else max((end for _, end in spans.values()), default=0)
    _check_spans(spans, size, path.name)
    return tensors


def _header(data: memoryview, origin: str) -> tuple[Mapping[str, object], int]:
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(MAX_HEADER, len(data) - 8):
        _refuse(origin, "header length", "the file is shorter than its header", length)
    try:
        header = json.loads(bytes(data[8 : 8 + length]), object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        _refuse(origin, "header", f"not a JSON header: {error}", None)
    if not isinstance(header, dict):
        _refuse(origin, "header", "must be a JSON object", type(header).__name__)
    return header, 8 + length


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def _span(
    name: str, entry: Mapping[str, object], data: memoryview, origin: str, complete: bool
) -> tuple[int, int]:
    offsets = _integers(entry.get("data_offsets"), name, origin)
    if len(offsets) != 2 or offsets[0] > offsets[1] or (complete and offsets[1] > len(data)):
        _refuse(origin, name, "data lies outside the file", list(offsets))
    return offsets[0], offsets[1]


def _tensor(
    name: str, entry: Mapping[str, object], data: memoryview, span: tuple[int, int], origin: str
) -> SourceTensor:
    shape = _integers(entry.get("shape"), name, origin)
    dtype = entry.get("dtype")
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        supported = ", ".join(_DTYPES)
        raise SourceError(
            "unsupported element type",
            field=f"{origin}: {name}",
            value=dtype,
            remedy=f"convert the tensor to one of {supported}",
        )
    if not 1 <= len(shape) <= MAX_DIMENSIONS or 0 in shape:
        _refuse(origin, name, "unsupported shape", list(shape))
    nbytes = stored_nbytes(name, _DTYPES[dtype], shape)
    if span[1] - span[0] != nbytes:
        _refuse(origin, name, f"declared type and shape need {nbytes} bytes", list(span))
    return SourceTensor(name, _DTYPES[dtype], shape, nbytes, partial(present, data, *span, name))


def _integers(value: object, name: str, origin: str) -> tuple[int, ...]:
    plain = isinstance(value, list) and all(type(v) is int and 0 <= v < 1 << 63 for v in value)
    if not isinstance(value, list) or not plain:
        _refuse(origin, name, "must be a list of integers", value)
    return tuple(value)


def _check_spans(spans: Mapping[str, tuple[int, int]], size: int, origin: str) -> None:
    end = 0
    for name, (start, stop) in sorted(spans.items(), key=lambda item: item[1]):
        if start != end:
            _refuse(origin, name, f"data must start at {end}, without hole", start)
        end = stop
    if end != size:
        _refuse(origin, "data", f"the file holds {size} bytes of tensor data", end)


def _refuse(origin: str, field: str, message: str, value: object) -> NoReturn:
    raise SourceError(
        message, field=f"{origin}: {field}", value=value, remedy="download the file again"
    )
