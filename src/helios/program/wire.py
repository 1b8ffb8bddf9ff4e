"""The Protobuf form of a program.

`from_wire(to_wire(p)) == p` for every well-formed program. Reading refuses what the schema does
not know, references that dangle, declarations without use and anything `verify` refuses; its
work is bounded by the size of the message.
"""

from collections.abc import Iterable
from typing import TypeVar

from helios.contract.operation import Operation
from helios.contract.strict import check_message, parse
from helios.errors import ProgramError
from helios.program.ir import (
    AttributeValue,
    Buffer,
    BufferKind,
    Dim,
    DType,
    Extent,
    ExtentKind,
    Op,
    Program,
    Ref,
    Role,
    TensorType,
    Value,
    Weight,
)
from helios.program.verify import verify
from helios.schema import program_pb2 as pb

_RefT = TypeVar("_RefT", Buffer, Weight, Value)


def program_to_bytes(program: Program) -> bytes:
    """A verified program serialised; equal programs give equal bytes."""
    return to_wire(program).SerializeToString(deterministic=True)


def program_from_bytes(data: bytes) -> Program:
    """The verified program in serialised form. Raises `ProgramError`."""
    return from_wire(parse(data, pb.Program, "program", ProgramError))


# ---- writing -------------------------------------------------------------------------------


def to_wire(program: Program) -> pb.Program:
    """A program as a message. Raises `ProgramError` unless it is well formed."""
    verify(program)
    return pb.Program(
        name=program.name,
        operation=pb.Operation.Name(program.operation),
        extents=[
            pb.Extent(name=e.name, kind=pb.ExtentKind.Name(e.kind), capacity=e.capacity)
            for e in program.extents
        ],
        buffers=[
            pb.Buffer(
                name=b.name,
                kind=pb.BufferKind.Name(b.kind),
                type=_type_to_wire(b.type),
                role=pb.Role.Name(b.role),
            )
            for b in program.buffers()
        ],
        weights=[pb.Weight(name=w.name, type=_type_to_wire(w.type)) for w in program.weights()],
        values=[
            pb.Value(name=v.name, type=_type_to_wire(v.type), role=pb.Role.Name(v.role))
            for v in program.values()
        ],
        ops=[_op_to_wire(op) for op in program.ops],
    )


def _type_to_wire(type_: TensorType) -> pb.TensorType:
    return pb.TensorType(
        dtype=pb.DType.Name(type_.dtype),
        shape=[
            pb.Dimension(constant=d) if isinstance(d, int) else pb.Dimension(extent=d)
            for d in type_.shape
        ],
    )


def _op_to_wire(op: Op) -> pb.Op:
    return pb.Op(
        kind=op.kind,
        operands=[_reference_to_wire(o) for o in op.operands],
        results=[r.name for r in op.results],
        attributes=[_attribute_to_wire(name, value) for name, value in op.attributes.items()],
    )


def _reference_to_wire(operand: Ref | None) -> pb.Reference:
    if isinstance(operand, Value):
        return pb.Reference(value=operand.name)
    if isinstance(operand, Buffer):
        return pb.Reference(buffer=operand.name)
    return pb.Reference(weight=operand.name) if operand is not None else pb.Reference()


def _attribute_to_wire(name: str, value: AttributeValue) -> pb.Attribute:
    if isinstance(value, bool):
        return pb.Attribute(name=name, boolean=value)
    if isinstance(value, int):
        return pb.Attribute(name=name, integer=value)
    if isinstance(value, float):
        return pb.Attribute(name=name, real=value)
    if isinstance(value, str):
        return pb.Attribute(name=name, text=value)
    return pb.Attribute(name=name, integers=pb.IntegerList(values=value))


# ---- reading -------------------------------------------------------------------------------


def from_wire(message: pb.Program) -> Program:
    """The verified program in a message. Raises `ProgramError` naming the field."""
    check_message(message, "program", ProgramError)
    if not message.operation:
        raise _error("program.operation", "no operation is selected", 0, "select one")
    reader = _Reader(message)
    ops = tuple(reader.op(f"program.ops[{i}]", op) for i, op in enumerate(message.ops))
    reader.check_all_used()
    extents = tuple(_extent(f"program.extents[{i}]", e) for i, e in enumerate(message.extents))
    program = Program(message.name, Operation(message.operation), extents, ops)
    verify(program)
    return program


