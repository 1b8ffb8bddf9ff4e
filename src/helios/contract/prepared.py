"""A validated contract: everything a server knows of a model, typed and frozen.

`PreparedContract` is the whole; it holds `ServingDefaults`, `VisionGeometry`, `CacheGeometry`
(of `HistoryRegion`, `CachePlane`, `PageTableView`), `PreparedGraph` (of `ValueBinding`,
`StateAccess`, `StateView`, `TunedBinding`, `DraftCursor`), `TuningProgram`, `BufferDescriptor`,
`TransportDestination`, `WeightDescriptor` and `syntax.PreparedFrontend`.

`PreparedContract` and `PreparedGraph` are sealed: `prepare_contract` alone can make them, and
neither `dataclasses.replace` nor pickling makes another. What crosses a process boundary is the
contract's bytes, which are validated again where they arrive.
"""

from collections.abc import Mapping
from dataclasses import InitVar, field
from typing import NoReturn

from helios.contract.kinds import (
    Access,
    CompletionField,
    HistoryKind,
    IndexKind,
    ValueSource,
    WeightStorage,
)
from helios.contract.operation import Operation
from helios.contract.syntax import PreparedFrontend
from helios.contract.tensor import BufferKind, TensorType
from helios.errors import ContractError
from helios.records import dataclass

SEAL = object()
"""What `prepare_contract` passes to prove that it did the checking."""


def _check_seal(seal: object, kind: str) -> None:
    if seal is not SEAL:
        raise ContractError("is sealed", field=kind, remedy="obtain it from prepare_contract")


def _refuse_copy(kind: str) -> NoReturn:
    raise ContractError(
        "is sealed", field=kind, remedy="send the contract's bytes and call prepare_contract there"
    )


@dataclass(frozen=True, slots=True)
class ServingDefaults:
    """The publisher's request defaults; None leaves the server's own default."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class VisionGeometry:
    """Capacities of image features; patch capacities ascend."""

    feature_slots: int
    window_feature_capacity: int
    patches_per_feature: int
    patch_capacities: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CachePlane:
    """A buffer of history records, each `record_bytes` long."""

    buffer: str
    record_bytes: int


@dataclass(frozen=True, slots=True)
class HistoryRegion:
    """One kind of attention history and the planes that store it.

    `tokens_per_record` is 0 for recurrent state and for continuation rows that hold anything but
    token records; `window_tokens` is 0 except for sliding windows.
    """

    name: str
    kind: HistoryKind
    planes: tuple[CachePlane, ...]
    tokens_per_record: int
    window_tokens: int


@dataclass(frozen=True, slots=True)
class PageTableView:
    """A page-table destination: entry j of a row is page `page_offset + j` of the request."""

    destination: str
    page_offset: int


@dataclass(frozen=True, slots=True)
class CacheGeometry:
    """`page_tokens` is the number of token positions that one page id stands for."""

    page_tokens: int
    histories: tuple[HistoryRegion, ...]
    page_tables: tuple[PageTableView, ...]


@dataclass(frozen=True, slots=True)
class StateView:
    """Rows within a persistent buffer: row r is `row_bytes` at `byte_offset + r · row_stride`."""

    name: str
    buffer: str
    byte_offset: int
    row_stride: int
    row_bytes: int


@dataclass(frozen=True, slots=True)
class StateAccess:
    """What a graph does to one state view."""

    view: StateView
    access: Access


@dataclass(frozen=True, slots=True)
class DraftCursor:
    """Committed draft state that trails target consumption by `lag_tokens`."""

    view: StateView
    lag_tokens: int


@dataclass(frozen=True, slots=True)
class ValueBinding:
    """A transport destination and the host value that fills it.

    `offset` is added to integer values and `padding` fills inactive entries.
    """

    destination: str
    source: ValueSource
    index: IndexKind
    offset: int = 0
    padding: int = 0
    constants: tuple[int, ...] = ()
    image_tensor: str = ""


@dataclass(frozen=True, slots=True)
class TunedBinding:
    """A buffer filled once at start-up by a program of the tuning catalog."""

    buffer: str
    producer: str


@dataclass(frozen=True, slots=True)
class PreparedGraph:
    """One captured program and all that surrounds it. Sealed.

    `rows` is B, `draft_tokens` D, `width` W and `tokens` P. `pending_view` is set where the
    device owns the pending token, `pending_destination` where the host feeds it; a graph that
    neither reads nor produces one has both unset. `resource` holds the program; `resources` are
    all executables the graph needs, that one included.
    """

    seal: InitVar[object]
    program: str
    operation: Operation
    resource: str
    resources: tuple[str, ...]
    bindings: tuple[ValueBinding, ...]
    state: tuple[StateAccess, ...]
    pending_view: StateView | None
    pending_destination: str | None
    tuned: tuple[TunedBinding, ...]
    rows: int
    draft_tokens: int
    width: int
    tokens: int
    confidence_width: int
    state_rows_per_request: int
    draft_cursor: DraftCursor | None
    completion: Mapping[CompletionField, str] = field(hash=False)

    def __post_init__(self, seal: object) -> None:
        _check_seal(seal, "PreparedGraph")

    def __reduce__(self) -> NoReturn:
        _refuse_copy("PreparedGraph")

    @property
    def device_allocates(self) -> bool:
        """Whether the program itself shares P among the lanes, below the host's ceilings."""
        return any(b.source is ValueSource.SPECULATIVE_PREFIX_LIMIT for b in self.bindings)


