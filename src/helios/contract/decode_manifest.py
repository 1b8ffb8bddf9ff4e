"""Decoding the execution manifest: buffers, transport, catalogs, weights."""

from collections.abc import Mapping
from types import MappingProxyType

from helios.contract.kinds import CompletionField, WeightStorage
from helios.contract.operation import Operation
from helios.contract.prepared import (
    BufferDescriptor,
    TransportDestination,
    TunedBinding,
    TuningProgram,
    WeightDescriptor,
)
from helios.contract.reading import check_distinct, check_name, refusal, select, table, tensor_type
from helios.contract.tensor import BufferKind
from helios.records import dataclass
from helios.schema import manifest_pb2 as pb


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A serving program as the execution catalog describes it."""

    program: str
    operation: Operation
    resource: str
    completion: Mapping[CompletionField, str]
    tuned: tuple[TunedBinding, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The decoded manifest."""

    abi: int
    buffers: Mapping[str, BufferDescriptor]
    transport: Mapping[str, TransportDestination]
    programs: Mapping[str, CatalogEntry]
    tuning: Mapping[str, TuningProgram]
    weights: Mapping[str, WeightDescriptor]
    request_slots: int
    draft_capacity: int


def decode_manifest(manifest: pb.ExecutionManifest) -> Manifest:
    """The manifest's facts. Raises `ContractError` for selections, names and tables."""
    transport = table(map(_destination, manifest.transport), lambda t: t.name, "manifest.transport")
    buffers = table(map(_buffer, manifest.buffers), lambda b: b.name, "manifest.buffers")
    check_one_namespace(buffers, transport)
    programs = table(map(_entry, manifest.programs), lambda p: p.program, "manifest.programs")
    tuning = table(map(_tuning, manifest.tuning), lambda p: p.program, "manifest.tuning")
    check_catalogs_apart(programs, tuning)
    return Manifest(
        abi=manifest.abi,
        buffers=MappingProxyType(
            {n: b for n, b in buffers.items() if b.kind is not BufferKind.TRANSPORT}
        ),
        transport=transport,
        programs=programs,
        tuning=tuning,
        weights=table(map(_weight, manifest.weights), lambda w: w.name, "manifest.weights"),
        request_slots=manifest.request_slots,
        draft_capacity=manifest.draft_capacity,
    )


def check_one_namespace(
    buffers: Mapping[str, BufferDescriptor], transport: Mapping[str, TransportDestination]
) -> None:
    """A transport destination and a buffer share a name only if they are the same storage."""
    for name, buffer in buffers.items():
        field = f"manifest.buffers.{name}"
        if buffer.kind is BufferKind.TRANSPORT:
            if name not in transport or transport[name].type != buffer.type:
                raise refusal(
                    field, "is no transport destination of that type", str(buffer.type), "list it"
                )
        elif name in transport:
            raise refusal(field, "is a transport destination too", buffer.kind.name, "rename one")


def check_catalogs_apart(
    programs: Mapping[str, CatalogEntry], tuning: Mapping[str, TuningProgram]
) -> None:
    """A name stands in one catalog only."""
    for name in tuning:
        if name in programs:
            raise refusal(f"manifest.tuning.{name}", "is a serving program too", name, "rename one")


def _destination(message: pb.TransportDestination) -> TransportDestination:
    field = f"manifest.transport.{message.name}"
    return TransportDestination(message.name, tensor_type(message.type, field), message.retained)


def _buffer(message: pb.BufferDescriptor) -> BufferDescriptor:
    field = f"manifest.buffers.{message.name}"
    kind = select(BufferKind, message.kind, f"{field}.kind")
    return BufferDescriptor(message.name, kind, tensor_type(message.type, field))


def _entry(message: pb.ProgramDescriptor) -> CatalogEntry:
    field = f"manifest.programs.{message.name}"
    operation = select(Operation, message.operation, f"{field}.operation")
    if operation is Operation.TUNING:
        raise refusal(f"{field}.operation", "tunes", "TUNING", "move it to the tuning catalog")
    if message.tuned_outputs:
        raise refusal(
            f"{field}.tuned_outputs",
            "only tuning programs fill tuned buffers",
            message.tuned_outputs[0],
            "move the program to the tuning catalog",
        )
    return CatalogEntry(
        message.name,
        operation,
        check_name(message.resource, f"{field}.resource"),
        _completion(message, field),
        check_distinct(
            (TunedBinding(t.buffer, t.producer) for t in message.tuned_inputs),
            f"{field}.tuned_inputs",
            "binding",
        ),
    )


def _completion(message: pb.ProgramDescriptor, field: str) -> Mapping[CompletionField, str]:
    found: dict[CompletionField, str] = {}
    for index, binding in enumerate(message.completion):
        where = f"{field}.completion[{index}].field"
        selected = select(CompletionField, binding.field, where)
        if selected in found:
            raise refusal(where, "the field comes twice", selected.name, "report it once")
        found[selected] = binding.buffer
    check_distinct(found.values(), f"{field}.completion", "buffer")
    return MappingProxyType(found)


def _tuning(message: pb.ProgramDescriptor) -> TuningProgram:
    field = f"manifest.tuning.{message.name}"
    operation = select(Operation, message.operation, f"{field}.operation")
    if operation is not Operation.TUNING:
        raise refusal(f"{field}.operation", "does not tune", operation.name, "declare TUNING")
    if message.completion or message.tuned_inputs:
        raise refusal(
            field,
            "a tuning program neither completes nor takes tuned buffers",
            len(message.completion) + len(message.tuned_inputs),
            "drop them",
        )
    outputs = check_distinct(message.tuned_outputs, f"{field}.tuned_outputs", "buffer")
    return TuningProgram(message.name, check_name(message.resource, f"{field}.resource"), outputs)


def _weight(message: pb.WeightDescriptor) -> WeightDescriptor:
    field = f"manifest.weights.{message.name}"
    return WeightDescriptor(
        message.name,
        select(WeightStorage, message.storage, f"{field}.storage"),
        tuple(message.shape),
        check_name(message.resource, f"{field}.resource"),
        message.offset,
        message.nbytes,
    )
