"""The execution manifest: buffers, transport destinations, catalogs and weights."""

from collections.abc import Iterable, Mapping, Sequence

from helios.errors import ProgramError
from helios.ignition.preparation.geometry import Geometry
from helios.ignition.preparation.graph import Graph
from helios.ignition.preparation.tuning import Tuning
from helios.program.ir import Buffer, BufferKind, TensorType
from helios.schema import manifest_pb2, program_pb2

ABI = 1


def execution_manifest(
    graphs: Sequence[Graph],
    tuning: Sequence[Tuning],
    geometry: Geometry,
    weights: Iterable[manifest_pb2.WeightDescriptor],
) -> manifest_pb2.ExecutionManifest:
    """What the programs need of a device, physically."""
    buffers = every_buffer(graphs)
    retained = frozenset().union(*(graph.retained for graph in graphs))
    return manifest_pb2.ExecutionManifest(
        abi=ABI,
        buffers=[
            manifest_pb2.BufferDescriptor(
                name=b.name, kind=f"BUFFER_KIND_{b.kind.name}", type=wire_type(b.type)
            )
            for b in buffers.values()
        ],
        transport=[
            manifest_pb2.TransportDestination(
                name=b.name, type=wire_type(b.type), retained=b.name in retained
            )
            for b in buffers.values()
            if b.kind is BufferKind.TRANSPORT
        ],
        programs=[graph.descriptor for graph in graphs],
        tuning=[item.descriptor for item in tuning],
        weights=weights,
        request_slots=geometry.concurrency,
    )


def every_buffer(graphs: Sequence[Graph]) -> Mapping[str, Buffer]:
    """The buffers of all programs by name, which mean the same in each."""
    found: dict[str, Buffer] = {}
    for graph in graphs:
        for buffer in graph.program.buffers():
            if found.setdefault(buffer.name, buffer) != buffer:
                raise ProgramError(
                    "programs disagree about a buffer",
                    field=f"{graph.program.name}.{buffer.name}",
                    value=str(buffer.type),
                    remedy=f"declare it as {found[buffer.name].type}",
                )
    return found


def wire_type(type_: TensorType) -> program_pb2.TensorType:
    """A tensor type in Protobuf form."""
    dimensions = [
        program_pb2.Dimension(constant=d) if isinstance(d, int) else program_pb2.Dimension(extent=d)
        for d in type_.shape
    ]
    return program_pb2.TensorType(dtype=f"DTYPE_{type_.dtype.name}", shape=dimensions)
