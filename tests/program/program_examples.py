"""Random well-formed programs, written with the builder, and one that uses every operation."""

from collections.abc import Callable

from hypothesis import strategies as st

from helios.contract.operation import Operation
from helios.program.builder import ProgramBuilder
from helios.program.extents import CONTINUATIONS, PAGES, ROWS, SAMPLED, SLOTS, TOKENS
from helios.program.ir import Buffer, BufferKind, DType, ExtentKind, Program, Ref, Role, Value

VOCABULARY, WORDS, HIDDEN, HEADS, GROUPS, DIM, PAGE = 70, 3, 16, 4, 2, 4, 8


class Writer:
    """A program in progress over a fixed geometry; storage is declared when first asked for."""

    def __init__(self, name: str, operation: Operation, rows: int = 4, tokens: int = 8) -> None:
        self.builder = ProgramBuilder(name, operation)
        self.builder.extent(ROWS, ExtentKind.DYNAMIC, rows)
        if tokens:
            self.builder.extent(TOKENS, ExtentKind.DYNAMIC, tokens)
            self.builder.extent(SAMPLED, ExtentKind.DYNAMIC, rows)
        for extent in (SLOTS, PAGES, CONTINUATIONS):
            self.builder.extent(extent, ExtentKind.LOAD, rows if extent == SLOTS else 0)

    def lane(self, name: str, dtype: DType = DType.I32) -> Buffer:
        return self.builder.transport(name, dtype, (ROWS,))

    def state(self, name: str, dtype: DType = DType.I32, *tail: int) -> Buffer:
        return self.builder.state(name, dtype, (SLOTS, *tail))

    def plane(self, name: str) -> Buffer:
        shape = (PAGES, PAGE, GROUPS, DIM)
        return self.builder.buffer(name, BufferKind.CACHE, DType.F16, shape)

    def saved(self, name: str) -> Buffer:
        return self.builder.state(name, DType.F16, (CONTINUATIONS, PAGE, GROUPS, DIM))

    def sampled_rows(self) -> Buffer:
        return self.builder.transport("sampled_row", DType.I32, (SAMPLED,))

    def table(self) -> Buffer:
        return self.builder.transport("page_table", DType.I32, (SLOTS, 4))

    def record(self, value: Ref, name: str) -> None:
        shape = value.type.shape
        self.builder.op("store", value, self.builder.completion(name, value.type.dtype, shape))


def every_operation() -> Program:
    """A program that uses every row of the op table."""
    w = Writer("every-op", Operation.PREFILL)
    b = w.builder
    slots, lengths, sampled = w.lane("slot"), w.lane("query_length"), w.sampled_rows()
    before = b.value("state_read", w.state("endpoint"), slots, name="before")
    after = b.value("add_integers", before, lengths)
    rows, positions = b.op("token_rows", lengths, before, tokens=TOKENS)
    pending = b.value("state_read", w.state("pending"), slots)
    prompt = b.transport("prompt_tokens", DType.I32, (TOKENS,), Role.TOKENS)
    tokens = b.value("resolve_tokens", prompt, rows, pending)
    hidden = _network(w, tokens, rows, positions, slots)
    last = b.value("last_tokens", lengths, sampled)
    picked = b.value("gather", hidden, last)
    logits = b.value(
        "linear", picked, b.weight("head", (VOCABULARY, HIDDEN)), name="logits", role=Role.LOGITS
    )
    token = _sampling(w, logits, slots, sampled, after)
    b.op("state_add", w.state("endpoint"), slots, lengths)
    _snapshot(w, slots, after)
    w.record(token, "completion.tokens")
    return b.build()