class _Reader:
    """The declarations of a message, and which of them operations have used."""

    def __init__(self, message: pb.Program) -> None:
        self._buffers = _by_name(
            "buffers",
            (
                Buffer(
                    b.name,
                    _buffer_kind(f"buffers[{i}]", b),
                    _type(f"buffers[{i}]", b.type),
                    _role(b),
                )
                for i, b in enumerate(message.buffers)
            ),
        )
        self._weights = _by_name(
            "weights",
            (Weight(w.name, _type(f"weights[{i}]", w.type)) for i, w in enumerate(message.weights)),
        )
        self._values = _by_name(
            "values",
            (
                Value(v.name, _type(f"values[{i}]", v.type), _role(v))
                for i, v in enumerate(message.values)
            ),
        )
        self._used: set[tuple[str, str]] = set()

    def op(self, field: str, op: pb.Op) -> Op:
        attributes: dict[str, AttributeValue] = {}
        for attribute in op.attributes:
            where = f"{field}.attributes.{attribute.name}"
            if attribute.name in attributes:
                raise _error(where, "is given twice", attribute.name, "give it once")
            attributes[attribute.name] = _attribute(where, attribute)
        return Op(
            op.kind,
            tuple(self._operand(f"{field}.operands[{i}]", o) for i, o in enumerate(op.operands)),
            tuple(self._find(f"{field}.results", "value", r, self._values) for r in op.results),
            attributes,
        )

    def check_all_used(self) -> None:
        declared = [("buffer", name) for name in self._buffers]
        declared += [("weight", name) for name in self._weights]
        declared += [("value", name) for name in self._values]
        for kind, name in declared:
            if (kind, name) not in self._used:
                raise _error(
                    f"program.{kind}s.{name}", "is declared and never used", name, "remove it"
                )

    def _operand(self, field: str, reference: pb.Reference) -> Ref | None:
        target = reference.WhichOneof("target")
        if target == "value":
            return self._find(field, target, reference.value, self._values)
        if target == "buffer":
            return self._find(field, target, reference.buffer, self._buffers)
        if target == "weight":
            return self._find(field, target, reference.weight, self._weights)
        return None

    def _find(self, field: str, kind: str, name: str, declared: dict[str, _RefT]) -> _RefT:
        if name not in declared:
            raise _error(field, f"there is no such {kind}", name, f"declare the {kind}")
        self._used.add((kind, name))
        return declared[name]


def _by_name(field: str, items: Iterable[_RefT]) -> dict[str, _RefT]:
    found: dict[str, _RefT] = {}
    for item in items:
        if item.name in found:
            raise _error(
                f"program.{field}.{item.name}", "is declared twice", item.name, "rename it"
            )
        found[item.name] = item
    return found


def _extent(field: str, extent: pb.Extent) -> Extent:
    if not extent.kind:
        raise _error(f"{field}.kind", "no kind is selected", 0, "select dynamic or load")
    return Extent(extent.name, ExtentKind(extent.kind), extent.capacity)


def _type(field: str, type_: pb.TensorType) -> TensorType:
    if not type_.dtype:
        raise _error(f"program.{field}.type.dtype", "no element type is selected", 0, "select one")
    return TensorType(DType(type_.dtype), tuple(_dim(field, d) for d in type_.shape))


def _dim(field: str, dim: pb.Dimension) -> Dim:
    length = dim.WhichOneof("length")
    if length is None:
        raise _error(f"program.{field}.type.shape", "a dimension has no length", None, "set one")
    return dim.constant if length == "constant" else dim.extent


def _buffer_kind(field: str, buffer: pb.Buffer) -> BufferKind:
    if not buffer.kind:
        raise _error(f"program.{field}.kind", "no kind is selected", 0, "select one")
    return BufferKind(buffer.kind)


def _role(item: pb.Buffer | pb.Value) -> Role:
    return Role(item.role)


def _attribute(field: str, attribute: pb.Attribute) -> AttributeValue:
    kind = attribute.WhichOneof("value")
    if kind is None:
        raise _error(field, "has no value", None, "set one")
    if kind == "integers":
        return tuple(attribute.integers.values)
    value: int | float | str | bool = getattr(attribute, kind)
    return value


def _error(field: str, message: str, value: object, remedy: str) -> ProgramError:
    return ProgramError(message, field=field, value=value, remedy=remedy)
