"""Consuming tokens: PREFILL, SCORED_PREFILL, DECODE and MIXED, from one forward pass."""

from helios.contract.operation import Operation
from helios.ignition.preparation import completion
from helios.ignition.preparation.completion import Lanes
from helios.ignition.preparation.geometry import TOP_LIMIT, Geometry
from helios.ignition.preparation.graph import PENDING, Graph, GraphWriter
from helios.ignition.preparation.sampling import SampledLanes, write_sampling
from helios.ignition.preparation.transfer import write_snapshot
from helios.ignition.recipes.recipe import Batch, Recipe
from helios.program import extents
from helios.program.ir import Buffer, DType, Ref, Role, Value
from helios.records import dataclass
from helios.schema import contract_pb2 as pb
from helios.schema import manifest_pb2


@dataclass(frozen=True, slots=True)
class _Progress:
    """How far each lane has come, [B] each: tokens before, in, and after the step."""

    lengths: Buffer
    before: Value
    after: Value


def text_graph(
    name: str,
    operation: Operation,
    recipe: Recipe,
    geometry: Geometry,
    tokens: int,
    lane_tokens: int,
) -> Graph:
    """A step that consumes tokens and samples where the host asks for it.

    It takes up to `tokens` packed tokens, of which one lane may have `lane_tokens`. DECODE
    consumes each lane's pending token and needs none from the host. The others take the host's
    tokens, among which a hole stands for a pending token. SCORED_PREFILL also reports how likely
    the host's target of every token was.
    """
    graph = GraphWriter(name, operation, geometry, tokens, lane_tokens)
    builder = graph.builder
    lanes = completion.identify(graph)
    progress = _progress(graph, lanes)
    rows, positions = builder.op(
        "token_rows", progress.lengths, progress.before, tokens=extents.TOKENS, name="packed"
    )
    table = graph.page_table()
    batch = Batch(
        _consumed_tokens(graph, operation, lanes, rows), rows, positions, lanes.slots, table
    )
    hidden = recipe.forward(builder, batch, graph.planes())
    sampled_rows = graph.bind(
        "sampled_row",
        pb.VALUE_SOURCE_SAMPLED_ROW,
        pb.INDEX_KIND_ACTIVE_ROW,
        DType.I32,
        (extents.SAMPLED,),
    )
    last = builder.value("last_tokens", progress.lengths, sampled_rows)
    logits = _logits(graph, recipe, operation, lanes, hidden, last, rows)
    sampled = SampledLanes(
        sampled_rows,
        builder.value("gather", lanes.slots, sampled_rows),
        builder.value("gather", progress.after, sampled_rows),
    )
    write_sampling(graph, sampled, logits)
    endpoint = _endpoint_state(graph)
    builder.op("state_add", endpoint, lanes.slots, progress.lengths)
    write_snapshot(graph, lanes.slots, progress.after, table)
    completion.report(graph, lanes, progress.after)
    return graph.finish()


def _progress(graph: GraphWriter, lanes: Lanes) -> _Progress:
    lengths = graph.lane("query_length", pb.VALUE_SOURCE_QUERY_LENGTH)
    before = graph.builder.value(
        "state_read", _endpoint_state(graph), lanes.slots, name="endpoint.before"
    )
    after = graph.builder.value("add_integers", before, lengths, name="endpoint.after")
    return _Progress(lengths, before, after)


def _endpoint_state(graph: GraphWriter) -> Buffer:
    return graph.builder.state("endpoint", DType.I32, (extents.SLOTS,))


def _consumed_tokens(graph: GraphWriter, operation: Operation, lanes: Lanes, rows: Value) -> Ref:
    """The token at every packed position, from the host or pending on the device."""
    builder = graph.builder
    state = builder.state(PENDING, DType.I32, (extents.SLOTS,))
    pending = builder.value("state_read", state, lanes.slots)
    if operation is Operation.DECODE:
        return builder.value("gather", pending, rows, name="tokens", role=Role.TOKENS)
    prompt = graph.bind(
        "prompt_tokens",
        pb.VALUE_SOURCE_PROMPT_TOKENS,
        pb.INDEX_KIND_PACKED_TOKEN,
        DType.I32,
        (extents.TOKENS,),
    )
    return builder.value("resolve_tokens", prompt, rows, pending, name="tokens", role=Role.TOKENS)


def _logits(
    graph: GraphWriter,
    recipe: Recipe,
    operation: Operation,
    lanes: Lanes,
    hidden: Value,
    last: Value,
    rows: Value,
) -> Value:
    """Raw logits of the sampled lanes. The head sees only them, unless every token is scored."""
    builder = graph.builder
    if operation is not Operation.SCORED_PREFILL:
        return recipe.head(builder, builder.value("gather", hidden, last))
    logits = recipe.head(builder, hidden)
    _score(graph, lanes, rows, logits)
    return builder.value("gather", logits, last)


def _score(graph: GraphWriter, lanes: Lanes, rows: Value, logits: Value) -> None:
    """Report the log-probability of each token's target, and the alternatives asked for."""
    builder, packed = graph.builder, (extents.TOKENS,)
    targets = graph.bind(
        "scored_target_tokens",
        pb.VALUE_SOURCE_SCORED_TARGET_TOKENS,
        pb.INDEX_KIND_PACKED_TOKEN,
        DType.I32,
        packed,
        padding=-1,
    )
    scores = builder.value("log_probability", logits, targets)
    graph.complete(manifest_pb2.COMPLETION_FIELD_SCORES, "scores", scores, packed)
    state = builder.state("top_logprobs", DType.I32, (extents.SLOTS,))
    wanted = builder.value("gather", builder.value("state_read", state, lanes.slots), rows)
    top_tokens, top_values = builder.op("top_log_probabilities", logits, wanted, maximum=TOP_LIMIT)
    top = (extents.TOKENS, TOP_LIMIT)
    graph.complete(
        manifest_pb2.COMPLETION_FIELD_SCORE_TOP_TOKENS, "score_top_tokens", top_tokens, top
    )
    graph.complete(
        manifest_pb2.COMPLETION_FIELD_SCORE_TOP_LOGPROBS, "score_top_logprobs", top_values, top
    )
