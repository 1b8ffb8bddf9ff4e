"""Three toy programs and the contract that describes them exactly."""

from collections.abc import Mapping, Sequence

from program_examples import (
    DIM,
    GROUPS,
    HEADS,
    HIDDEN,
    PAGE,
    VOCABULARY,
    WORDS,
    Writer,
)

from helios.contract.operation import Operation
from helios.program.extents import ROWS, TOKENS
from helios.program.ir import Buffer, BufferKind, DType, Program, TensorType, Value
from helios.program.wire import to_wire
from helios.schema import contract_pb2 as pb
from helios.schema import frontend_pb2, manifest_pb2, program_pb2

SLOTS, CONTEXT, CHUNK = 4, 32, 8

SOURCES = {
    "slot": ("SLOT", "ACTIVE_ROW"),
    "generation": ("GENERATION", "ACTIVE_ROW"),
    "query_length": ("QUERY_LENGTH", "ACTIVE_ROW"),
    "sampled_row": ("SAMPLED_ROW", "ACTIVE_ROW"),
    "prompt_tokens": ("PROMPT_TOKENS", "PACKED_TOKEN"),
    "page_table": ("PAGE_TABLE", "PHYSICAL_ROW"),
    "grammar_mask": ("GRAMMAR_MASK", "SUBMISSION_ROW"),
    "grammar_active": ("GRAMMAR_ACTIVE", "SUBMISSION_ROW"),
    "snapshot_destination": ("SNAPSHOT_DESTINATION", "ACTIVE_ROW"),
    "pending.new": ("PENDING_TOKEN", "ACTIVE_ROW"),
    "endpoint.new": ("CONSUMED_TOKENS", "ACTIVE_ROW"),
}


def toy_programs() -> dict[str, Program]:
    programs = (
        _initialize(),
        _step("prefill", Operation.PREFILL),
        _step("decode", Operation.DECODE),
    )
    return {p.name: p for p in programs}


def _initialize() -> Program:
    w = Writer("initialize", Operation.INITIALIZE, rows=SLOTS, tokens=0)
    slots = _identify(w)
    for name in ("pending", "endpoint"):
        w.builder.op("state_write", w.state(name), slots, w.lane(f"{name}.new"))
    w.builder.op("state_clear", w.state("counts", DType.I32, VOCABULARY), slots)
    w.record(w.lane("endpoint.new"), "completion.endpoint")
    return w.builder.build()


def _identify(w: Writer) -> Buffer:
    for name in ("slot", "generation"):
        w.record(w.lane(name), f"completion.{name}")
    return w.lane("slot")


def _step(name: str, operation: Operation) -> Program:
    decodes = operation is Operation.DECODE
    w = Writer(name, operation, rows=SLOTS, tokens=SLOTS if decodes else CHUNK)
    b = w.builder
    slots, lengths, sampled = _identify(w), w.lane("query_length"), w.sampled_rows()
    before = b.value("state_read", w.state("endpoint"), slots)
    after = b.value("add_integers", before, lengths)
    rows, positions = b.op("token_rows", lengths, before, tokens=TOKENS)
    pending = b.value("state_read", w.state("pending"), slots)
    if decodes:
        tokens = b.value("gather", pending, rows)
    else:
        prompt = b.transport("prompt_tokens", DType.I32, (TOKENS,))
        tokens = b.value("resolve_tokens", prompt, rows, pending)
    hidden = _attention(w, tokens, rows, positions, slots)
    last = b.value("last_tokens", lengths, sampled)
    head = b.weight("head", (VOCABULARY, HIDDEN))
    logits = b.value("linear", b.value("gather", hidden, last), head)
    mask = b.transport("grammar_mask", DType.U32, (ROWS, WORDS))
    masked = b.value("mask_logits", logits, sampled, mask, w.lane("grammar_active"), words=WORDS)
    of = b.value("gather", slots, sampled)
    token, _ = b.op("top_log_probabilities", masked, b.value("ones", of), maximum=1)
    w.record(token, "completion.tokens")
    w.record(b.value("ones", of), "completion.accepted")
    b.op("state_write", w.state("pending"), slots, pending)
    b.op("histogram_add", w.state("counts", DType.I32, VOCABULARY), of, b.value("ones", of))
    b.op("state_add", w.state("endpoint"), slots, lengths)
    chosen = w.lane("snapshot_destination")
    page = b.value("current_page", slots, after, chosen, w.table(), page_tokens=PAGE)
    b.op("page_save", w.plane("keys"), page, w.saved("saved"), chosen)
    w.record(after, "completion.endpoint")
    return b.build()


def _attention(w: Writer, tokens: Value, rows: Value, positions: Value, slots: Buffer) -> Value:
    b = w.builder
    hidden = b.value("embedding", tokens, b.weight("embedding", (VOCABULARY, HIDDEN)))
    key = b.value("split_heads", hidden, heads=GROUPS, dim=DIM)
    for plane in ("keys", "values"):
        b.op("cache_write", key, rows, positions, slots, w.table(), w.plane(plane))
    attended = b.value(
        "paged_attention",
        b.value("split_heads", hidden, heads=HEADS, dim=DIM),
        rows,
        positions,
        slots,
        w.table(),
        w.plane("keys"),
        w.plane("values"),
        scale=0.5,
    )
    return b.value("merge_heads", attended, width=HEADS * DIM)


