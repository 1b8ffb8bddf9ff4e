"""Is a program well formed? Shapes, element types, extents, aliasing, definition before use."""

import re
from collections.abc import Hashable, Mapping
from weakref import WeakValueDictionary

from helios.contract.operation import Operation
from helios.errors import ProgramError
from helios.program.infer import find, refuse
from helios.program.infer import infer_results as infer_results
from helios.program.ir import (
    Buffer,
    BufferKind,
    Extent,
    ExtentKind,
    Op,
    Program,
    Ref,
    TensorType,
    Value,
    Weight,
)
from helios.program.ops import READ

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/+-]*")
"""Names of programs, values, buffers and weights: what the text form writes unquoted."""
EXTENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAX_NAME = 256
MAX_RANK = 8
MAX_LENGTH = 1 << 40
MAX_OPS = 1 << 20


def verify(program: Program) -> None:
    """Raise `ProgramError` unless every rule of a captured program holds.

    - Names are plain, extents distinct, dynamic ones have a capacity, and every extent that a
      shape names exists.
    - An extent stands only in the first dimension; weights and tuned buffers have none, values no
      load extent, state and cache no dynamic extent.
    - Every operation is known, has its operands, writes out all its attributes, holds the rules of
      its kind, and its results have exactly the types the op table infers.
    - Every value is defined once and before its first use.
    - One name means one buffer or weight throughout, and never two kinds of thing.
    - No operation writes a buffer that it also names as another operand.
    - A completion buffer is written at most once and transport buffers never. Tuning programs
      write each of their tuned buffers once and read none; other programs only read them.
    """
    Verifier().verify(program)


class Verifier:
    """Verifies programs as `verify` does; an operation that several share is inferred once."""

    def __init__(self) -> None:
        self._sound: dict[Hashable, dict[int, Op]] = {}

    def verify(self, program: Program) -> None:
        """Raise `ProgramError` unless every rule of a captured program holds."""
        if _verified.get(id(program)) is program:
            return
        _check_name("program.name", program.name, NAME)
        if len(program.ops) > MAX_OPS:
            refuse(f"{program.name}.ops", "too many", len(program.ops), f"at most {MAX_OPS}")
        extents = _verify_extents(program)
        # An operation by itself is sound or not by the names and kinds of extents alone.
        sound = self._sound.setdefault(frozenset((e.name, e.kind) for e in program.extents), {})
        defined: dict[str, Ref] = {}
        written: set[str] = set()
        inferred: _Inferred = {}
        for index, op in enumerate(program.ops):
            try:
                _verify_operands(op, defined)
                if id(op) not in sound:
                    _verify_op(op, extents, inferred)
                    sound[id(op)] = op
                _verify_results(op, defined)
                _verify_buffers(program.operation, op, written)
            except ProgramError as error:
                raise ProgramError(
                    error.message,
                    field=f"{program.name}.ops[{index}] {op.kind}: {error.field}",
                    value=error.value,
                    remedy=error.remedy,
                ) from None
        _verified[id(program)] = program


# Programs are frozen, so what was verified once stays well formed for as long as it lives.
_verified: WeakValueDictionary[int, Program] = WeakValueDictionary()


def _check_name(field: str, name: str, pattern: re.Pattern[str]) -> None:
    if len(name) > MAX_NAME or not pattern.fullmatch(name):
        refuse(field, f"a name must match {pattern.pattern}", name, "rename it")


def _verify_extents(program: Program) -> dict[str, Extent]:
    extents: dict[str, Extent] = {}
    for extent in program.extents:
        where = f"{program.name}.extents.{extent.name}"
        _check_name(where, extent.name, EXTENT_NAME)
        if extent.name in extents:
            refuse(where, "extent declared twice", extent.name, "declare it once")
        if extent.kind is ExtentKind.DYNAMIC and extent.capacity == 0:
            refuse(where, "a dynamic extent needs a capacity", extent.capacity, "give at least 1")
        if not 0 <= extent.capacity <= MAX_LENGTH:
            refuse(where, "capacity out of range", extent.capacity, f"at most {MAX_LENGTH}")
        extents[extent.name] = extent
    return extents


# What was inferred for the operations of one program, by all that inference looks at: every layer
# of a network asks the same. Types are told apart as objects, which is quick and at worst in vain.
_Inferred = dict[Hashable, tuple[TensorType, ...]]


def _infer(op: Op, extents: Mapping[str, Extent], inferred: _Inferred) -> tuple[TensorType, ...]:
    operands = tuple(
        [o and (o.kind if isinstance(o, Buffer) else type(o), id(o.type)) for o in op.operands]
    )
    # True equals 1 and 1.0, so the types of attributes are told too.
    attributes = tuple([(name, type(value), value) for name, value in op.attributes.items()])
    key = op.kind, operands, attributes
    try:
        types = inferred.get(key)
    except TypeError:  # an attribute of no type that attributes have
        types = None
    if types is None:
        types = infer_results(op.kind, op.operands, op.attributes, extents)
        inferred[key] = types
    return types