def _network(w: Writer, tokens: Value, rows: Value, positions: Value, slots: Buffer) -> Value:
    b = w.builder
    hidden = b.value("embedding", tokens, b.weight("embedding", (VOCABULARY, HIDDEN)))
    normed = b.value("rms_norm", hidden, b.weight("norm", (HIDDEN,)), epsilon=1e-5)
    query = b.value("split_heads", normed, heads=HEADS, dim=DIM)
    key = b.value("split_heads", normed, heads=GROUPS, dim=DIM, offset=8)
    frequencies = b.weight("frequencies", (DIM // 2,))
    query = b.value("rope", query, positions, frequencies)
    key = b.value("rope", key, positions, frequencies, interleaved=True, magnitude=1.5)
    for plane in ("keys", "values"):
        b.op("cache_write", key, rows, positions, slots, w.table(), w.plane(plane))
    attended = b.value(
        "paged_attention",
        query,
        rows,
        positions,
        slots,
        w.table(),
        w.plane("keys"),
        w.plane("values"),
        b.weight("sinks", (HEADS,)),
        scale=0.5,
        window=5,
        softcap=30.0,
    )
    merged = b.value("merge_heads", attended, width=HEADS * DIM)
    gated = b.value("gated_activation", merged, hidden, function="gelu")
    scaled = b.value("scale", b.value("softcap", gated, cap=20.0), factor=0.1)
    return b.value("add", scaled, hidden)


def _sampling(w: Writer, logits: Value, slots: Buffer, sampled: Buffer, after: Value) -> Value:
    b = w.builder
    of = b.value("gather", slots, sampled)
    seen, made = (w.state(n, DType.I32, VOCABULARY) for n in ("prompt_counts", "output_counts"))

    def read(name: str, dtype: DType = DType.F32, *tail: int) -> Value:
        return b.value("state_read", w.state(name, dtype, *tail), of)

    processed = b.value(
        "process_logits",
        logits,
        of,
        seen,
        made,
        *(read(n) for n in ("repetition", "presence", "frequency")),
        read("bias_tokens", DType.I32, 3),
        read("bias_values", DType.F32, 3),
        read("minimum_output", DType.I32),
        read("output_count", DType.I32),
        read("eos", DType.I32, 2),
    )
    mask = b.transport("mask", DType.U32, (ROWS, WORDS))
    masked = b.value("mask_logits", processed, sampled, mask, w.lane("active"), words=WORDS)
    token = b.value(
        "sample",
        masked,
        read("temperature"),
        read("top_k", DType.I32),
        read("top_p"),
        read("min_p"),
        read("seed", DType.U64),
        b.value("gather", after, sampled),
        name="token",
        role=Role.SAMPLED_TOKEN,
    )
    w.record(b.value("log_probability", logits, token), "completion.logprob")
    wanted = read("alternatives", DType.I32)
    for index, top in enumerate(b.op("top_log_probabilities", logits, wanted, maximum=5)):
        w.record(top, f"completion.top.{index}")
    b.op("state_write", w.state("pending"), of, token)
    b.op("histogram_add", made, of, token)
    b.op("state_add", w.state("output_count"), of, b.value("ones", token))
    b.op("state_clear", w.state("minimum_output"), of)
    return token


def _snapshot(w: Writer, slots: Buffer, after: Value) -> None:
    b, chosen = w.builder, w.lane("snapshot_destination")
    page = b.value("current_page", slots, after, chosen, w.table(), page_tokens=PAGE)
    b.op("page_save", w.plane("keys"), page, w.saved("saved.keys"), chosen)
    b.op("page_load", w.saved("saved.values"), chosen, w.plane("values"), page)


# ---- random programs -----------------------------------------------------------------------

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.:/+-]{0,12}", fullmatch=True)
REALS = st.floats(allow_nan=False, allow_infinity=False)
POSITIVE = st.floats(min_value=5e-324, allow_infinity=False)
Step = Callable[[Writer, st.DrawFn, list[Value], str], None]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Straight lines of random network and state operations over f32[T, HIDDEN] values."""
    operation = draw(st.sampled_from(Operation))
    w = Writer(draw(NAMES), operation, draw(st.integers(1, 1 << 20)), draw(st.integers(1, 64)))
    hidden = [_begin(w, draw)]
    for index in range(draw(st.integers(0, 12))):
        draw(st.sampled_from(STEPS))(w, draw, hidden, f"n{index}.{draw(NAMES)}")
    w.record(draw(st.sampled_from(hidden)), "completion.hidden")
    return w.builder.build()


def _begin(w: Writer, draw: st.DrawFn) -> Value:
    tokens = w.builder.transport("tokens", DType.I32, (TOKENS,), draw(st.sampled_from(Role)))
    table = w.builder.weight("table", (VOCABULARY, HIDDEN))
    return w.builder.value("embedding", tokens, table, scale=draw(REALS))


def _unary(w: Writer, draw: st.DrawFn, hidden: list[Value], name: str) -> None:
    kind, attribute, numbers = draw(
        st.sampled_from([("scale", "factor", REALS), ("softcap", "cap", POSITIVE)])
    )
    x = draw(st.sampled_from(hidden))
    role = draw(st.sampled_from(Role))
    hidden.append(w.builder.value(kind, x, name=name, role=role, **{attribute: draw(numbers)}))


def _binary(w: Writer, draw: st.DrawFn, hidden: list[Value], name: str) -> None:
    pair = (draw(st.sampled_from(hidden)), draw(st.sampled_from(hidden)))
    if draw(st.booleans()):
        hidden.append(w.builder.value("add", *pair, name=name))
    else:
        function = draw(st.sampled_from(["silu", "gelu", "gelu_tanh"]))
        hidden.append(w.builder.value("gated_activation", *pair, name=name, function=function))


def _linear(w: Writer, draw: st.DrawFn, hidden: list[Value], name: str) -> None:
    weight = w.builder.weight(f"w.{name}", (HIDDEN, HIDDEN))
    bias = w.builder.weight(f"b.{name}", (HIDDEN,)) if draw(st.booleans()) else None
    operands = [draw(st.sampled_from(hidden)), weight, bias]
    if bias is None and draw(st.booleans()):
        operands.pop()  # an optional operand may also be left off
    hidden.append(w.builder.value("linear", *operands, name=name))


def _heads(w: Writer, draw: st.DrawFn, hidden: list[Value], name: str) -> None:
    positions = w.builder.transport("positions", DType.I32, (TOKENS,), Role.POSITIONS)
    heads = draw(st.sampled_from([1, 2, 4, 8]))
    dim = HIDDEN // heads
    split = w.builder.value(
        "split_heads", draw(st.sampled_from(hidden)), name=f"{name}.split", heads=heads, dim=dim
    )
    frequencies = w.builder.weight(f"f.{name}", (draw(st.integers(1, dim // 2)),))
    turned = w.builder.value(
        "rope",
        split,
        positions,
        frequencies,
        name=f"{name}.rope",
        interleaved=draw(st.booleans()),
        magnitude=draw(POSITIVE),
    )
    hidden.append(w.builder.value("merge_heads", turned, name=name, width=HIDDEN))


def _state(w: Writer, draw: st.DrawFn, hidden: list[Value], name: str) -> None:
    dtype = draw(st.sampled_from(DType))
    tail = draw(st.lists(st.integers(1, 9), max_size=3))
    state = w.state(f"s.{name}", dtype, *tail)
    read = w.builder.value("state_read", state, w.lane("slot"), name=name)
    w.builder.op("state_write", state, w.lane("slot"), read)
    if draw(st.booleans()):
        w.record(read, f"r.{name}")


STEPS: list[Step] = [_unary, _binary, _linear, _heads, _state]
