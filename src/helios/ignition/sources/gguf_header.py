"""The header of a GGUF file, read with every count, length and offset checked first.

GGUF 2 and 3, little endian: magic, version, counts, key/value fields, tensor descriptions, then
the aligned tensor data (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). Nothing is
allocated for a count before the file has shown to be long enough to hold it. The `gguf` package
supplies the type tables; its reader is not used, since it makes several Python objects per array
element before any size is checked, and a small hostile file could exhaust memory.
"""

import struct
from collections.abc import Mapping
from typing import NoReturn

import numpy as np
from gguf.constants import GGMLQuantizationType, GGUFValueType

from helios.contract.kinds import SOURCE_STORAGES, WeightStorage
from helios.errors import SourceError
from helios.ignition.sources.storage import stored_nbytes
from helios.records import dataclass

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
# Limits that no real model comes near; they bound what a corrupt header can cost.
MAX_FIELDS = 1 << 16
MAX_TENSORS = 1 << 17
MAX_ARRAY = 1 << 23
MAX_NAME = 1 << 16
MAX_ALIGNMENT = 1 << 20
MAX_DIMENSIONS = 4

_SCALARS = {
    GGUFValueType.UINT8: "<B",
    GGUFValueType.INT8: "<b",
    GGUFValueType.UINT16: "<H",
    GGUFValueType.INT16: "<h",
    GGUFValueType.UINT32: "<I",
    GGUFValueType.INT32: "<i",
    GGUFValueType.FLOAT32: "<f",
    GGUFValueType.UINT64: "<Q",
    GGUFValueType.INT64: "<q",
    GGUFValueType.FLOAT64: "<d",
    GGUFValueType.BOOL: "<?",
}


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """One described tensor; `offset` counts from the start of the file."""

    name: str
    storage: WeightStorage
    shape: tuple[int, ...]
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Header:
    """Everything before the tensor data. Arrays of strings are lists, others NumPy arrays."""

    version: int
    fields: Mapping[str, object]
    tensors: tuple[TensorEntry, ...]


def read_header(data: memoryview, origin: str, *, complete: bool = True) -> Header:
    """Read a file's header; raises `SourceError` for anything that is not sound.

    The tensors it describes must all be there, unless `complete` is False.
    """
    cursor = _Cursor(data, origin)
    if bytes(cursor.take(4, "magic")) != MAGIC:
        cursor.refuse("not a GGUF file", "magic", bytes(data[:4]), "give a .gguf file")
    version = cursor.u32("version")
    if version not in VERSIONS:
        cursor.refuse(
            "unsupported GGUF version",
            "version",
            version,
            "convert the model to little-endian GGUF 3",
        )
    tensor_count = cursor.count("tensor_count", minimum_bytes=24, limit=MAX_TENSORS)
    field_count = cursor.count("kv_count", minimum_bytes=13, limit=MAX_FIELDS)
    fields: dict[str, object] = {}
    for _ in range(field_count):
        key = cursor.string("metadata key", MAX_NAME)
        if key in fields:
            cursor.refuse("metadata key given twice", key, key, "convert the model again")
        fields[key] = _value(cursor, key)
    described = [_describe(cursor) for _ in range(tensor_count)]
    start = _aligned(cursor.position, alignment := _alignment(fields, cursor))
    return Header(version, fields, _place(described, start, alignment, cursor, complete))


class _Cursor:
    """A position in the file that never passes its end."""

    def __init__(self, data: memoryview, origin: str) -> None:
        self.data = data
        self.origin = origin
        self.position = 0

    def take(self, nbytes: int, what: str) -> memoryview:
        end = self.position + nbytes
        if end > len(self.data):
            self.refuse(
                f"the file ends inside {what}", what, len(self.data), "download the file again"
            )
        part = self.data[self.position : end]
        self.position = end
        return part

    def scalar(self, layout: str, what: str) -> int | float | bool:
        size = struct.calcsize(layout)
        value: int | float | bool = struct.unpack(layout, self.take(size, what))[0]
        return value

    def u32(self, what: str) -> int:
        return int(self.scalar("<I", what))

    def u64(self, what: str) -> int:
        return int(self.scalar("<Q", what))

    def count(self, what: str, minimum_bytes: int, limit: int) -> int:
        value = self.u64(what)
        if value > limit or value * minimum_bytes > len(self.data) - self.position:
            self.refuse("a count that the file can't hold", what, value, "download the file again")
        return value

    def string(self, what: str, limit: int | None = None) -> str:
        length = self.count(f"{what} length", 1, len(self.data) if limit is None else limit)
        try:
            return str(self.take(length, what), "utf-8")
        except UnicodeDecodeError as error:
            self.refuse("not UTF-8 text", what, str(error), "convert the model again")

    def refuse(self, message: str, field: str, value: object, remedy: str) -> NoReturn:
        raise SourceError(message, field=f"{self.origin}: {field}", value=value, remedy=remedy)


