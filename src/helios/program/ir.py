"""Captured programs as plain data.

A program is a straight line of coarse operations. Operations read and write three kinds of
things: *values* (results of earlier operations, each written once), *buffers* (storage that
outlives the program: transport, completion, state, cache, tuned) and *weights*. Shapes may
name *extents*, whose capacity the program fixes and whose length a submission (dynamic) or the
memory plan (load) chooses.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import IntEnum
from functools import cached_property
from types import MappingProxyType

from helios.contract.operation import Operation
from helios.contract.tensor import BufferKind as BufferKind
from helios.contract.tensor import Dim as Dim
from helios.contract.tensor import DType as DType
from helios.contract.tensor import Shape as Shape
from helios.contract.tensor import TensorType as TensorType
from helios.records import dataclass
from helios.schema import program_pb2 as pb

AttributeValue = int | float | str | bool | tuple[int, ...]


class ExtentKind(IntEnum):
    """Who chooses an extent's length, numbered as on the wire."""

    DYNAMIC = pb.EXTENT_KIND_DYNAMIC
    LOAD = pb.EXTENT_KIND_LOAD


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


def _hash_of_name(self: "Ref") -> int:
    # Names tell things of a program apart, and hashing the rest again for every look-up is slow.
    return hash(self.name)


@dataclass(frozen=True, slots=True)
class Value:
    """A result of one operation."""

    name: str
    type: TensorType
    role: Role = Role.NONE
    __hash__ = _hash_of_name


@dataclass(frozen=True, slots=True)
class Buffer:
    """Storage that outlives the program."""

    name: str
    kind: BufferKind
    type: TensorType
    role: Role = Role.NONE
    __hash__ = _hash_of_name


@dataclass(frozen=True, slots=True)
class Weight:
    """A parameter; the type is logical (f32), its storage is the weight catalog's matter."""

    name: str
    type: TensorType
    __hash__ = _hash_of_name


Ref = Value | Buffer | Weight


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


@dataclass(frozen=True)
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
        return self._uses[0]

    def weights(self) -> tuple[Weight, ...]:
        """Every weight the operations name, in order of first use."""
        return self._uses[1]

    def values(self) -> tuple[Value, ...]:
        """Every value, in order of definition."""
        return tuple(result for op in self.ops for result in op.results)

    @cached_property
    def _uses(self) -> tuple[tuple[Buffer, ...], tuple[Weight, ...]]:
        buffers: dict[str, Buffer] = {}
        weights: dict[str, Weight] = {}
        for op in self.ops:
            for operand in op.operands:
                if isinstance(operand, Buffer):
                    buffers.setdefault(operand.name, operand)
                elif isinstance(operand, Weight):
                    weights.setdefault(operand.name, operand)
        return tuple(buffers.values()), tuple(weights.values())
