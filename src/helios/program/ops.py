"""The op set: one row each, with operands, attributes, shape rule and meaning.

Shape patterns unify: a lower- or upper-case word stands for one dimension and must stand for the
same one everywhere in the row, `...` for any run of leading dimensions, a number for itself.
A word that no operand binds is looked up among the attributes (an integer, or the name of an
extent). The meaning is stated for one row or token at a time: no operation lets a row's numbers
depend on another row (batch invariance).
"""

from collections.abc import Mapping

from helios.program.ir import BufferKind, DType
from helios.records import dataclass

FLOAT = frozenset({DType.F32})
INT = frozenset({DType.I32})
ANY = frozenset(DType)
KV = frozenset({DType.F16, DType.BF16, DType.F32})

# Where an operand may live. Transport buffers are inputs, so they stand wherever a value may.
VALUE = "value"
WEIGHT = "weight"
STATE = BufferKind.STATE
CACHE = BufferKind.CACHE
TRANSPORT = BufferKind.TRANSPORT
COMPLETION = BufferKind.COMPLETION
TUNED = BufferKind.TUNED

READ = "read"
WRITE = "write"
READ_WRITE = "read-write"


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """One operand: where it may live, its element types, shape pattern and access."""

    name: str
    dtypes: frozenset[DType]
    shape: tuple[str | int, ...]
    places: frozenset[object] = frozenset({VALUE, TRANSPORT})
    access: str = READ
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ResultSpec:
    """One result. `dtype` is a type, or the name of the operand whose type it repeats."""

    name: str
    dtype: DType | str
    shape: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class AttributeSpec:
    """One attribute: its Python type, and its default unless it is required."""

    name: str
    type: type
    default: object = None
    choices: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class OpSpec:
    """A row of the op table. `meaning` is the reference semantics in words."""

    kind: str
    version: int
    operands: tuple[OperandSpec, ...]
    results: tuple[ResultSpec, ...]
    attributes: tuple[AttributeSpec, ...]
    meaning: str
    # Relative tolerance of a provider's results against the reference, per unit of the
    # largest absolute result; zero asks for equality.
    tolerance: float = 0.0


def _in(
    name: str, dtypes: frozenset[DType], *shape: str | int, optional: bool = False
) -> OperandSpec:
    return OperandSpec(name, dtypes, shape, optional=optional)


def _weight(name: str, *shape: str | int, optional: bool = False) -> OperandSpec:
    return OperandSpec(name, FLOAT, shape, frozenset({WEIGHT}), optional=optional)


def _buffer(
    name: str, dtypes: frozenset[DType], place: BufferKind, access: str, *shape: str | int
) -> OperandSpec:
    return OperandSpec(name, dtypes, shape, frozenset({place}), access)


def _table(*rows: OpSpec) -> Mapping[str, OpSpec]:
    return {row.kind: row for row in rows}


_EPSILON = AttributeSpec("epsilon", float)
_COARSE = AttributeSpec("coarse", bool, False)

