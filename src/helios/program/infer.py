"""One operation against its row of the op table: attributes, places, unification, result types."""

import math
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
    Ref,
    TensorType,
    Value,
    Weight,
)
from helios.program.ops import OPS, VALUE, WEIGHT, AttributeSpec, OperandSpec, OpSpec
from helios.program.rules import Call, check_rules

Bindings = dict[str, Dim | tuple[Dim, ...]]

MAX_ATTRIBUTE_TEXT = 4096
MAX_ATTRIBUTE_ITEMS = 4096


def infer_results(
    kind: str,
    operands: Sequence[Ref | None],
    attributes: Mapping[str, AttributeValue],
    extents: Mapping[str, Extent],
) -> tuple[TensorType, ...]:
    """The result types of an operation; raises `ProgramError` where operands do not unify.

    Attributes that have a default may be left out.
    """
    spec = find(kind)
    complete = _complete_attributes(spec, attributes)
    if len(operands) > len(spec.operands):
        refuse(kind, "too many operands", len(operands), f"give at most {len(spec.operands)}")
    bound: Bindings = {}
    padded = [*operands, *[None] * (len(spec.operands) - len(operands))]
    by_name: dict[str, Ref] = {}
    for operand_spec, operand in zip(spec.operands, padded, strict=True):
        if operand is None:
            if not operand_spec.optional:
                refuse(kind, f"operand {operand_spec.name} is missing", None, "supply it")
            continue
        _check_place(kind, operand_spec, operand)
        _unify(kind, operand_spec, operand.type, bound)
        by_name[operand_spec.name] = operand
    check_rules(Call(kind, by_name, complete, extents))
    types = []
    for result in spec.results:
        dtype = (
            result.dtype if isinstance(result.dtype, DType) else by_name[result.dtype].type.dtype
        )
        types.append(TensorType(dtype, _shape(kind, result.shape, bound, complete, extents)))
    return tuple(types)


def find(kind: str) -> OpSpec:
    """The op table's row of a kind; raises `ProgramError` for an unknown one."""
    if kind not in OPS:
        refuse(kind, "unknown operation", kind, f"known operations: {', '.join(sorted(OPS))}")
    return OPS[kind]


def refuse(field: str, message: str, value: object, remedy: str) -> NoReturn:
    """Raise a `ProgramError`."""
    raise ProgramError(message, field=field, value=value, remedy=remedy)


def _complete_attributes(
    spec: OpSpec, attributes: Mapping[str, AttributeValue]
) -> dict[str, AttributeValue]:
    known: dict[str, AttributeSpec] = {a.name: a for a in spec.attributes}
    complete: dict[str, AttributeValue] = {}
    for name, value in attributes.items():
        if name not in known:
            refuse(f"{spec.kind}.{name}", "unknown attribute", value, f"known: {', '.join(known)}")
        _check_attribute(f"{spec.kind}.{name}", known[name], value)
    for name, attribute in known.items():
        if attribute.default is None and name not in attributes:
            refuse(f"{spec.kind}.{name}", "required attribute is missing", None, "supply it")
        complete[name] = attributes.get(name, attribute.default)  # type: ignore[arg-type]
    return complete


def _check_attribute(field: str, spec: AttributeSpec, value: AttributeValue) -> None:
    if type(value) is not spec.type:
        refuse(field, f"must be {spec.type.__name__}", value, "convert it")
    if spec.choices and value not in spec.choices:
        refuse(field, "unknown choice", value, f"one of {spec.choices}")
    if isinstance(value, float) and not math.isfinite(value):
        refuse(field, "must be finite", value, "correct the number")
    if isinstance(value, int) and not _is_int64(value):
        refuse(field, "must fit 64 bits", value, "correct the number")
    if isinstance(value, str) and (len(value) > MAX_ATTRIBUTE_TEXT or not _is_unicode(value)):
        refuse(field, "must be short, well-formed text", value, "correct the text")
    if isinstance(value, tuple) and (
        len(value) > MAX_ATTRIBUTE_ITEMS or not all(type(v) is int and _is_int64(v) for v in value)
    ):
        refuse(field, "must be a short list of 64-bit integers", value, "correct the list")


def _is_int64(value: int) -> bool:
    return -(1 << 63) <= value < 1 << 63


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_place(kind: str, spec: OperandSpec, operand: Ref) -> None:
    if isinstance(operand, Value):
        place: object = VALUE
    elif isinstance(operand, Buffer):
        place = operand.kind
    elif isinstance(operand, Weight):
        place = WEIGHT
    if place not in spec.places:
        allowed = ", ".join(sorted(_place_name(p) for p in spec.places))
        refuse(f"{kind}.{spec.name}", f"must live in {allowed}", _place_name(place), "move it")
    if operand.type.dtype not in spec.dtypes:
        allowed = ", ".join(sorted(d.text for d in spec.dtypes))
        refuse(
            f"{kind}.{spec.name}",
            f"element type must be {allowed}",
            operand.type.dtype.text,
            "cast",
        )


def _place_name(place: object) -> str:
    return place.name.lower() if isinstance(place, BufferKind) else str(place)


def _unify(kind: str, spec: OperandSpec, type_: TensorType, bound: Bindings) -> None:
    pattern, shape = spec.shape, type_.shape
    if "..." in pattern:
        head = pattern.index("...")
        tail = len(pattern) - head - 1
        if len(shape) < head + tail:
            refuse(f"{kind}.{spec.name}", "too few dimensions", str(type_), f"wants {spec.shape}")
        _bind(kind, spec, "...", shape[head : len(shape) - tail], bound)
        pattern = pattern[:head] + pattern[head + 1 :]
        shape = shape[:head] + shape[len(shape) - tail :]
    if len(pattern) != len(shape):
        refuse(f"{kind}.{spec.name}", f"wants {len(pattern)} dimensions", str(type_), "reshape it")
    for name, dim in zip(pattern, shape, strict=True):
        if isinstance(name, int):
            if name != dim:
                refuse(f"{kind}.{spec.name}", f"dimension must be {name}", dim, "reshape it")
        else:
            _bind(kind, spec, name, dim, bound)


def _bind(
    kind: str, spec: OperandSpec, name: str, dim: Dim | tuple[Dim, ...], bound: Bindings
) -> None:
    known = bound.setdefault(name, dim)
    if known != dim:
        refuse(
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
                refuse(f"{kind}.{name}", "unknown extent", dim, "declare the extent")
            shape.append(dim)  # type: ignore[arg-type]
    return tuple(shape)