def _verify_op(op: Op, extents: Mapping[str, Extent], inferred: _Inferred) -> None:
    """An operation by itself: all that does not depend on those before it."""
    spec = find(op.kind)
    for attribute in spec.attributes:
        # A default that changes later must not change what was captured.
        if attribute.name not in op.attributes:
            refuse(attribute.name, "attribute is not written out", None, "state it")
    for operand in op.operands:
        if operand is not None:
            _check_name(operand.name, operand.name, NAME)
            _verify_type(operand, extents)
    expected = _infer(op, extents, inferred)
    if len(op.results) != len(expected):
        refuse(op.kind, f"{len(expected)} results expected", len(op.results), "name each result")
    for result, type_ in zip(op.results, expected, strict=True):
        _check_name(f"%{result.name}", result.name, NAME)
        if result.type is not type_ and result.type != type_:
            refuse(
                f"%{result.name}", f"the op table infers {type_}", str(result.type), "fix the type"
            )
        _verify_type(result, extents)


def _verify_operands(op: Op, defined: dict[str, Ref]) -> None:
    """Values are defined, and one name means one thing."""
    for operand in op.operands:
        if operand is None:
            continue
        if not isinstance(operand, Ref):
            refuse("operand", "must be a value, buffer or weight", operand, "name one")
        known = defined.get(operand.name)
        if known is operand:
            continue
        if isinstance(operand, Value):
            if known != operand:
                name = operand.name
                refuse(f"%{name}", "read before it is written", name, "reorder the ops")
        elif known is None:
            defined[operand.name] = operand
        elif known != operand:
            refuse(operand.name, "one name, two things", operand.name, "rename one of them")


def _verify_results(op: Op, defined: dict[str, Ref]) -> None:
    """Values are defined once."""
    for result in op.results:
        if result.name in defined:
            refuse(f"%{result.name}", "the name is taken", result.name, "rename the result")
        defined[result.name] = result


def _verify_type(item: Ref, extents: Mapping[str, Extent]) -> None:
    shape = item.type.shape
    if len(shape) > MAX_RANK:
        refuse(item.name, "too many dimensions", len(shape), f"at most {MAX_RANK}")
    for axis, dim in enumerate(shape):
        if isinstance(dim, str):
            _verify_symbol(item, axis, dim, extents)
        elif type(dim) is not int or not 1 <= dim <= MAX_LENGTH:
            refuse(item.name, "a dimension must be a positive integer", dim, "fix the shape")


def _verify_symbol(item: Ref, axis: int, dim: str, extents: Mapping[str, Extent]) -> None:
    if dim not in extents:
        refuse(item.name, "unknown extent", dim, "declare the extent")
    if axis != 0:
        refuse(item.name, "an extent may stand only in the first dimension", dim, "reorder it")
    if isinstance(item, Weight) or (isinstance(item, Buffer) and item.kind is BufferKind.TUNED):
        refuse(item.name, "must have a constant shape", dim, "fix its length")
    dynamic = extents[dim].kind is ExtentKind.DYNAMIC
    if isinstance(item, Value) and not dynamic:
        refuse(item.name, "a value has no load extent", dim, "gather the rows that are needed")
    if isinstance(item, Buffer) and item.kind in _PERSISTENT and dynamic:
        refuse(item.name, "storage has no dynamic extent", dim, "use a load extent or a constant")


_PERSISTENT = (BufferKind.STATE, BufferKind.CACHE)


_WRITTEN_ONCE = (BufferKind.COMPLETION, BufferKind.TUNED)


def _verify_buffers(operation: Operation, op: Op, written: set[str]) -> None:
    """Who reads and writes which buffer; `written` are those that may not be written again."""
    named = [o.name for o in op.operands if isinstance(o, Buffer)]
    if not named:
        return
    for spec, operand in zip(find(op.kind).operands, op.operands, strict=False):
        if not isinstance(operand, Buffer):
            continue
        writes = spec.access != READ
        if operand.kind is BufferKind.TUNED and writes != (operation is Operation.TUNING):
            message = "only tuning programs fill it" if writes else "a tuning program fills it"
            refuse(operand.name, message, operation.name, "read it in a serving program")
        if writes and named.count(operand.name) > 1:
            refuse(
                operand.name, "written and named twice by one operation", operand.name, "copy first"
            )
        if writes and operand.kind in _WRITTEN_ONCE:
            if operand.name in written:
                kind = operand.kind.name.lower()
                refuse(operand.name, f"{kind} written twice", operand.name, "store once")
            written.add(operand.name)