# ---- the contract --------------------------------------------------------------------------

ACCESS: Mapping[str, Mapping[str, str]] = {
    "initialize": {"pending": "WRITE", "endpoint": "WRITE", "counts": "WRITE"},
    "prefill": {
        "pending": "READ_WRITE",
        "endpoint": "READ_WRITE",
        "counts": "READ_WRITE",
        "saved": "WRITE",
    },
}


def toy_contract(programs: Mapping[str, Program]) -> pb.ServingContract:
    return pb.ServingContract(
        served_id="toy",
        cache_identity="toy",
        context_tokens=CONTEXT,
        prefill_tokens=CHUNK,
        prepared_pages=8,
        concurrency=SLOTS,
        model=pb.ModelContract(
            version=3,
            vocabulary=VOCABULARY,
            input_vocabulary=VOCABULARY,
            cache=pb.CacheContract(
                page_tokens=PAGE,
                histories=[
                    pb.HistoryRegion(
                        name="layer.0",
                        kind=pb.HISTORY_KIND_PAGED_KEY_VALUE,
                        planes=[
                            pb.CachePlane(buffer=n, record_bytes=GROUPS * DIM * 2)
                            for n in ("keys", "values")
                        ],
                        tokens_per_record=1,
                    )
                ],
                page_tables=[pb.PageTableView(destination="page_table")],
            ),
            graphs=[_graph(p) for p in programs.values()],
            frontend=frontend_pb2.FrontendContract(
                tool_parser=frontend_pb2.TOOL_PARSER_NONE,
                reasoning_parser=frontend_pb2.REASONING_PARSER_NONE,
                image_preparation=frontend_pb2.IMAGE_PREPARATION_NONE,
                image_layout=frontend_pb2.IMAGE_LAYOUT_NONE,
                eos_tokens=[2],
                tokenizer_resource="tokenizer",
            ),
            state_views=[
                pb.StateView(name=n, buffer=n, row_stride=size, row_bytes=size)
                for n, size in (
                    ("pending", 4),
                    ("endpoint", 4),
                    ("counts", 4 * VOCABULARY),
                    ("saved", PAGE * GROUPS * DIM * 2),
                )
            ],
        ),
    )


def _graph(program: Program) -> pb.GraphContract:
    inputs = [b.name for b in program.buffers() if b.kind is BufferKind.TRANSPORT]
    access = ACCESS["initialize" if program.name == "initialize" else "prefill"]
    graph = pb.GraphContract(
        program=program.name,
        operation=f"OPERATION_{program.operation.name}",
        bindings=[
            pb.ValueBinding(
                destination=name,
                source=f"VALUE_SOURCE_{SOURCES[name][0]}",
                index=f"INDEX_KIND_{SOURCES[name][1]}",
            )
            for name in inputs
        ],
        state=[pb.StateAccess(view=v, access=f"ACCESS_{a}") for v, a in access.items()],
        resources=[f"program/{program.name}"],
        batch_capacity=SLOTS,
        state_rows_per_request=1,
    )
    if program.name != "initialize":
        graph.pending_view = "pending"
        graph.packed_token_capacity = program.extent(TOKENS).capacity
        graph.token_capacity = 1 if program.name == "decode" else CHUNK
    return graph


def toy_manifest(programs: Mapping[str, Program]) -> manifest_pb2.ExecutionManifest:
    buffers = {b.name: b for p in programs.values() for b in to_wire(p).buffers}
    transport = program_pb2.BUFFER_KIND_TRANSPORT
    weights = {w.name: w for p in programs.values() for w in p.weights()}
    return manifest_pb2.ExecutionManifest(
        abi=1,
        buffers=[
            manifest_pb2.BufferDescriptor(name=b.name, kind=b.kind, type=b.type)
            for b in buffers.values()
        ],
        transport=[
            manifest_pb2.TransportDestination(
                name=b.name, type=b.type, retained=b.name == "page_table"
            )
            for b in buffers.values()
            if b.kind == transport
        ],
        programs=[
            manifest_pb2.ProgramDescriptor(
                name=p.name,
                operation=f"OPERATION_{p.operation.name}",
                resource=f"program/{p.name}",
                completion=[
                    manifest_pb2.CompletionBinding(
                        field=f"COMPLETION_FIELD_{b.name.rpartition('.')[2].upper()}",
                        buffer=b.name,
                    )
                    for b in p.buffers()
                    if b.kind is BufferKind.COMPLETION
                ],
            )
            for p in programs.values()
        ],
        weights=[
            manifest_pb2.WeightDescriptor(
                name=w.name,
                storage=manifest_pb2.WEIGHT_STORAGE_F32,
                shape=constant(w.type),
                resource="weights",
                nbytes=w.type.nbytes({}),
            )
            for w in weights.values()
        ],
        request_slots=SLOTS,
    )


def constant(type_: TensorType) -> Sequence[int]:
    return type_.resolve({})
