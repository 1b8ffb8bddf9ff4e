"""The Protobuf form of a program.

`from_wire(to_wire(p)) == p` for every well-formed program. Reading refuses what the schema does
not know, references that dangle, declarations without use and anything `verify` refuses; its
work is bounded by the size of the message.
"""

from collections.abc import Iterable, Mapping
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
    ops = tuple([reader.op(i, op) for i, op in enumerate(message.ops)])
    reader.check_all_used()
    extents = tuple(_extent(f"program.extents[{i}]", e) for i, e in enumerate(message.extents))
    program = Program(message.name, Operation(message.operation), extents, ops)
    verify(program)
    return program


class _Reader:
    """The declarations of a message, and which of them operations have used."""

    def __init__(self, message: pb.Program) -> None:
        self._types: dict[bytes, TensorType] = {}
        self._buffers = _by_name(
            "buffers",
            (
                Buffer(b.name, _buffer_kind(i, b), self._type("buffers", i, b.type), Role(b.role))
                for i, b in enumerate(message.buffers)
            ),
        )
        self._weights = _by_name(
            "weights",
            (
                Weight(w.name, self._type("weights", i, w.type))
                for i, w in enumerate(message.weights)
            ),
        )
        self._values = _by_name(
            "values",
            (
                Value(v.name, self._type("values", i, v.type), Role(v.role))
                for i, v in enumerate(message.values)
            ),
        )
        self._used_buffers: set[str] = set()
        self._used_weights: set[str] = set()
        self._used_values: set[str] = set()

    def op(self, index: int, op: pb.Op) -> Op:
        attributes: dict[str, AttributeValue] = {}
        for attribute in op.attributes:
            if attribute.name in attributes:
                where = f"program.ops[{index}].attributes.{attribute.name}"
                raise _error(where, "is given twice", attribute.name, "give it once")
            attributes[attribute.name] = _attribute(index, attribute)
        operands = [self._operand(index, i, o) for i, o in enumerate(op.operands)]
        results = []
        for name in op.results:
            if name not in self._values:
                raise _dangling(f"program.ops[{index}].results", "value", name)
            self._used_values.add(name)
            results.append(self._values[name])
        return Op(op.kind, tuple(operands), tuple(results), attributes)

    def check_all_used(self) -> None:
        for kind, declared, used in (
            ("buffer", self._buffers, self._used_buffers),
            ("weight", self._weights, self._used_weights),
            ("value", self._values, self._used_values),
        ):
            for name in declared:
                if name not in used:
                    raise _error(
                        f"program.{kind}s.{name}", "is declared and never used", name, "remove it"
                    )

    def _operand(self, index: int, place: int, reference: pb.Reference) -> Ref | None:
        target = reference.WhichOneof("target")
        declared: Mapping[str, Ref]
        if target == "value":
            name, declared, used = reference.value, self._values, self._used_values
        elif target == "weight":
            name, declared, used = reference.weight, self._weights, self._used_weights
        elif target == "buffer":
            name, declared, used = reference.buffer, self._buffers, self._used_buffers
        else:
            return None
        if name not in declared:
            raise _dangling(f"program.ops[{index}].operands[{place}]", target, name)
        used.add(name)
        return declared[name]

    def _type(self, kind: str, index: int, type_: pb.TensorType) -> TensorType:
        # Programs have few types and many things of each.
        key = type_.SerializeToString(deterministic=True)
        known = self._types.get(key)
        if known is None:
            known = self._types[key] = _type(f"{kind}[{index}]", type_)
        return known


def _dangling(field: str, kind: str, name: str) -> ProgramError:
    return _error(field, f"there is no such {kind}", name, f"declare the {kind}")


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


def _buffer_kind(index: int, buffer: pb.Buffer) -> BufferKind:
    if not buffer.kind:
        raise _error(f"program.buffers[{index}].kind", "no kind is selected", 0, "select one")
    return BufferKind(buffer.kind)


def _attribute(index: int, attribute: pb.Attribute) -> AttributeValue:
    kind = attribute.WhichOneof("value")
    if kind is None:
        where = f"program.ops[{index}].attributes.{attribute.name}"
        raise _error(where, "has no value", None, "set one")
    if kind == "integers":
        return tuple(attribute.integers.values)
    value: int | float | str | bool = getattr(attribute, kind)
    return value


def _error(field: str, message: str, value: object, remedy: str) -> ProgramError:
    return ProgramError(message, field=field, value=value, remedy=remedy)
