"""Writing one operation's program together with its contract entry.

What a program binds, reads, writes and completes is declared where it is used, once: the binding
of a transport buffer when the buffer is made, completion fields when they are stored, and state
accesses by looking at which operands the program's operations read and write.
"""

from helios.contract.operation import Operation
from helios.ignition.preparation.geometry import Geometry
from helios.ignition.recipes.recipe import Planes
from helios.program import extents
from helios.program.builder import ProgramBuilder
from helios.program.ir import Buffer, BufferKind, DType, ExtentKind, Program, Ref, Role, Shape
from helios.program.ops import OPS, READ, WRITE
from helios.records import dataclass
from helios.schema import contract_pb2, manifest_pb2

PROGRAM_RESOURCE = "program/"
PENDING = "pending"

_ACCESS = {
    frozenset({READ}): contract_pb2.ACCESS_READ,
    frozenset({WRITE}): contract_pb2.ACCESS_WRITE,
    frozenset({READ, WRITE}): contract_pb2.ACCESS_READ_WRITE,
}


@dataclass(frozen=True, slots=True)
class Graph:
    """A finished program, its contract entry and its catalog entry."""

    program: Program
    contract: contract_pb2.GraphContract
    descriptor: manifest_pb2.ProgramDescriptor
    retained: frozenset[str]  # transport destinations that keep their bytes


class GraphWriter:
    """One operation being written, for as many rows as there are request slots.

    `tokens` and `lane_tokens` bound the packed tokens of a submission and of one lane; both are 0
    for operations that consume none. `builder` writes the computation; the other methods also
    record what the contract must say.
    """

    def __init__(
        self,
        name: str,
        operation: Operation,
        geometry: Geometry,
        tokens: int = 0,
        lane_tokens: int = 0,
    ) -> None:
        self.geometry = geometry
        self.builder = ProgramBuilder(name, operation)
        self._name = name
        self._operation = operation
        self._rows = rows = geometry.concurrency
        self._tokens = tokens
        self._lane_tokens = lane_tokens
        self._bindings: list[contract_pb2.ValueBinding] = []
        self._completion: list[manifest_pb2.CompletionBinding] = []
        self._retained: set[str] = set()
        self.builder.extent(extents.ROWS, ExtentKind.DYNAMIC, rows)
        if tokens:
            self.builder.extent(extents.TOKENS, ExtentKind.DYNAMIC, tokens)
            self.builder.extent(extents.SAMPLED, ExtentKind.DYNAMIC, rows)
        self.builder.extent(extents.SLOTS, ExtentKind.LOAD, geometry.concurrency)
        self.builder.extent(extents.PAGES, ExtentKind.LOAD, 0)
        self.builder.extent(extents.CONTINUATIONS, ExtentKind.LOAD, 0)

    def bind(
        self,
        name: str,
        source: contract_pb2.ValueSource,
        index: contract_pb2.IndexKind,
        dtype: DType,
        shape: Shape,
        *,
        padding: int = 0,
        retained: bool = False,
        role: Role = Role.NONE,
    ) -> Buffer:
        """A transport buffer that packing fills from `source`."""
        buffer = self.builder.transport(name, dtype, shape, role)
        self._bindings.append(
            contract_pb2.ValueBinding(destination=name, source=source, index=index, padding=padding)
        )
        if retained:
            self._retained.add(name)
        return buffer

    def lane(
        self,
        name: str,
        source: contract_pb2.ValueSource,
        dtype: DType = DType.I32,
        padding: int = 0,
    ) -> Buffer:
        """A value of every live lane, [B]."""
        return self.bind(
            name,
            source,
            contract_pb2.INDEX_KIND_ACTIVE_ROW,
            dtype,
            (extents.ROWS,),
            padding=padding,
        )

    def page_table(self) -> Buffer:
        """The page table of all slots, of which only newly assigned entries are sent."""
        return self.bind(
            "page_table",
            contract_pb2.VALUE_SOURCE_PAGE_TABLE,
            contract_pb2.INDEX_KIND_PHYSICAL_ROW,
            DType.I32,
            (extents.SLOTS, self.geometry.table_pages),
            padding=-1,
            retained=True,
        )

    def planes(self) -> list[Planes]:
        """The cache planes of every layer."""
        return [
            Planes(*(self._plane(name, layer) for name in cache_planes(layer)))
            for layer in range(len(self.geometry.histories))
        ]

    def continuation(self, plane: Buffer) -> Buffer:
        """The continuation rows that keep partial pages of a plane."""
        return self.builder.state(
            continuation_rows(plane.name),
            plane.type.dtype,
            (extents.CONTINUATIONS, *plane.type.shape[1:]),
        )

    def complete(
        self, field: manifest_pb2.CompletionField, name: str, value: Ref, shape: Shape
    ) -> None:
        """Report a value to the host under that field."""
        record = self.builder.completion(f"completion.{name}", value.type.dtype, shape)
        self.builder.op("store", value, record)
        self._completion.append(manifest_pb2.CompletionBinding(field=field, buffer=record.name))

    def finish(self) -> Graph:
        """The verified program and what the contract and the manifest say of it."""
        program = self.builder.build()
        resource = PROGRAM_RESOURCE + self._name
        accesses = _state_accesses(program)
        contract = contract_pb2.GraphContract(
            program=self._name,
            operation=f"OPERATION_{self._operation.name}",
            bindings=self._bindings,
            state=[contract_pb2.StateAccess(view=v, access=a) for v, a in accesses.items()],
            resources=[resource],
            batch_capacity=self._rows,
            token_capacity=self._lane_tokens,
            packed_token_capacity=self._tokens,
            state_rows_per_request=1,
        )
        if accesses.get(PENDING) in (
            contract_pb2.ACCESS_READ,
            contract_pb2.ACCESS_READ_WRITE,
        ):
            contract.pending_view = PENDING
        descriptor = manifest_pb2.ProgramDescriptor(
            name=self._name,
            operation=f"OPERATION_{self._operation.name}",
            resource=resource,
            completion=self._completion,
        )
        return Graph(program, contract, descriptor, frozenset(self._retained))

    def _plane(self, name: str, layer: int) -> Buffer:
        history = self.geometry.histories[layer]
        shape = (extents.PAGES, self.geometry.page_tokens, history.heads, history.dim)
        return self.builder.buffer(name, BufferKind.CACHE, self.geometry.cache_dtype, shape)


def cache_planes(layer: int) -> tuple[str, str]:
    """Names of a layer's key and value planes."""
    return f"cache.{layer}.keys", f"cache.{layer}.values"


def continuation_rows(plane: str) -> str:
    """Name of the rows that keep partial pages of a plane."""
    return f"continuation.{plane}"


def _state_accesses(program: Program) -> dict[str, contract_pb2.Access]:
    """Access of every state buffer, in order of first use."""
    modes: dict[str, set[str]] = {}
    for op in program.ops:
        for spec, operand in zip(OPS[op.kind].operands, op.operands, strict=False):
            if isinstance(operand, Buffer) and operand.kind is BufferKind.STATE:
                modes.setdefault(operand.name, set()).update(spec.access.split("-"))
    return {name: _ACCESS[frozenset(found)] for name, found in modes.items()}
