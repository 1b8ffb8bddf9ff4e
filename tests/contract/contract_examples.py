"""A valid contract that uses the whole schema, and the tools to break it in one place.

Four request slots, a vocabulary of 100 with 4 image sentinels above it, a context of 64 tokens in
pages of 16, every history kind, every operation, speculation of three sorts (width one, rectangular
with copied drafts, allocated on the device by confidence), tuning, vision, tools and reasoning.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from helios.schema import contract_pb2 as pb
from helios.schema import frontend_pb2, manifest_pb2, program_pb2

SLOTS, VOCABULARY, INPUTS, CONTEXT, PAGE = 4, 100, 104, 64, 16
PAGES = CONTEXT // PAGE
WORDS = 4
WIDTH, DRAFTS = 4, 5

F32, F16, I32, U32, U64 = (
    program_pb2.DTYPE_F32,
    program_pb2.DTYPE_F16,
    program_pb2.DTYPE_I32,
    program_pb2.DTYPE_U32,
    program_pb2.DTYPE_U64,
)
SCALAR, SUBMISSION, ACTIVE, PHYSICAL, PACKED = (
    pb.INDEX_KIND_SCALAR,
    pb.INDEX_KIND_SUBMISSION_ROW,
    pb.INDEX_KIND_ACTIVE_ROW,
    pb.INDEX_KIND_PHYSICAL_ROW,
    pb.INDEX_KIND_PACKED_TOKEN,
)


def tensor(dtype: int, *shape: int | str) -> program_pb2.TensorType:
    return program_pb2.TensorType(
        dtype=program_pb2.DType.Name(dtype),
        shape=[
            program_pb2.Dimension(constant=d)
            if isinstance(d, int)
            else program_pb2.Dimension(extent=d)
            for d in shape
        ],
    )


@dataclass(frozen=True)
class Input:
    """A transport destination named after its source."""

    index: int
    dtype: int
    shape: tuple[int | str, ...]
    padding: int = 0
    offset: int = 0
    constants: Sequence[int] = ()
    image_tensor: str = ""


LANE = Input(ACTIVE, I32, ("B",))
LANE_REAL = Input(ACTIVE, F32, ("B",))
TOKEN = Input(PACKED, I32, ("T",))

INPUTS_BY_SOURCE: dict[str, Input] = {
    "SLOT": LANE,
    "GENERATION": LANE,
    "LIVE_ROWS": Input(SCALAR, I32, (1,)),
    "QUERY_LENGTH": Input(SUBMISSION, I32, ("B",)),
    "SPECULATIVE_PREFIX_LIMIT": LANE,
    "SAMPLING_DECISION": LANE,
    "MIXED_PREFILL_ROW": Input(SCALAR, I32, (), padding=-1),
    "SAMPLED_ROW": Input(ACTIVE, I32, ("S",)),
    "PROMPT_TOKENS": TOKEN,
    "SCORED_TARGET_TOKENS": TOKEN,
    "PENDING_TOKEN": Input(ACTIVE, I32, ("B",), padding=-1),
    "PROMPT_POSITIONS": Input(PACKED, I32, ("T", 3), offset=1),
    "IMAGE_FEATURE_INDEX": TOKEN,
    "IMAGE_CONTEXT_INDEX": TOKEN,
    "IMAGE_FEATURE_SLOT": LANE,
    "PAGE_TABLE": Input(PHYSICAL, I32, ("R", PAGES), padding=-1),
    "STATE_ROW": LANE,
    "RESTORE_SOURCE": LANE,
    "SNAPSHOT_DESTINATION": Input(ACTIVE, I32, ("B",), padding=-1),
    "CONSUMED_TOKENS": LANE,
    "SEED": Input(ACTIVE, U64, ("B",)),
    "TEMPERATURE": LANE_REAL,
    "TOP_K": LANE,
    "TOP_P": LANE_REAL,
    "MIN_P": LANE_REAL,
    "REPETITION_PENALTY": LANE_REAL,
    "PRESENCE_PENALTY": LANE_REAL,
    "FREQUENCY_PENALTY": LANE_REAL,
    "OUTPUT_LIMIT": LANE,
    "EOS_TOKENS": Input(ACTIVE, I32, ("B", 4), padding=-1),
    "PROMPT_HISTOGRAM": Input(ACTIVE, I32, ("B", VOCABULARY)),
    "OUTPUT_HISTOGRAM": Input(ACTIVE, I32, ("B", VOCABULARY)),
    "LOGIT_BIAS_TOKENS": Input(ACTIVE, I32, ("B", 8), padding=-1),
    "LOGIT_BIAS_VALUES": Input(ACTIVE, F32, ("B", 8)),
    "TOP_LOGPROBS": LANE,
    "MIN_OUTPUT": LANE,
    "GRAMMAR_MASK": Input(SUBMISSION, U32, ("B", WORDS)),
    "GRAMMAR_ACTIVE": Input(SUBMISSION, I32, ("B",)),
    "OUTPUT_COUNT": LANE,
    "PROPOSAL_TOKENS": Input(ACTIVE, I32, ("B", DRAFTS), padding=-1),
    "PROPOSAL_COUNT": LANE,
    "PROPOSAL_GENERATION": LANE,
    "PROPOSAL_ENDPOINT": LANE,
    "PROPOSAL_GRAMMAR_MASK": Input(ACTIVE, U32, ("B", DRAFTS, WORDS)),
    "CONSTANT": Input(SCALAR, I32, (2,), constants=(7, 9)),
    "IMAGE_TENSOR": Input(SCALAR, F32, (16, 12), image_tensor="patches"),
}
"""Every source there is, each filling a destination of its own name in lower case."""

EVERY = ("SLOT", "GENERATION")
STEP = (*EVERY, "QUERY_LENGTH", "PAGE_TABLE", "SAMPLED_ROW", "SNAPSHOT_DESTINATION")
SAMPLING = (
    "SEED",
    "TEMPERATURE",
    "TOP_K",
    "TOP_P",
    "MIN_P",
    "REPETITION_PENALTY",
    "PRESENCE_PENALTY",
    "FREQUENCY_PENALTY",
    "OUTPUT_LIMIT",
    "EOS_TOKENS",
    "PROMPT_HISTOGRAM",
    "LOGIT_BIAS_TOKENS",
    "LOGIT_BIAS_VALUES",
    "TOP_LOGPROBS",
    "MIN_OUTPUT",
)
IMAGES = (
    "PROMPT_POSITIONS",
    "IMAGE_FEATURE_INDEX",
    "IMAGE_CONTEXT_INDEX",
    "IMAGE_FEATURE_SLOT",
    "IMAGE_TENSOR",
)
PROPOSALS = (
    "PROPOSAL_TOKENS",
    "PROPOSAL_COUNT",
    "PROPOSAL_GENERATION",
    "PROPOSAL_ENDPOINT",
    "PROPOSAL_GRAMMAR_MASK",
)

RECORDS: dict[str, program_pb2.TensorType] = {
    "SLOT": tensor(I32, "B"),
    "GENERATION": tensor(I32, "B"),
    "ENDPOINT": tensor(I32, "B"),
    "ACCEPTED": tensor(I32, "S"),
    "TOKENS": tensor(I32, "S"),
    "LOGPROB": tensor(F32, "S"),
    "TOP_TOKENS": tensor(I32, "S", 20),
    "TOP_LOGPROBS": tensor(F32, "S", 20),
    "SCORES": tensor(F32, "T"),
    "OFFERED": tensor(I32, "B"),
    "CURSOR": tensor(I32, "B"),
    "MODEL": tensor(I32, "B"),
    "CONFIDENCE": tensor(F32, 2, SLOTS, DRAFTS),
    "SCORE_TOP_TOKENS": tensor(I32, "T", 20),
    "SCORE_TOP_LOGPROBS": tensor(F32, "T", 20),
}
"""Every completion field, each in a buffer named `completion.` and its own name."""

DONE = ("SLOT", "GENERATION", "ENDPOINT")
SAMPLED = (*DONE, "ACCEPTED", "TOKENS", "LOGPROB", "TOP_TOKENS", "TOP_LOGPROBS", "MODEL")
SCORED = ("SCORES", "SCORE_TOP_TOKENS", "SCORE_TOP_LOGPROBS")
DRAFTED = (*SAMPLED, "OFFERED", "CURSOR")


@dataclass(frozen=True)
class Example:
    """One graph of the example; `reads` and `writes` name views."""

    name: str
    operation: str
    sources: Sequence[str]
    fields: Sequence[str]
    reads: Sequence[str]
    writes: Sequence[str]
    width: int = 0
    tokens: int = 0
    drafts: int = 0
    confidence: int = 0
    tuned: bool = False


CARRIED = ("pending", "endpoint", "draft", "recurrent")
GRAPHS = (
    Example(
        "initialize",
        "INITIALIZE",
        (*EVERY, *SAMPLING, "PENDING_TOKEN", "CONSUMED_TOKENS", "LIVE_ROWS", "CONSTANT"),
        DONE,
        (),
        CARRIED,
    ),
    Example(
        "resume",
        "RESUME",
        (*EVERY, *SAMPLING, "PENDING_TOKEN", "CONSUMED_TOKENS", "OUTPUT_HISTOGRAM", "OUTPUT_COUNT"),
        DONE,
        (),
        CARRIED,
    ),
    Example(
        "restore",
        "RESTORE",
        (*EVERY, "PAGE_TABLE", "RESTORE_SOURCE", "CONSUMED_TOKENS", "STATE_ROW"),
        DONE,
        ("saved",),
        ("endpoint", "recurrent"),
    ),
    Example(
        "prefill",
        "PREFILL",
        (*STEP, *IMAGES, "PROMPT_TOKENS", "GRAMMAR_MASK", "GRAMMAR_ACTIVE"),
        SAMPLED,
        ("endpoint", "recurrent"),
        (*CARRIED, "saved"),
        width=16,
        tokens=32,
        tuned=True,
    ),
    Example(
        "scored_prefill",
        "SCORED_PREFILL",
        (*STEP, "PROMPT_TOKENS", "SCORED_TARGET_TOKENS"),
        (*SAMPLED, *SCORED),
        ("endpoint",),
        (*CARRIED, "saved"),
        width=16,
        tokens=16,
    ),
    Example(
        "decode",
        "DECODE",
        (*STEP, "SAMPLING_DECISION"),
        SAMPLED,
        CARRIED,
        (*CARRIED, "saved"),
        width=1,
        tokens=4,
    ),
    Example(
        "mixed",
        "MIXED",
        (*STEP, "PROMPT_TOKENS", "MIXED_PREFILL_ROW"),
        SAMPLED,
        CARRIED,
        (*CARRIED, "saved"),
        width=16,
        tokens=19,
    ),
    Example(
        "speculative.1",
        "SPECULATIVE",
        STEP,
        DRAFTED,
        CARRIED,
        (*CARRIED, "saved"),
        width=1,
        tokens=4,
    ),
    Example(
        "speculative.3",
        "SPECULATIVE",
        (*STEP, *PROPOSALS),
        DRAFTED,
        CARRIED,
        (*CARRIED, "saved"),
        width=3,
        tokens=12,
        drafts=2,
    ),
    Example(
        "speculative.4",
        "SPECULATIVE",
        (*(s for s in STEP if s != "QUERY_LENGTH"), "SPECULATIVE_PREFIX_LIMIT", "DRAFT_TABLE"),
        (*DRAFTED, "CONFIDENCE"),
        CARRIED,
        (*CARRIED, "saved"),
        width=WIDTH,
        tokens=10,
        drafts=DRAFTS,
        confidence=DRAFTS,
    ),
)

VIEWS = {"pending": 4, "endpoint": 4, "draft": 32, "recurrent": 60, "saved": 1536}
"""Bytes of a row of each view."""


def full_contract() -> pb.ServingContract:
    """The contract, whole and valid."""
    return pb.ServingContract(
        served_id="example-1B",
        aliases=["example", "example:latest"],
        cache_identity="0f3a",
        context_tokens=CONTEXT,
        prefill_tokens=32,
        prepared_pages=PAGES * 2,
        prepared_snapshots=8,
        concurrency=SLOTS,
        speculative_widths=[1, 3, WIDTH],
        defaults=pb.ServingDefaults(
            temperature=0.7,
            top_k=20,
            top_p=0.8,
            min_p=0.05,
            repetition_penalty=1.05,
            presence_penalty=0.5,
            frequency_penalty=-0.5,
            max_output_tokens=32,
        ),
        model=pb.ModelContract(
            version=3,
            vocabulary=VOCABULARY,
            input_vocabulary=INPUTS,
            vision=pb.VisionContract(
                feature_slots=2,
                window_feature_capacity=16,
                patches_per_feature=4,
                patch_capacities=[16, 64],
            ),
            cache=_cache(),
            graphs=[_graph(g) for g in GRAPHS],
            frontend=_frontend(),
            state_views=[
                pb.StateView(
                    name=name,
                    buffer=f"state.{name}",
                    byte_offset=0,
                    row_stride=nbytes,
                    row_bytes=nbytes,
                )
                for name, nbytes in VIEWS.items()
                if name != "draft"
            ]
            + [
                # The second half of a buffer of constant size, one half per draft model.
                pb.StateView(
                    name="draft",
                    buffer="state.draft",
                    byte_offset=32 * SLOTS,
                    row_stride=32,
                    row_bytes=32,
                )
            ],
        ),
    )


def framed_contract() -> pb.ServingContract:
    """The alternatives that exclude parts of the other: frames, wire typing, a host-owned token."""
    contract = full_contract()
    frontend = contract.model.frontend
    frontend.tool_parser = frontend_pb2.TOOL_PARSER_ATEM
    frontend.reasoning_parser = frontend_pb2.REASONING_PARSER_RECIPIENT_HEADERS
    frontend.tool_syntax.typing = frontend_pb2.VALUE_TYPING_WIRE
    frontend.tool_syntax.type_attribute = "type"
    frontend.tool_syntax.ClearField("string_attribute")
    frontend.tool_syntax.frame.CopyFrom(_frame())
    for graph in contract.model.graphs:
        if graph.WhichOneof("pending_token"):
            graph.pending_destination = "pending_token"
            graph.bindings.append(_binding("PENDING_TOKEN"))
    return contract


def _frame() -> frontend_pb2.FrameSyntax:
    return frontend_pb2.FrameSyntax(
        start="<|start|>",
        role="assistant",
        channel="<|channel|>",
        recipient=" to=",
        constrain="<|constrain|>",
        message="<|message|>",
        ends=["<|eom|>"],
        reasoning=["self"],
        visible=["user", "commentary"],
        generic_tool="tool",
    )


def full_manifest() -> manifest_pb2.ExecutionManifest:
    """The manifest that goes with it."""
    return manifest_pb2.ExecutionManifest(
        abi=6,
        buffers=_buffers(),
        transport=[
            *(
                manifest_pb2.TransportDestination(
                    name=source.lower(),
                    type=tensor(i.dtype, *i.shape),
                    retained=i.index == PHYSICAL,
                )
                for source, i in INPUTS_BY_SOURCE.items()
            ),
            manifest_pb2.TransportDestination(
                name="draft_table", type=tensor(I32, "R", PAGES + 1), retained=True
            ),
        ],
        programs=[_program(g) for g in GRAPHS],
        tuning=[
            manifest_pb2.ProgramDescriptor(
                name="tune",
                operation=program_pb2.OPERATION_TUNING,
                resource="program/tune",
                tuned_outputs=["tuned.tiles", "tuned.splits"],
            )
        ],
        weights=[
            manifest_pb2.WeightDescriptor(
                name="embedding",
                storage=manifest_pb2.WEIGHT_STORAGE_Q4_1,
                shape=[INPUTS, 64],
                resource="weights",
                offset=4096,
                nbytes=INPUTS * 2 * 20,
            ),
            manifest_pb2.WeightDescriptor(
                name="norm",
                storage=manifest_pb2.WEIGHT_STORAGE_F32,
                shape=[64],
                resource="weights",
                nbytes=256,
            ),
        ],
        request_slots=SLOTS,
        draft_capacity=DRAFTS,
    )


def _cache() -> pb.CacheContract:
    return pb.CacheContract(
        page_tokens=PAGE,
        histories=[
            _history("full", pb.HISTORY_KIND_PAGED_KEY_VALUE, ("keys", "values"), 32, 1),
            _history("latent", pb.HISTORY_KIND_PAGED_LATENT, ("latent",), 48, 2),
            _history("window", pb.HISTORY_KIND_SLIDING_WINDOW, ("near",), 32, 1, window=24),
            _history("recurrent", pb.HISTORY_KIND_RECURRENT, ("state.recurrent",), 60, 0),
            _history("partial", pb.HISTORY_KIND_CONTINUATION, ("state.saved",), 96, 1),
        ],
        page_tables=[
            pb.PageTableView(destination="page_table"),
            pb.PageTableView(destination="draft_table", page_offset=1),
        ],
    )


def _history(
    name: str, kind: int, planes: Sequence[str], record: int, tokens: int, window: int = 0
) -> pb.HistoryRegion:
    return pb.HistoryRegion(
        name=name,
        kind=pb.HistoryKind.Name(kind),
        planes=[pb.CachePlane(buffer=p, record_bytes=record) for p in planes],
        tokens_per_record=tokens,
        window_tokens=window,
    )


def _buffers() -> list[manifest_pb2.BufferDescriptor]:
    shapes = {
        ("keys", "CACHE"): tensor(F16, "N", PAGE, 2, 8),
        ("values", "CACHE"): tensor(F16, "N", PAGE, 2, 8),
        ("latent", "CACHE"): tensor(F16, "N", PAGE // 2, 24),
        ("near", "CACHE"): tensor(F16, "N", PAGE, 2, 8),
        ("state.pending", "STATE"): tensor(I32, "R"),
        ("state.endpoint", "STATE"): tensor(I32, "R"),
        ("state.draft", "STATE"): tensor(F32, 2, SLOTS, 8),
        ("state.recurrent", "STATE"): tensor(F32, "R", 3, 5),
        ("state.saved", "STATE"): tensor(F16, "C", PAGE, 48),
        ("tuned.tiles", "TUNED"): tensor(I32, 4),
        ("tuned.splits", "TUNED"): tensor(I32, 2),
        ("slot", "TRANSPORT"): tensor(I32, "B"),  # may be listed here as well
    }
    records = {(f"completion.{f.lower()}", "COMPLETION"): t for f, t in RECORDS.items()}
    return [
        manifest_pb2.BufferDescriptor(name=name, kind=f"BUFFER_KIND_{kind}", type=type_)
        for (name, kind), type_ in {**shapes, **records}.items()
    ]


def _binding(source: str) -> pb.ValueBinding:
    if source == "DRAFT_TABLE":
        return pb.ValueBinding(
            destination="draft_table",
            source=pb.VALUE_SOURCE_PAGE_TABLE,
            index=PHYSICAL,
            padding=-1,
        )
    spec = INPUTS_BY_SOURCE[source]
    return pb.ValueBinding(
        destination=source.lower(),
        source=f"VALUE_SOURCE_{source}",
        index=pb.IndexKind.Name(spec.index),
        offset=spec.offset,
        padding=spec.padding,
        constants=spec.constants,
        image_tensor=spec.image_tensor,
    )


def _graph(example: Example) -> pb.GraphContract:
    views = [v for v in VIEWS if v in example.reads or v in example.writes]
    graph = pb.GraphContract(
        program=example.name,
        operation=f"OPERATION_{example.operation}",
        bindings=[_binding(s) for s in example.sources],
        state=[pb.StateAccess(view=v, access=_access(example, v)) for v in views],
        resources=[f"program/{example.name}", *(["program/tune"] if example.tuned else [])],
        batch_capacity=SLOTS,
        draft_tokens=example.drafts,
        token_capacity=example.width,
        packed_token_capacity=example.tokens,
        confidence_width=example.confidence,
        state_rows_per_request=2,
    )
    if "pending" in example.reads:
        graph.pending_view = "pending"
    if "CURSOR" in example.fields:
        graph.draft_cursor.view = "draft"
        graph.draft_cursor.lag_tokens = 1
    if example.tuned:
        graph.tuned_bindings.add(buffer="tuned.tiles", producer="tune")
    return graph


def _access(example: Example, view: str) -> str:
    read, write = view in example.reads, view in example.writes
    return "ACCESS_READ_WRITE" if read and write else "ACCESS_READ" if read else "ACCESS_WRITE"


def _program(example: Example) -> manifest_pb2.ProgramDescriptor:
    tuned = [manifest_pb2.TunedInput(buffer="tuned.tiles", producer="tune")]
    return manifest_pb2.ProgramDescriptor(
        name=example.name,
        operation=f"OPERATION_{example.operation}",
        resource=f"program/{example.name}",
        completion=[
            manifest_pb2.CompletionBinding(
                field=f"COMPLETION_FIELD_{f}", buffer=f"completion.{f.lower()}"
            )
            for f in example.fields
        ],
        tuned_inputs=tuned if example.tuned else [],
    )


def _frontend() -> frontend_pb2.FrontendContract:
    pair = frontend_pb2.DelimiterPair
    return frontend_pb2.FrontendContract(
        tool_parser=frontend_pb2.TOOL_PARSER_DSML,
        tool_syntax=frontend_pb2.ToolSyntax(
            block=pair(open="<calls>", close="</calls>"),
            call=pair(open='<invoke name="', close="</invoke>"),
            name_end='">',
            key=pair(open='<parameter name="', close='"'),
            value=pair(open=">", close="</parameter>"),
            wrapping_newlines=True,
            separator="\n",
            typing=frontend_pb2.VALUE_TYPING_ATTRIBUTE,
            parallel=frontend_pb2.PARALLEL_CALLS_ITEMS,
            string_attribute="string",
            name_fields=["name"],
            argument_fields=["arguments"],
            id_marker="id=",
            quote="<q>",
            implicit_ends=["<end>"],
            call_type="call",
            fence=pair(open="```json", close="```"),
            tag_end=">",
            tokens=["<calls>"],
            trims_content=True,
            lead="\n\n",
            bare_calls=True,
            id_fields=["id"],
            name_prefix="functions.",
            ordinal=":",
            id_length=9,
        ),
        reasoning_parser=frontend_pb2.REASONING_PARSER_THINK_TAGS,
        reasoning_syntax=frontend_pb2.ReasoningSyntax(
            delimiters=pair(open="<think>", close="</think>"),
            wrapping_newlines=True,
            terminal_markers=["<calls>"],
            tokens=["<think>"],
        ),
        assistant=frontend_pb2.AssistantEnvelope(
            open="<|assistant|>",
            close=["<|end|>"],
            tool_response=pair(open="<response>", close="</response>"),
        ),
        eos_tokens=[2, 99],
        template_tokens=[frontend_pb2.TemplateToken(name="bos_token", text="<s>")],
        add_bos=True,
        prefix_boundaries=[
            frontend_pb2.PrefixBoundaryRule(role="system"),
            frontend_pb2.PrefixBoundaryRule(role="user", generation_prompt=True, last_only=True),
        ],
        image_preparation=frontend_pb2.IMAGE_PREPARATION_SMART_RESIZE,
        image_layout=frontend_pb2.IMAGE_LAYOUT_SPATIAL_MERGE,
        image_tokens=frontend_pb2.ImageTokens(
            feature_ids=[100], begin_id=101, end_id=102, atomic_span=True
        ),
        image_settings=frontend_pb2.ImageSettings(
            patch_size=14,
            merge_size=2,
            minimum_pixels=3136,
            maximum_pixels=50176,
            mean=[0.5, 0.5, 0.5],
            deviation=[0.25, 0.25, 0.25],
            square_size=448,
            maximum_tiles=4,
        ),
        tokenizer_resource="tokenizer",
        template_resource="template",
        thinking_switches=["enable_thinking"],
    )
