"""Captured programs as plain data.

A program is a straight line of coarse operations. Operations read and write three kinds of
things: *values* (results of earlier operations, each written once), *buffers* (storage that
outlives the program: transport, completion, state, cache, tuned) and *weights*. Shapes may
name *extents*, whose capacity the program fixes and whose length a submission (dynamic) or the
memory plan (load) chooses.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import TypeVar

from helios.contract.operation import Operation
from helios.schema import program_pb2 as pb

Dim = int | str
Shape = tuple[Dim, ...]
AttributeValue = int | float | str | bool | tuple[int, ...]


class DType(IntEnum):
    """Element types, numbered as on the wire."""

    F32 = pb.DTYPE_F32
    F16 = pb.DTYPE_F16
    BF16 = pb.DTYPE_BF16
    I32 = pb.DTYPE_I32
    U32 = pb.DTYPE_U32
    U64 = pb.DTYPE_U64
    U8 = pb.DTYPE_U8
    I64 = pb.DTYPE_I64

    @property
    def nbytes(self) -> int:
        """Bytes of one element."""
        return _NBYTES[self]

    @property
    def text(self) -> str:
        """The name in the text form: `f32`, `i32`, …"""
        return self.name.lower()


_NBYTES = {
    DType.F32: 4,
    DType.F16: 2,
    DType.BF16: 2,
    DType.I32: 4,
    DType.U32: 4,
    DType.U64: 8,
    DType.U8: 1,
    DType.I64: 8,
}


class ExtentKind(IntEnum):
    """Who chooses an extent's length, numbered as on the wire."""

    DYNAMIC = pb.EXTENT_KIND_DYNAMIC
    LOAD = pb.EXTENT_KIND_LOAD


class BufferKind(IntEnum):
    """What a buffer is for, numbered as on the wire."""

    TRANSPORT = pb.BUFFER_KIND_TRANSPORT
    COMPLETION = pb.BUFFER_KIND_COMPLETION
    STATE = pb.BUFFER_KIND_STATE
    CACHE = pb.BUFFER_KIND_CACHE
    TUNED = pb.BUFFER_KIND_TUNED


class Role(IntEnum):
    """What a value or buffer means to a language model's driver."""

    NONE = pb.ROLE_UNSPECIFIED
    TOKENS = pb.ROLE_TOKENS
    POSITIONS = pb.ROLE_POSITIONS
    TOKEN_MASK = pb.ROLE_TOKEN_MASK
    REPETITION_TOKEN_IDS = pb.ROLE_REPETITION_TOKEN_IDS
    REPETITION_OFFSETS = pb.ROLE_REPETITION_OFFSETS
    REPETITION_PENALTY = pb.ROLE_REPETITION_PENALTY
    LOGITS = pb.ROLE_LOGITS
    SAMPLED_TOKEN = pb.ROLE_SAMPLED_TOKEN


@dataclass(frozen=True, slots=True)
class Extent:
    """A symbolic length; `capacity` 0 leaves a load extent to the memory plan."""

    name: str
    kind: ExtentKind
    capacity: int


@dataclass(frozen=True, slots=True)
class TensorType:
    """An element type and a shape whose dimensions are integers or extent names."""

    dtype: DType
    shape: Shape

    def __str__(self) -> str:
        return f"{self.dtype.text}[{', '.join(str(d) for d in self.shape)}]"

    def resolve(self, lengths: Mapping[str, int]) -> tuple[int, ...]:
        """The concrete shape where every extent has the length given for it."""
        return tuple(d if isinstance(d, int) else lengths[d] for d in self.shape)

    def nbytes(self, lengths: Mapping[str, int]) -> int:
        """Bytes of a contiguous tensor of this type at the given extent lengths."""
        count = self.dtype.nbytes
        for length in self.resolve(lengths):
            count *= length
        return count


@dataclass(frozen=True, slots=True)
class Value:
    """A result of one operation."""

    name: str
    type: TensorType
    role: Role = Role.NONE


@dataclass(frozen=True, slots=True)
class Buffer:
    """Storage that outlives the program."""

    name: str
    kind: BufferKind
    type: TensorType
    role: Role = Role.NONE


@dataclass(frozen=True, slots=True)
class Weight:
    """A parameter; the type is logical (f32), its storage is the weight catalog's matter."""

    name: str
    type: TensorType


Ref = Value | Buffer | Weight
_RefT = TypeVar("_RefT", Buffer, Weight)


@dataclass(frozen=True, slots=True)
class Op:
    """One operation of a program: its kind is a row of `ops.OPS`."""

    kind: str
    operands: tuple[Ref | None, ...]
    results: tuple[Value, ...]
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ordered = dict(sorted(self.attributes.items()))
        object.__setattr__(self, "attributes", MappingProxyType(ordered))


@dataclass(frozen=True, slots=True)
class Program:
    """One captured operation at fixed capacities."""

    name: str
    operation: Operation
    extents: tuple[Extent, ...]
    ops: tuple[Op, ...]

    def extent(self, name: str) -> Extent:
        """The extent of that name."""
        return next(e for e in self.extents if e.name == name)

    def buffers(self) -> tuple[Buffer, ...]:
        """Every buffer the operations name, in order of first use."""
        return _first_uses(self, Buffer)

    def weights(self) -> tuple[Weight, ...]:
        """Every weight the operations name, in order of first use."""
        return _first_uses(self, Weight)

    def values(self) -> tuple[Value, ...]:
        """Every value, in order of definition."""
        return tuple(result for op in self.ops for result in op.results)


def _first_uses(program: Program, kind: type[_RefT]) -> tuple[_RefT, ...]:
    found: dict[str, _RefT] = {}
    for op in program.ops:
        for operand in op.operands:
            if isinstance(operand, kind):
                found.setdefault(operand.name, operand)
    return tuple(found.values())
