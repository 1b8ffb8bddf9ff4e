"""Writing a program: declare storage, call operations, get a verified `Program`."""

from typing import TypeVar

from helios.contract.operation import Operation
from helios.errors import ProgramError
from helios.program.ir import (
    AttributeValue,
    Buffer,
    BufferKind,
    DType,
    Extent,
    ExtentKind,
    Op,
    Program,
    Ref,
    Role,
    Shape,
    TensorType,
    Value,
    Weight,
)
from helios.program.ops import OPS
from helios.program.verify import infer_results, verify

_RefT = TypeVar("_RefT", Buffer, Weight)


class ProgramBuilder:
    """Collects one program's operations in order.

    Storage is declared where it is first needed; declaring the same name twice returns the same
    object and refuses another type. Operations are called by name through `op`, which infers the
    result types from the op table.
    """

    def __init__(self, name: str, operation: Operation) -> None:
        self._name = name
        self._operation = operation
        self._extents: dict[str, Extent] = {}
        self._declared: dict[str, Buffer | Weight] = {}
        self._ops: list[Op] = []
        self._counts: dict[str, int] = {}

    def extent(self, name: str, kind: ExtentKind, capacity: int) -> str:
        """Declare an extent and return its name, to be used in shapes."""
        self._extents[name] = Extent(name, kind, capacity)
        return name

    def buffer(
        self, name: str, kind: BufferKind, dtype: DType, shape: Shape, role: Role = Role.NONE
    ) -> Buffer:
        """Declare a buffer, or get the one declared before."""
        return self._declare(Buffer(name, kind, TensorType(dtype, shape), role))

    def transport(self, name: str, dtype: DType, shape: Shape, role: Role = Role.NONE) -> Buffer:
        """A buffer the host fills."""
        return self.buffer(name, BufferKind.TRANSPORT, dtype, shape, role)

    def state(self, name: str, dtype: DType, shape: Shape) -> Buffer:
        """A persistent buffer of request rows."""
        return self.buffer(name, BufferKind.STATE, dtype, shape)

    def completion(self, name: str, dtype: DType, shape: Shape) -> Buffer:
        """A buffer the host reads when the submission is complete."""
        return self.buffer(name, BufferKind.COMPLETION, dtype, shape)

    def weight(self, name: str, shape: Shape) -> Weight:
        """A parameter of the model."""
        return self._declare(Weight(name, TensorType(DType.F32, shape)))

    def op(
        self,
        kind: str,
        *operands: Ref | None,
        name: str = "",
        role: Role = Role.NONE,
        **attributes: AttributeValue,
    ) -> tuple[Value, ...]:
        """Append an operation and return its results.

        `name` names a single result (or prefixes several); without one, results are numbered by
        kind. Raises `ProgramError` for an unknown kind or operands that do not unify.
        """
        if kind not in OPS:
            raise ProgramError("unknown operation", field=self._name, value=kind)
        types = infer_results(kind, operands, attributes, self._extents)
        base = name or self._numbered(kind)
        specs = OPS[kind].results
        results = tuple(
            Value(base if len(specs) == 1 else f"{base}.{spec.name}", t, role)
            for spec, t in zip(specs, types, strict=True)
        )
        self._ops.append(Op(kind, operands, results, _with_defaults(kind, attributes)))
        return results

    def value(
        self,
        kind: str,
        *operands: Ref | None,
        name: str = "",
        role: Role = Role.NONE,
        **attributes: AttributeValue,
    ) -> Value:
        """Append an operation of exactly one result and return that result."""
        (result,) = self.op(kind, *operands, name=name, role=role, **attributes)
        return result

    def build(self) -> Program:
        """The finished program, verified."""
        program = Program(
            self._name, self._operation, tuple(self._extents.values()), tuple(self._ops)
        )
        verify(program)
        return program

    def _declare(self, item: _RefT) -> _RefT:
        known = self._declared.setdefault(item.name, item)
        if known != item:
            raise ProgramError(
                "declared twice with different types",
                field=f"{self._name}.{item.name}",
                value=f"{known.type} and {item.type}",
            )
        return item

    def _numbered(self, kind: str) -> str:
        count = self._counts[kind] = self._counts.get(kind, -1) + 1
        return f"{kind}.{count}"


def _with_defaults(kind: str, attributes: dict[str, AttributeValue]) -> dict[str, AttributeValue]:
    defaults = {a.name: a.default for a in OPS[kind].attributes if a.default is not None}
    return {**defaults, **attributes}  # type: ignore[dict-item]
