"""INITIALIZE and RESUME: writing a request's state rows."""

from helios.contract.operation import Operation
from helios.ignition.preparation import completion
from helios.ignition.preparation.geometry import BIAS_LIMIT, EOS_LIMIT, Geometry
from helios.ignition.preparation.graph import PENDING, Graph, GraphWriter
from helios.program import extents
from helios.program.ir import Buffer, DType, Shape
from helios.records import dataclass
from helios.schema import contract_pb2 as pb


@dataclass(frozen=True, slots=True)
class StateRow:
    """One device-owned value of every request, and the host value that admission writes to it.

    `tail` is what follows the slot dimension; `padding` fills entries a request does not use.
    """

    name: str
    dtype: DType
    source: pb.ValueSource
    tail: Shape = ()
    padding: int = 0

    def buffer(self, graph: GraphWriter) -> Buffer:
        """The persistent buffer, [R, …]."""
        return graph.builder.state(self.name, self.dtype, (extents.SLOTS, *self.tail))


SAMPLING_ROWS = (
    StateRow("seed", DType.U64, pb.VALUE_SOURCE_SEED),
    StateRow("temperature", DType.F32, pb.VALUE_SOURCE_TEMPERATURE),
    StateRow("top_k", DType.I32, pb.VALUE_SOURCE_TOP_K),
    StateRow("top_p", DType.F32, pb.VALUE_SOURCE_TOP_P),
    StateRow("min_p", DType.F32, pb.VALUE_SOURCE_MIN_P),
    StateRow("repetition", DType.F32, pb.VALUE_SOURCE_REPETITION_PENALTY),
    StateRow("presence", DType.F32, pb.VALUE_SOURCE_PRESENCE_PENALTY),
    StateRow("frequency", DType.F32, pb.VALUE_SOURCE_FREQUENCY_PENALTY),
    StateRow("min_output", DType.I32, pb.VALUE_SOURCE_MIN_OUTPUT),
    StateRow("eos", DType.I32, pb.VALUE_SOURCE_EOS_TOKENS, (EOS_LIMIT,), padding=-1),
    StateRow(
        "bias_tokens", DType.I32, pb.VALUE_SOURCE_LOGIT_BIAS_TOKENS, (BIAS_LIMIT,), padding=-1
    ),
    StateRow("bias_values", DType.F32, pb.VALUE_SOURCE_LOGIT_BIAS_VALUES, (BIAS_LIMIT,)),
    StateRow("top_logprobs", DType.I32, pb.VALUE_SOURCE_TOP_LOGPROBS),
)


def history_rows(geometry: Geometry) -> tuple[StateRow, ...]:
    """The rows that follow a request's progress."""
    counts = (geometry.vocabulary,)
    return (
        StateRow(PENDING, DType.I32, pb.VALUE_SOURCE_PENDING_TOKEN, padding=-1),
        StateRow("endpoint", DType.I32, pb.VALUE_SOURCE_CONSUMED_TOKENS),
        StateRow("output_count", DType.I32, pb.VALUE_SOURCE_OUTPUT_COUNT),
        StateRow("prompt_histogram", DType.I32, pb.VALUE_SOURCE_PROMPT_HISTOGRAM, counts),
        StateRow("output_histogram", DType.I32, pb.VALUE_SOURCE_OUTPUT_HISTOGRAM, counts),
    )


def admission_graph(name: str, operation: Operation, geometry: Geometry) -> Graph:
    """INITIALIZE writes every row of a new request; RESUME those of one that ran before.

    A new request has no pending token, no output and an empty output histogram, which cost no
    transfer: output rows are cleared, and the host sends a pending token of −1.
    """
    graph = GraphWriter(name, operation, geometry)
    lanes = completion.identify(graph)
    resumed = operation is Operation.RESUME
    rows = {row.name: row for row in (*SAMPLING_ROWS, *history_rows(geometry))}
    cleared = () if resumed else ("output_count", "output_histogram")
    for row in rows.values():
        if row.name in cleared:
            graph.builder.op("state_clear", row.buffer(graph), lanes.slots)
        else:
            value = graph.bind(
                row.name + ".new",
                row.source,
                pb.INDEX_KIND_ACTIVE_ROW,
                row.dtype,
                (extents.ROWS, *row.tail),
                padding=row.padding,
            )
            graph.builder.op("state_write", row.buffer(graph), lanes.slots, value)
            if row.name == "endpoint":
                endpoints = value
    completion.report(graph, lanes, endpoints)
    return graph.finish()
