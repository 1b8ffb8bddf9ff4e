"""The Protobuf form of a program.

`from_wire(to_wire(p)) == p` for every well-formed program. Reading refuses what the schema does
not know, references that dangle, declarations without use and anything `verify` refuses; its
work is bounded by the size of the message.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, cast

from helios.contract.operation import Operation
from helios.contract.strict import Seen, check_message, parse
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
from helios.program.verify import Verifier, verify
from helios.schema import program_pb2 as pb

_RefT = TypeVar("_RefT", Buffer, Weight, Value)
_MessageT = TypeVar("_MessageT", pb.Buffer, pb.Weight, pb.Value)


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
    return ProgramReader().read(message)


class ProgramReader:
    """Reads programs, and reads once what they have in common.

    A model's programs share one body. What is written alike in several of them becomes one
    object, so that whoever looks at programs may look at each of their operations once.
    """

    def __init__(self) -> None:
        self._seen: Seen = {}
        self._types: dict[bytes, TensorType] = {}
        self._things: dict[tuple[str, bytes], Ref] = {}
        self._ops: dict[bytes, tuple[Op, frozenset[int]]] = {}
        self._verifier = Verifier()

    def read(self, message: pb.Program) -> Program:
        """The verified program in a message. Raises `ProgramError` naming the field."""
        check_message(message, "program", ProgramError, self._seen)
        if not message.operation:
            raise _error("program.operation", "no operation is selected", 0, "select one")
        declared = _Declared(
            self._declared("buffers", message.buffers, self._buffer),
            self._declared("weights", message.weights, self._weight),
            self._declared("values", message.values, self._value),
        )
        ops = tuple([self._op(i, op, declared) for i, op in enumerate(message.ops)])
        declared.check_all_used()
        extents = tuple(_extent(f"program.extents[{i}]", e) for i, e in enumerate(message.extents))
        program = Program(message.name, Operation(message.operation), extents, ops)
        self._verifier.verify(program)
        return program

    def _declared(
        self, field: str, items: Iterable[_MessageT], read: Callable[[int, _MessageT], _RefT]
    ) -> dict[str, _RefT]:
        found: dict[str, _RefT] = {}
        for index, item in enumerate(items):
            key = field, item.SerializeToString()
            known = self._things.get(key)
            if known is None:
                known = self._things[key] = read(index, item)
            if known.name in found:
                where = f"program.{field}.{known.name}"
                raise _error(where, "is declared twice", known.name, "rename it")
            found[known.name] = cast(_RefT, known)
        return found

    def _buffer(self, index: int, item: pb.Buffer) -> Buffer:
        kind = _buffer_kind(index, item)
        return Buffer(item.name, kind, self._type("buffers", index, item.type), Role(item.role))

    def _weight(self, index: int, item: pb.Weight) -> Weight:
        return Weight(item.name, self._type("weights", index, item.type))

    def _value(self, index: int, item: pb.Value) -> Value:
        return Value(item.name, self._type("values", index, item.type), Role(item.role))

    def _type(self, kind: str, index: int, type_: pb.TensorType) -> TensorType:
        key = type_.SerializeToString()
        known = self._types.get(key)
        if known is None:
            known = self._types[key] = _type(f"{kind}[{index}]", type_)
        return known

    def _op(self, index: int, message: pb.Op, declared: "_Declared") -> Op:
        data = message.SerializeToString()
        if data in self._ops:
            op, things = self._ops[data]
            # The names in it must stand for the same things here as there.
            if declared.use(things):
                return op
        op = _op(index, message, declared)
        refs = [ref for ref in (*op.operands, *op.results) if ref is not None]
        things = frozenset(map(id, refs))
        declared.use(things)
        self._ops[data] = op, things
        return op


class _Declared:
    """The declarations of a message by name, and which of them operations have used."""

    def __init__(
        self,
        buffers: Mapping[str, Buffer],
        weights: Mapping[str, Weight],
        values: Mapping[str, Value],
    ) -> None:
        self.by_kind: Mapping[str, Mapping[str, Ref]] = {
            "buffer": buffers,
            "weight": weights,
            "value": values,
        }
        self.values = values
        # The reader keeps the things, so that their ids are theirs alone.
        self._ids = {id(thing) for things in self.by_kind.values() for thing in things.values()}
        self._used: set[int] = set()

    def use(self, things: frozenset[int]) -> bool:
        """Count things as used; False, and nothing is counted, unless all are declared."""
        if not self._ids.issuperset(things):
            return False
        self._used.update(things)
        return True

    def check_all_used(self) -> None:
        """Raise `ProgramError` where a thing is declared and not used."""
        for kind, things in self.by_kind.items():
            for name, thing in things.items():
                if id(thing) not in self._used:
                    raise _error(
                        f"program.{kind}s.{name}", "is declared and never used", name, "remove it"
                    )


def _op(index: int, op: pb.Op, declared: _Declared) -> Op:
    attributes: dict[str, AttributeValue] = {}
    for attribute in op.attributes:
        if attribute.name in attributes:
            where = f"program.ops[{index}].attributes.{attribute.name}"
            raise _error(where, "is given twice", attribute.name, "give it once")
        attributes[attribute.name] = _attribute(index, attribute)
    operands = [_operand(index, i, o, declared) for i, o in enumerate(op.operands)]
    results = []
    for name in op.results:
        if name not in declared.values:
            raise _dangling(f"program.ops[{index}].results", "value", name)
        results.append(declared.values[name])
    return Op(op.kind, tuple(operands), tuple(results), attributes)


def _operand(index: int, place: int, reference: pb.Reference, declared: _Declared) -> Ref | None:
    target = reference.WhichOneof("target")
    if target is None:
        return None
    name: str = getattr(reference, target)
    thing = declared.by_kind[target].get(name)
    if thing is None:
        raise _dangling(f"program.ops[{index}].operands[{place}]", target, name)
    return thing


def _dangling(field: str, kind: str, name: str) -> ProgramError:
    return _error(field, f"there is no such {kind}", name, f"declare the {kind}")


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
