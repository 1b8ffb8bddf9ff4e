"""Who a lane is, and what every completion says of it."""

from helios.ignition.preparation.graph import GraphWriter
from helios.program import extents
from helios.program.ir import Buffer, Ref
from helios.records import dataclass
from helios.schema import contract_pb2, manifest_pb2


@dataclass(frozen=True, slots=True)
class Lanes:
    """Identity of the live lanes, [B] each."""

    slots: Buffer
    generations: Buffer


def identify(graph: GraphWriter) -> Lanes:
    """Bind slot and generation of every lane."""
    return Lanes(
        graph.lane("slot", contract_pb2.VALUE_SOURCE_SLOT),
        graph.lane("generation", contract_pb2.VALUE_SOURCE_GENERATION),
    )


def report(graph: GraphWriter, lanes: Lanes, endpoints: Ref) -> None:
    """Complete with slot, generation and the tokens consumed after the step."""
    rows = (extents.ROWS,)
    graph.complete(manifest_pb2.COMPLETION_FIELD_SLOT, "slot", lanes.slots, rows)
    graph.complete(manifest_pb2.COMPLETION_FIELD_GENERATION, "generation", lanes.generations, rows)
    graph.complete(manifest_pb2.COMPLETION_FIELD_ENDPOINT, "endpoint", endpoints, rows)
