"""Choosing a token from logits inside the program, and reporting how likely it was."""

from helios.ignition.preparation.admission import SAMPLING_ROWS, history_rows
from helios.ignition.preparation.geometry import TOP_LIMIT
from helios.ignition.preparation.graph import PENDING, GraphWriter
from helios.program import extents
from helios.program.ir import Buffer, DType, Role, Value
from helios.records import dataclass
from helios.schema import contract_pb2 as pb
from helios.schema import manifest_pb2


@dataclass(frozen=True, slots=True)
class SampledLanes:
    """The lanes whose last token is sampled from, [S] each."""

    rows: Buffer
    slots: Value
    positions: Value  # of the token to be drawn


def write_sampling(graph: GraphWriter, lanes: SampledLanes, logits: Value) -> None:
    """Sample each lane's next token from f32[S, V], make it pending, and complete with it.

    Order: bias, minimum output and penalties, then the grammar mask, then temperature, top-k,
    top-p and min-p. Log-probabilities are of the raw logits.
    """
    builder = graph.builder
    state = {row.name: row.buffer(graph) for row in (*SAMPLING_ROWS, *history_rows(graph.geometry))}

    def read(name: str) -> Value:
        return builder.value("state_read", state[name], lanes.slots)

    processed = builder.value(
        "process_logits",
        logits,
        lanes.slots,
        state["prompt_histogram"],
        state["output_histogram"],
        *(read(name) for name in ("repetition", "presence", "frequency")),
        *(read(name) for name in ("bias_tokens", "bias_values")),
        *(read(name) for name in ("min_output", "output_count", "eos")),
    )
    masked = _mask(graph, lanes, processed)
    token = builder.value(
        "sample",
        masked,
        *(read(name) for name in ("temperature", "top_k", "top_p", "min_p", "seed")),
        lanes.positions,
        name="token",
        role=Role.SAMPLED_TOKEN,
    )
    builder.op("state_write", state[PENDING], lanes.slots, token)
    builder.op("histogram_add", state["output_histogram"], lanes.slots, token)
    accepted = builder.value("ones", token)
    builder.op("state_add", state["output_count"], lanes.slots, accepted)
    _report(graph, logits, token, accepted, read("top_logprobs"))


def _mask(graph: GraphWriter, lanes: SampledLanes, logits: Value) -> Value:
    words = graph.geometry.mask_words
    mask = graph.bind(
        "grammar_mask",
        pb.VALUE_SOURCE_GRAMMAR_MASK,
        pb.INDEX_KIND_SUBMISSION_ROW,
        DType.U32,
        (extents.ROWS, words),
    )
    active = graph.bind(
        "grammar_active",
        pb.VALUE_SOURCE_GRAMMAR_ACTIVE,
        pb.INDEX_KIND_SUBMISSION_ROW,
        DType.I32,
        (extents.ROWS,),
    )
    return graph.builder.value("mask_logits", logits, lanes.rows, mask, active, words=words)


def _report(
    graph: GraphWriter, logits: Value, token: Value, accepted: Value, top_count: Value
) -> None:
    builder, sampled = graph.builder, (extents.SAMPLED,)
    graph.complete(manifest_pb2.COMPLETION_FIELD_ACCEPTED, "accepted", accepted, sampled)
    graph.complete(manifest_pb2.COMPLETION_FIELD_TOKENS, "tokens", token, sampled)
    logprob = builder.value("log_probability", logits, token)
    graph.complete(manifest_pb2.COMPLETION_FIELD_LOGPROB, "logprob", logprob, sampled)
    top_tokens, top_values = builder.op(
        "top_log_probabilities", logits, top_count, maximum=TOP_LIMIT
    )
    top = (extents.SAMPLED, TOP_LIMIT)
    graph.complete(manifest_pb2.COMPLETION_FIELD_TOP_TOKENS, "top_tokens", top_tokens, top)
    graph.complete(manifest_pb2.COMPLETION_FIELD_TOP_LOGPROBS, "top_logprobs", top_values, top)