def _value(cursor: _Cursor, key: str) -> object:
    kind = _value_type(cursor, key)
    if kind is GGUFValueType.STRING:
        return cursor.string(key)
    if kind is not GGUFValueType.ARRAY:
        return cursor.scalar(_SCALARS[kind], key)
    kind = _value_type(cursor, key)
    if kind is GGUFValueType.ARRAY:
        cursor.refuse("nested arrays are not supported", key, "array of arrays", "use flat arrays")
    if kind is GGUFValueType.STRING:
        length = cursor.count(f"{key} length", 8, MAX_ARRAY)
        return [cursor.string(key) for _ in range(length)]
    size = struct.calcsize(_SCALARS[kind])
    length = cursor.count(f"{key} length", size, MAX_ARRAY)
    return np.frombuffer(cursor.take(length * size, key), dtype=np.dtype(_SCALARS[kind]))


def _value_type(cursor: _Cursor, key: str) -> GGUFValueType:
    raw = cursor.u32(f"type of {key}")
    try:
        return GGUFValueType(raw)
    except ValueError:
        cursor.refuse("unknown value type", key, raw, "convert the model again")


@dataclass(frozen=True, slots=True)
class _Described:
    name: str
    storage: WeightStorage
    shape: tuple[int, ...]
    offset: int  # from the start of the tensor data


def _describe(cursor: _Cursor) -> _Described:
    name = cursor.string("tensor name", MAX_NAME)
    rank = cursor.u32(f"rank of {name}")
    if not 1 <= rank <= MAX_DIMENSIONS:
        cursor.refuse("unsupported number of dimensions", name, rank, "convert the model again")
    # GGUF states the innermost dimension first.
    shape = tuple(cursor.u64(f"shape of {name}") for _ in range(rank))[::-1]
    if 0 in shape:
        cursor.refuse("a tensor without elements", name, shape, "convert the model again")
    storage = _storage(cursor, name, cursor.u32(f"type of {name}"))
    return _Described(name, storage, shape, cursor.u64(f"offset of {name}"))


def _storage(cursor: _Cursor, name: str, raw: int) -> WeightStorage:
    try:
        kind = GGMLQuantizationType(raw)
    except ValueError:
        cursor.refuse("unknown tensor type", name, raw, "convert the model again")
    supported = [storage.name for storage in SOURCE_STORAGES]
    if kind.name not in supported:
        cursor.refuse(
            "unsupported quantisation",
            name,
            kind.name,
            f"requantise to one of {', '.join(supported)}",
        )
    return WeightStorage[kind.name]


def _alignment(fields: Mapping[str, object], cursor: _Cursor) -> int:
    value = fields.get("general.alignment", DEFAULT_ALIGNMENT)
    sound = isinstance(value, int) and not isinstance(value, bool)
    if not sound or not 8 <= value <= MAX_ALIGNMENT or value & (value - 1):  # type: ignore[operator]
        cursor.refuse(
            "the alignment must be a power of two",
            "general.alignment",
            value,
            "convert the model again",
        )
    return int(value)  # type: ignore[call-overload, no-any-return]


def _place(
    described: list[_Described], start: int, alignment: int, cursor: _Cursor, complete: bool
) -> tuple[TensorEntry, ...]:
    """File offsets of all tensors, which must lie one after the other, each aligned.

    A declared type or shape that disagrees with the stored size shows as a gap or an overlap.
    """
    entries: dict[str, TensorEntry] = {}
    expected = 0
    for item in described:
        if item.name in entries:
            cursor.refuse("tensor described twice", item.name, item.name, "convert the model again")
        nbytes = stored_nbytes(item.name, item.storage, item.shape)
        if item.offset != expected:
            cursor.refuse(
                f"declared type and size disagree with the stored offset {expected}",
                item.name,
                item.offset,
                "convert the model again",
            )
        if complete and start + item.offset + nbytes > len(cursor.data):
            cursor.refuse(
                f"the file ends inside a tensor of {nbytes} bytes",
                item.name,
                len(cursor.data),
                "download the file again",
            )
        expected = _aligned(item.offset + nbytes, alignment)
        entries[item.name] = TensorEntry(
            item.name, item.storage, item.shape, start + item.offset, nbytes
        )
    return tuple(entries.values())


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
