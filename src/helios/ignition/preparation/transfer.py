"""Moving state between pages and continuation rows: RESTORE and snapshots."""

from helios.contract.operation import Operation
from helios.ignition.preparation import completion
from helios.ignition.preparation.geometry import Geometry
from helios.ignition.preparation.graph import Graph, GraphWriter
from helios.program import extents
from helios.program.ir import Buffer, DType, Ref, Value
from helios.schema import contract_pb2 as pb


def restore_graph(name: str, geometry: Geometry) -> Graph:
    """RESTORE copies a snapshot's partial page into the lane's own page and sets its endpoint.

    Complete pages need no copy: the lane's page table names them.
    """
    graph = GraphWriter(name, Operation.RESTORE, geometry)
    lanes = completion.identify(graph)
    source = graph.lane("restore_source", pb.VALUE_SOURCE_RESTORE_SOURCE, padding=-1)
    endpoints = graph.lane("endpoint.new", pb.VALUE_SOURCE_CONSUMED_TOKENS)
    table = graph.page_table()
    page = _current_page(graph, lanes.slots, endpoints, source, table)
    for plane in _every_plane(graph):
        graph.builder.op("page_load", graph.continuation(plane), source, plane, page)
    endpoint = graph.builder.state("endpoint", DType.I32, (extents.SLOTS,))
    graph.builder.op("state_write", endpoint, lanes.slots, endpoints)
    completion.report(graph, lanes, endpoints)
    return graph.finish()


def write_snapshot(graph: GraphWriter, slots: Buffer, endpoints: Ref, table: Buffer) -> None:
    """Keep each lane's partial page in the continuation row the host chose, if it chose one."""
    destination = graph.lane(
        "snapshot_destination", pb.VALUE_SOURCE_SNAPSHOT_DESTINATION, padding=-1
    )
    page = _current_page(graph, slots, endpoints, destination, table)
    for plane in _every_plane(graph):
        graph.builder.op("page_save", plane, page, graph.continuation(plane), destination)


def _current_page(
    graph: GraphWriter, slots: Buffer, endpoints: Ref, selector: Buffer, table: Buffer
) -> Value:
    return graph.builder.value(
        "current_page",
        slots,
        endpoints,
        selector,
        table,
        page_tokens=graph.geometry.page_tokens,
    )


def _every_plane(graph: GraphWriter) -> list[Buffer]:
    return [plane for layer in graph.planes() for plane in (layer.keys, layer.values)]
