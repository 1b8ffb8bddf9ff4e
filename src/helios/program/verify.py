"""Is a program well formed? Shapes, element types, extents, aliasing, definition before use."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

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
    TensorType,
    Value,
)
from helios.program.ops import OPS, READ, VALUE, WEIGHT, AttributeSpec, OperandSpec, OpSpec

Bindings = dict[str, Dim | tuple[Dim, ...]]


def infer_results(
    kind: str,
    operands: Sequence[Ref | None],
    attributes: Mapping[str, AttributeValue],
    extents: Mapping[str, Extent],
) -> tuple[TensorType, ...]:
    """The result types of an operation; raises `ProgramError` where operands do not unify."""
    spec = _spec(kind)
    _check_attributes(spec, attributes)
    if len(operands) > len(spec.operands):
        _refuse(kind, "too many operands", len(operands), f"give at most {len(spec.operands)}")
    bound: Bindings = {}
    padded = list(operands) + [None] * (len(spec.operands) - len(operands))
    by_name: dict[str, Ref] = {}
    for operand_spec, operand in zip(spec.operands, padded, strict=True):
        if operand is None:
            if not operand_spec.optional:
                _refuse(kind, f"operand {operand_spec.name} is missing", None, "supply it")
            continue
        _check_place(kind, operand_spec, operand)
        _unify(kind, operand_spec, operand.type, bound)
        by_name[operand_spec.name] = operand
    types = []
    for result in spec.results:
        dtype = (
            result.dtype if isinstance(result.dtype, DType) else by_name[result.dtype].type.dtype
        )
        types.append(TensorType(dtype, _shape(kind, result.shape, bound, attributes, extents)))
    return tuple(types)


def verify(program: Program) -> None:
    """Raise `ProgramError` unless every rule of a captured program holds.

    - Extents are distinct, dynamic ones have a capacity, and every extent a shape names exists.
    - Every operation is known, has its operands and attributes, and its results have exactly the
      types the op table infers.
    - Every value is defined once and before its first use.
    - One name means one buffer or weight throughout, and never two kinds of thing.
    - No operation writes a buffer that it also names as another operand.
    - A completion buffer is written at most once; transport and tuned buffers are never written.
    """
    if not program.name:
        raise ProgramError("a program needs a name", field="program.name", value="")
    extents = _verify_extents(program)
    defined: dict[str, Ref] = {}
    completed: set[str] = set()
    for index, op in enumerate(program.ops):
        where = f"{program.name}.ops[{index}] {op.kind}"
        try:
            _verify_op(op, extents, defined, completed)
        except ProgramError as error:
            raise ProgramError(
                error.message,
                field=f"{where}: {error.field}",
                value=error.value,
                remedy=error.remedy,
            ) from None


def _verify_extents(program: Program) -> dict[str, Extent]:
    extents: dict[str, Extent] = {}
    for extent in program.extents:
        where = f"{program.name}.extents.{extent.name}"
        if extent.name in extents:
            raise ProgramError("extent declared twice", field=where, value=extent.name)
        if extent.capacity < 0 or (extent.kind is ExtentKind.DYNAMIC and extent.capacity == 0):
            raise ProgramError(
                "a dynamic extent needs a positive capacity", field=where, value=extent.capacity
            )
        extents[extent.name] = extent
    return extents


def _verify_op(
    op: Op, extents: Mapping[str, Extent], defined: dict[str, Ref], completed: set[str]
) -> None:
    spec = _spec(op.kind)
    for operand in op.operands:
        if operand is not None:
            _verify_reference(op.kind, operand, extents, defined)
    expected = infer_results(op.kind, op.operands, op.attributes, extents)
    if len(op.results) != len(expected):
        _refuse(op.kind, f"{len(expected)} results expected", len(op.results), "name each result")
    for result, type_ in zip(op.results, expected, strict=True):
        if result.type != type_:
            _refuse(
                f"%{result.name}", f"the op table infers {type_}", str(result.type), "fix the type"
            )
        if result.name in defined:
            _refuse(f"%{result.name}", "the name is taken", result.name, "rename the result")
        defined[result.name] = result
    _verify_writes(spec, op, completed)


def _verify_reference(
    kind: str, operand: Ref, extents: Mapping[str, Extent], defined: dict[str, Ref]
) -> None:
    _verify_dims(operand, extents)
    if isinstance(operand, Value):
        if defined.get(operand.name) != operand:
            _refuse(
                f"%{operand.name}", "read before it is written", operand.name, "reorder the ops"
            )
    elif defined.setdefault(operand.name, operand) != operand:
        _refuse(operand.name, "one name, two things", operand.name, f"rename one of them in {kind}")


def _verify_dims(item: Ref, extents: Mapping[str, Extent]) -> None:
    for dim in item.type.shape:
        if isinstance(dim, str) and dim not in extents:
            _refuse(item.name, "unknown extent", dim, "declare the extent")
        if isinstance(dim, int) and dim < 1:
            _refuse(item.name, "a dimension must be positive", dim, "drop the empty tensor")


def _verify_writes(spec: OpSpec, op: Op, completed: set[str]) -> None:
    named = [o.name for o in op.operands if isinstance(o, Buffer)]
    for operand_spec, operand in zip(spec.operands, op.operands, strict=False):
        if not isinstance(operand, Buffer) or operand_spec.access == READ:
            continue
        if named.count(operand.name) > 1:
            _refuse(
                operand.name, "written and named twice by one operation", operand.name, "copy first"
            )
        if operand.kind is BufferKind.COMPLETION:
            if operand.name in completed:
                _refuse(operand.name, "completion written twice", operand.name, "store once")
            completed.add(operand.name)


def _spec(kind: str) -> OpSpec:
    if kind not in OPS:
        _refuse(kind, "unknown operation", kind, f"known operations: {', '.join(sorted(OPS))}")
    return OPS[kind]


def _check_attributes(spec: OpSpec, attributes: Mapping[str, AttributeValue]) -> None:
    known: dict[str, AttributeSpec] = {a.name: a for a in spec.attributes}
    for name, value in attributes.items():
        if name not in known:
            _refuse(f"{spec.kind}.{name}", "unknown attribute", value, f"known: {', '.join(known)}")
        if type(value) is not known[name].type:
            _refuse(
                f"{spec.kind}.{name}", f"must be {known[name].type.__name__}", value, "convert it"
            )
        if known[name].choices and value not in known[name].choices:
            _refuse(f"{spec.kind}.{name}", "unknown choice", value, f"one of {known[name].choices}")
    for name, attribute in known.items():
        if attribute.default is None and name not in attributes:
            _refuse(f"{spec.kind}.{name}", "required attribute is missing", None, "supply it")


def _check_place(kind: str, spec: OperandSpec, operand: Ref) -> None:
    if isinstance(operand, Value):
        place: object = VALUE
    else:
        place = operand.kind if isinstance(operand, Buffer) else WEIGHT
    if place not in spec.places:
        allowed = ", ".join(sorted(_place_name(p) for p in spec.places))
        _refuse(f"{kind}.{spec.name}", f"must live in {allowed}", _place_name(place), "move it")
    if operand.type.dtype not in spec.dtypes:
        allowed = ", ".join(sorted(d.text for d in spec.dtypes))
        _refuse(
            f"{kind}.{spec.name}",
            f"element type must be {allowed}",
            operand.type.dtype.text,
            "cast",
        )


def _place_name(place: object) -> str:
    return place.name.lower() if isinstance(place, BufferKind) else str(place)


def _unify(kind: str, spec: OperandSpec, type_: TensorType, bound: Bindings) -> None:
    pattern, shape = list(spec.shape), list(type_.shape)
    if "..." in pattern:
        head = pattern.index("...")
        tail = len(pattern) - head - 1
        if len(shape) < head + tail:
            _refuse(f"{kind}.{spec.name}", "too few dimensions", str(type_), f"wants {spec.shape}")
        middle = tuple(shape[head : len(shape) - tail])
        _bind(kind, spec, "...", middle, bound)
        pattern = pattern[:head] + pattern[head + 1 :]
        shape = shape[:head] + shape[len(shape) - tail :]
    if len(pattern) != len(shape):
        _refuse(f"{kind}.{spec.name}", f"wants {len(pattern)} dimensions", str(type_), "reshape it")
    for name, dim in zip(pattern, shape, strict=True):
        if isinstance(name, int):
            if name != dim:
                _refuse(f"{kind}.{spec.name}", f"dimension must be {name}", dim, "reshape it")
        else:
            _bind(kind, spec, name, dim, bound)


def _bind(
    kind: str, spec: OperandSpec, name: str, dim: Dim | tuple[Dim, ...], bound: Bindings
) -> None:
    known = bound.setdefault(name, dim)
    if known != dim:
        _refuse(
            f"{kind}.{spec.name}",
            f"{name} is {known} in an earlier operand",
            dim,
            "shapes must agree",
        )


def _shape(
    kind: str,
    pattern: Iterable[str | int],
    bound: Bindings,
    attributes: Mapping[str, AttributeValue],
    extents: Mapping[str, Extent],
) -> tuple[Dim, ...]:
    shape: list[Dim] = []
    for name in pattern:
        if isinstance(name, int):
            shape.append(name)
        elif name in bound:
            dim = bound[name]
            shape.extend(dim) if isinstance(dim, tuple) else shape.append(dim)
        else:
            dim = attributes[name]  # type: ignore[assignment]
            if isinstance(dim, str) and dim not in extents:
                _refuse(f"{kind}.{name}", "unknown extent", dim, "declare the extent")
            shape.append(dim)  # type: ignore[arg-type]
    return tuple(shape)


def _refuse(field: str, message: str, value: object, remedy: str) -> NoReturn:
    raise ProgramError(message, field=field, value=value, remedy=remedy)