OPS: Mapping[str, OpSpec] = _table(
    # ---- packed layout ------------------------------------------------------------------
    OpSpec(
        "token_rows",
        1,
        (_in("query_length", INT, "B"), _in("endpoints", INT, "B")),
        (
            ResultSpec("rows", DType.I32, ("tokens",)),
            ResultSpec("positions", DType.I32, ("tokens",)),
        ),
        (AttributeSpec("tokens", str),),
        "Row b owns the next query_length[b] packed tokens, at positions endpoints[b], "
        "endpoints[b] + 1, …",
    ),
    OpSpec(
        "resolve_tokens",
        1,
        (_in("tokens", INT, "T"), _in("rows", INT, "T"), _in("pending", INT, "B")),
        (ResultSpec("resolved", DType.I32, ("T",)),),
        (),
        "tokens[t], or pending[rows[t]] where tokens[t] is negative: the host leaves a hole for "
        "the token that only the device knows.",
    ),
    OpSpec(
        "last_tokens",
        1,
        (_in("query_length", INT, "B"), _in("sampled_rows", INT, "S")),
        (ResultSpec("index", DType.I32, ("S",)),),
        (),
        "The packed index of the last token of each sampled row.",
    ),
    OpSpec(
        "gather",
        1,
        (_in("source", ANY, "A", "..."), _in("index", INT, "S")),
        (ResultSpec("rows", "source", ("S", "...")),),
        (),
        "source[index[s]] for each s.",
    ),
    OpSpec(
        "add_integers",
        1,
        (_in("left", INT, "A"), _in("right", INT, "A")),
        (ResultSpec("sum", DType.I32, ("A",)),),
        (),
        "left + right.",
    ),
    # ---- network ------------------------------------------------------------------------
    OpSpec(
        "embedding",
        1,
        (_in("tokens", INT, "T"), _weight("table", "V", "E")),
        (ResultSpec("hidden", DType.F32, ("T", "E")),),
        (AttributeSpec("scale", float, 1.0),),
        "scale · table[tokens[t]].",
        tolerance=1e-6,
    ),
    OpSpec(
        "linear",
        2,
        (
            _in("x", FLOAT, "A", "K"),
            _weight("weight", "N", "K"),
            _weight("bias", "N", optional=True),
            OperandSpec("choices", INT, ("C",), frozenset({TUNED}), optional=True),
        ),
        (ResultSpec("y", DType.F32, ("A", "N")),),
        (_COARSE,),
        "y = x · weightᵀ + bias, accumulated along K in an order that no other extent changes. "
        "The model bears x in 8 bits where it is coarse; whether a device makes use of that is up "
        "to its numerical profile. "
        "choices[c] says how a device may cut the work of up to 4ᶜ rows that no smaller c covers, "
        "the last one of any number above; 0 is neutral, and no choice changes a number.",
        tolerance=2e-5,
    ),
    OpSpec(
        "rms_norm",
        1,
        (_in("x", FLOAT, "...", "E"), _weight("weight", "E")),
        (ResultSpec("y", DType.F32, ("...", "E")),),
        (_EPSILON,),
        "x / sqrt(mean(x²) + epsilon) · weight, over the last dimension (arXiv:1910.07467).",
        tolerance=1e-5,
    ),
    OpSpec(
        "rope",
        1,
        (
            _in("x", FLOAT, "T", "H", "D"),
            _in("positions", INT, "T"),
            _weight("frequencies", "F"),
        ),
        (ResultSpec("y", DType.F32, ("T", "H", "D")),),
        (AttributeSpec("interleaved", bool, False), AttributeSpec("magnitude", float, 1.0)),
        "Rotates the first 2F elements of every head by positions[t] · frequencies[f], pairing "
        "(f, f + F), or (2f, 2f + 1) if interleaved; cosine and sine are scaled by magnitude "
        "(arXiv:2104.09864). Every published scaling is a choice of frequencies and magnitude.",
        tolerance=1e-5,
    ),
    OpSpec(
        "split_heads",
        1,
        (_in("x", FLOAT, "T", "W"),),
        (ResultSpec("y", DType.F32, ("T", "heads", "dim")),),
        (AttributeSpec("heads", int), AttributeSpec("dim", int), AttributeSpec("offset", int, 0)),
        "Columns offset … offset + heads · dim of x, seen as heads.",
    ),
    OpSpec(
        "cache_write",
        1,
        (
            _in("x", FLOAT, "T", "G", "D"),
            _in("rows", INT, "T"),
            _in("positions", INT, "T"),
            _in("slots", INT, "B"),
            OperandSpec("page_table", INT, ("R", "M"), frozenset({TRANSPORT})),
            _buffer("plane", KV, CACHE, WRITE, "N", "L", "G", "D"),
        ),
        (),
        (),
        "Stores x[t] in plane[page_table[slots[rows[t]], positions[t] // L], positions[t] % L], "
        "rounded to the plane's type.",
        tolerance=0.0,
    ),
    OpSpec(
        "paged_attention",
        1,
        (
            _in("q", FLOAT, "T", "H", "D"),
            _in("rows", INT, "T"),
            _in("positions", INT, "T"),
            _in("slots", INT, "B"),
            OperandSpec("page_table", INT, ("R", "M"), frozenset({TRANSPORT})),
            _buffer("keys", KV, CACHE, READ, "N", "L", "G", "D"),
            _buffer("values", KV, CACHE, READ, "N", "L", "G", "D"),
            _weight("sinks", "H", optional=True),
        ),
        (ResultSpec("y", DType.F32, ("T", "H", "D")),),
        (
            AttributeSpec("scale", float),
            AttributeSpec("window", int, 0),
            AttributeSpec("softcap", float, 0.0),
        ),
        "Causal attention of each token over its own row's history, itself included; H query heads "
        "share G key heads in groups of H / G. window w > 0 keeps the last w positions, softcap "
        "c > 0 maps scores s to c · tanh(s / c), a sink adds exp(sink) to the denominator.",
        tolerance=2e-5,
    ),
    OpSpec(
        "merge_heads",
        1,
        (_in("x", FLOAT, "T", "H", "D"),),
        (ResultSpec("y", DType.F32, ("T", "width")),),
        (AttributeSpec("width", int),),
        "The heads of each token side by side; width = H · D.",
    ),
    OpSpec(
        "gated_activation",
        1,
        (_in("gate", FLOAT, "T", "F"), _in("up", FLOAT, "T", "F")),
        (ResultSpec("y", DType.F32, ("T", "F")),),
        (AttributeSpec("function", str, "silu", ("silu", "gelu", "gelu_tanh")),),
        "function(gate) · up.",
        tolerance=1e-5,
    ),
    OpSpec(
        "add",
        1,
        (_in("left", FLOAT, "..."), _in("right", FLOAT, "...")),
        (ResultSpec("sum", DType.F32, ("...",)),),
        (),
        "left + right.",
        tolerance=1e-6,
    ),
    OpSpec(
        "scale",
        1,
        (_in("x", FLOAT, "..."),),
        (ResultSpec("y", DType.F32, ("...",)),),
        (AttributeSpec("factor", float),),
        "factor · x.",
        tolerance=1e-6,
    ),
    OpSpec(
        "softcap",
        1,
        (_in("x", FLOAT, "..."),),
        (ResultSpec("y", DType.F32, ("...",)),),
        (AttributeSpec("cap", float),),
        "cap · tanh(x / cap).",
        tolerance=1e-5,
    ),
    # ---- sampling -----------------------------------------------------------------------
    OpSpec(
        "process_logits",
        1,
        (
            _in("logits", FLOAT, "S", "V"),
            _in("slots", INT, "S"),
            _buffer("prompt_histogram", INT, STATE, READ, "R", "V"),
            _buffer("output_histogram", INT, STATE, READ, "R", "V"),
            _in("repetition", FLOAT, "S"),
            _in("presence", FLOAT, "S"),
            _in("frequency", FLOAT, "S"),
            _in("bias_tokens", INT, "S", "K"),
            _in("bias_values", FLOAT, "S", "K"),
            _in("minimum_output", INT, "S"),
            _in("output_count", INT, "S"),
            _in("eos_tokens", INT, "S", "Z"),
        ),
        (ResultSpec("processed", DType.F32, ("S", "V")),),
        (),
        "Adds bias_values at bias_tokens (negative ids: unused entries), removes eos_tokens while "
        "output_count < minimum_output, divides positive and multiplies negative logits of tokens "
        "seen in prompt or output by repetition (arXiv:1909.05858), then subtracts "
        "frequency · count + presence · (count > 0) of the output.",
        tolerance=1e-6,
    ),
    OpSpec(
        "mask_logits",
        1,
        (
            _in("logits", FLOAT, "S", "V"),
            _in("sampled_rows", INT, "S"),
            _in("mask", frozenset({DType.U32}), "B", "words"),
            _in("active", INT, "B"),
        ),
        (ResultSpec("masked", DType.F32, ("S", "V")),),
        (AttributeSpec("words", int),),
        "Where active[b] is set for the row b = sampled_rows[s], tokens whose bit of mask[b] is "
        "clear become −inf (bit v % 32 of word v // 32).",
    ),
    OpSpec(
        "sample",
        1,
        (
            _in("logits", FLOAT, "S", "V"),
            _in("temperature", FLOAT, "S"),
            _in("top_k", INT, "S"),
            _in("top_p", FLOAT, "S"),
            _in("min_p", FLOAT, "S"),
            _in("seed", frozenset({DType.U64}), "S"),
            _in("position", INT, "S"),
        ),
        (ResultSpec("token", DType.I32, ("S",)),),
        (),
        "The smallest token of the largest logit where temperature is 0. Else, over "
        "softmax(logits / temperature): keep the top_k most likely (0 keeps all; ties by smaller "
        "id), of those, renormalised, the fewest most likely whose probability reaches top_p, of "
        "those the tokens with at least min_p times the largest probability; draw by inverse "
        "transform in token order, renormalised, "
        "with the uniform number of Philox4x32-10 (Salmon et al., SC'11) at key seed and counter "
        "position.",
    ),
    OpSpec(
        "log_probability",
        1,
        (_in("logits", FLOAT, "A", "V"), _in("tokens", INT, "A")),
        (ResultSpec("value", DType.F32, ("A",)),),
        (),
        "log softmax(logits[a])[tokens[a]]; 0 where tokens[a] is negative.",
        tolerance=1e-5,
    ),
    OpSpec(
        "top_log_probabilities",
        1,
        (_in("logits", FLOAT, "A", "V"), _in("count", INT, "A")),
        (
            ResultSpec("tokens", DType.I32, ("A", "maximum")),
            ResultSpec("values", DType.F32, ("A", "maximum")),
        ),
        (AttributeSpec("maximum", int),),
        "The count[a] most likely tokens (ties by smaller id) and their log-probabilities; the "
        "rest is −1 and −inf. A row that asks for none costs nothing.",
        tolerance=1e-5,
    ),
    # ---- state --------------------------------------------------------------------------
    OpSpec(
        "state_read",
        1,
        (_buffer("state", ANY, STATE, READ, "R", "..."), _in("rows", INT, "B")),
        (ResultSpec("value", "state", ("B", "...")),),
        (),
        "state[rows[b]].",
    ),
    OpSpec(
        "state_write",
        1,
        (
            _buffer("state", ANY, STATE, WRITE, "R", "..."),
            _in("rows", INT, "B"),
            _in("value", ANY, "B", "..."),
        ),
        (),
        (),
        "state[rows[b]] = value[b]; the rows of a submission are distinct.",
    ),
    OpSpec(
        "state_clear",
        1,
        (_buffer("state", ANY, STATE, WRITE, "R", "..."), _in("rows", INT, "B")),
        (),
        (),
        "state[rows[b]] = 0.",
    ),
    OpSpec(
        "state_add",
        1,
        (
            _buffer("state", INT, STATE, READ_WRITE, "R"),
            _in("rows", INT, "B"),
            _in("value", INT, "B"),
        ),
        (),
        (),
        "state[rows[b]] += value[b].",
    ),
    OpSpec(
        "histogram_add",
        1,
        (
            _buffer("histogram", INT, STATE, READ_WRITE, "R", "V"),
            _in("rows", INT, "S"),
            _in("tokens", INT, "S"),
        ),
        (),
        (),
        "histogram[rows[s], tokens[s]] += 1.",
    ),
    OpSpec(
        "ones",
        1,
        (_in("like", INT, "A"),),
        (ResultSpec("value", DType.I32, ("A",)),),
        (),
        "1 for every element of `like`.",
    ),
    OpSpec(
        "current_page",
        1,
        (
            _in("slots", INT, "B"),
            _in("endpoints", INT, "B"),
            _in("selector", INT, "B"),
            OperandSpec("page_table", INT, ("R", "M"), frozenset({TRANSPORT})),
        ),
        (ResultSpec("page", DType.I32, ("B",)),),
        (AttributeSpec("page_tokens", int),),
        "The page that holds position endpoints[b], or −1 where selector[b] is negative or the "
        "endpoint lies on a page border (nothing partial to keep).",
    ),
    OpSpec(
        "page_save",
        1,
        (
            _buffer("plane", KV, CACHE, READ, "N", "L", "G", "D"),
            _in("page", INT, "B"),
            OperandSpec("continuation", KV, ("C", "L", "G", "D"), frozenset({STATE}), WRITE),
            _in("row", INT, "B"),
        ),
        (),
        (),
        "continuation[row[b]] = plane[page[b]], where both are not negative.",
    ),
    OpSpec(
        "page_load",
        1,
        (
            OperandSpec("continuation", KV, ("C", "L", "G", "D"), frozenset({STATE}), READ),
            _in("row", INT, "B"),
            _buffer("plane", KV, CACHE, WRITE, "N", "L", "G", "D"),
            _in("page", INT, "B"),
        ),
        (),
        (),
        "plane[page[b]] = continuation[row[b]], where both are not negative.",
    ),
    OpSpec(
        "store",
        1,
        (
            _in("value", ANY, "..."),
            OperandSpec("record", ANY, ("...",), frozenset({COMPLETION}), WRITE),
        ),
        (),
        (),
        "Writes a value into a completion buffer.",
    ),
    # ---- tuning -------------------------------------------------------------------------
    OpSpec(
        "tune_linear",
        2,
        (
            _weight("weight", "N", "K"),
            _buffer("choices", INT, TUNED, WRITE, "C"),
        ),
        (),
        (_COARSE,),
        "Writes choices for every product, coarse or not, with a weight of this shape and storage: "
        "what the device found fastest within its budget, and 0 where it found nothing or did not "
        "look.",
    ),
)