@dataclass(frozen=True, slots=True)
class TuningProgram:
    """A program of the tuning catalog and the buffers it fills."""

    program: str
    resource: str
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BufferDescriptor:
    """Storage on the device, by name; extents in its shape are chosen at load."""

    name: str
    kind: BufferKind
    type: TensorType


@dataclass(frozen=True, slots=True)
class TransportDestination:
    """A buffer the host writes into a frame; a retained one keeps bytes that are not sent."""

    name: str
    type: TensorType
    retained: bool


@dataclass(frozen=True, slots=True)
class WeightDescriptor:
    """Where a stored tensor lies: `nbytes` at `offset` in `resource`; its shape is logical."""

    name: str
    storage: WeightStorage
    shape: tuple[int, ...]
    resource: str
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class PreparedContract:
    """A contract and manifest that hold every rule. Sealed."""

    seal: InitVar[object]
    served_id: str
    aliases: tuple[str, ...]
    cache_identity: str
    context_tokens: int
    prefill_tokens: int
    prepared_pages: int
    prepared_snapshots: int
    concurrency: int
    speculative_widths: tuple[int, ...]
    defaults: ServingDefaults
    version: int
    vocabulary: int
    input_vocabulary: int
    vision: VisionGeometry | None
    cache: CacheGeometry
    graphs: tuple[PreparedGraph, ...]
    frontend: PreparedFrontend
    abi: int
    request_slots: int
    draft_capacity: int
    state_views: Mapping[str, StateView] = field(hash=False)
    buffers: Mapping[str, BufferDescriptor] = field(hash=False)
    transport: Mapping[str, TransportDestination] = field(hash=False)
    tuning: Mapping[str, TuningProgram] = field(hash=False)
    weights: Mapping[str, WeightDescriptor] = field(hash=False)

    def __post_init__(self, seal: object) -> None:
        _check_seal(seal, "PreparedContract")

    def __reduce__(self) -> NoReturn:
        _refuse_copy("PreparedContract")

    def graph(self, program: str) -> PreparedGraph:
        """The graph of a program; `KeyError` if there is none."""
        for graph in self.graphs:
            if graph.program == program:
                return graph
        raise KeyError(program)

    def graphs_of(self, operation: Operation) -> tuple[PreparedGraph, ...]:
        """The graphs of one operation, in the contract's order."""
        return tuple(g for g in self.graphs if g.operation is operation)
