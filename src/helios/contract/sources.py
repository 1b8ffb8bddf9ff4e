"""What each value source is: its element types, indexing, shape and the operations it serves."""

from collections.abc import Mapping
from enum import Enum

from helios.contract.kinds import IndexKind, ValueSource
from helios.contract.operation import Operation
from helios.contract.tensor import DType
from helios.records import dataclass


class Tail(Enum):
    """The dimensions of a destination after the one that its index kind runs over."""

    NONE = "no further dimension"
    LIST = "one list of constant length"
    VOCABULARY = "one entry per vocabulary token"
    WORDS = "one 32-bit word per 32 vocabulary tokens"
    LIST_OF_WORDS = "a list of constant length of such words"
    PAGES = "one entry per page of the longest context"
    AXES = "nothing, or one entry per position axis"
    ANY = "any constant dimensions"


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """The rules of one source."""

    dtypes: frozenset[DType]
    indices: frozenset[IndexKind]
    tail: Tail = Tail.NONE
    operations: frozenset[Operation] = frozenset(Operation)


CONSUMERS = frozenset(
    {
        Operation.PREFILL,
        Operation.SCORED_PREFILL,
        Operation.DECODE,
        Operation.MIXED,
        Operation.SPECULATIVE,
    }
)
"""Operations that consume tokens."""
PROMPTED = frozenset({Operation.PREFILL, Operation.SCORED_PREFILL, Operation.MIXED})
"""Operations that consume tokens of a prompt."""

_I32 = frozenset({DType.I32})
_F32 = frozenset({DType.F32})
_U32 = frozenset({DType.U32})
_U64 = frozenset({DType.U64})
_NUMBERS = frozenset({DType.I32, DType.I64, DType.U32, DType.U64, DType.U8, DType.F32})

_BATCH = frozenset({IndexKind.SUBMISSION_ROW, IndexKind.ACTIVE_ROW})
_ROWS = _BATCH | {IndexKind.PHYSICAL_ROW}
_SCALAR = frozenset({IndexKind.SCALAR})
_PACKED = frozenset({IndexKind.PACKED_TOKEN})
_SLOTTED = frozenset({IndexKind.PHYSICAL_ROW})

_SPECULATIVE = frozenset({Operation.SPECULATIVE})

SOURCES: Mapping[ValueSource, SourceSpec] = {
    # Request identity and lane geometry.
    ValueSource.SLOT: SourceSpec(_I32, _BATCH),
    ValueSource.GENERATION: SourceSpec(_I32, _BATCH),
    ValueSource.LIVE_ROWS: SourceSpec(_I32, _SCALAR),
    ValueSource.QUERY_LENGTH: SourceSpec(_I32, _BATCH, operations=CONSUMERS),
    ValueSource.SPECULATIVE_PREFIX_LIMIT: SourceSpec(_I32, _BATCH, operations=_SPECULATIVE),
    ValueSource.SAMPLING_DECISION: SourceSpec(_I32, _BATCH, operations=CONSUMERS),
    ValueSource.MIXED_PREFILL_ROW: SourceSpec(
        _I32, _SCALAR, operations=frozenset({Operation.MIXED})
    ),
    ValueSource.SAMPLED_ROW: SourceSpec(_I32, _BATCH, operations=CONSUMERS),
    # Tokens and positions.
    ValueSource.PROMPT_TOKENS: SourceSpec(_I32, _PACKED, operations=PROMPTED),
    ValueSource.SCORED_TARGET_TOKENS: SourceSpec(
        _I32, _PACKED, operations=frozenset({Operation.SCORED_PREFILL})
    ),
    ValueSource.PENDING_TOKEN: SourceSpec(_I32, _ROWS),
    ValueSource.PROMPT_POSITIONS: SourceSpec(_I32, _PACKED, Tail.AXES, CONSUMERS),
    ValueSource.IMAGE_FEATURE_INDEX: SourceSpec(_I32, _PACKED, operations=PROMPTED),
    ValueSource.IMAGE_CONTEXT_INDEX: SourceSpec(_I32, _PACKED, operations=PROMPTED),
    ValueSource.IMAGE_FEATURE_SLOT: SourceSpec(_I32, _BATCH | _SCALAR, operations=PROMPTED),
    # Cache bindings.
    ValueSource.PAGE_TABLE: SourceSpec(_I32, _SLOTTED, Tail.PAGES),
    ValueSource.STATE_ROW: SourceSpec(_I32, _BATCH),
    ValueSource.RESTORE_SOURCE: SourceSpec(_I32, _BATCH, operations=frozenset({Operation.RESTORE})),
    ValueSource.SNAPSHOT_DESTINATION: SourceSpec(_I32, _BATCH, operations=CONSUMERS),
    ValueSource.CONSUMED_TOKENS: SourceSpec(_I32, _ROWS),
    # Admission sampling.
    ValueSource.SEED: SourceSpec(_U64, _ROWS),
    ValueSource.TEMPERATURE: SourceSpec(_F32, _ROWS),
    ValueSource.TOP_K: SourceSpec(_I32, _ROWS),
    ValueSource.TOP_P: SourceSpec(_F32, _ROWS),
    ValueSource.MIN_P: SourceSpec(_F32, _ROWS),
    ValueSource.REPETITION_PENALTY: SourceSpec(_F32, _ROWS),
    ValueSource.PRESENCE_PENALTY: SourceSpec(_F32, _ROWS),
    ValueSource.FREQUENCY_PENALTY: SourceSpec(_F32, _ROWS),
    ValueSource.OUTPUT_LIMIT: SourceSpec(_I32, _ROWS),
    ValueSource.EOS_TOKENS: SourceSpec(_I32, _ROWS, Tail.LIST),
    ValueSource.PROMPT_HISTOGRAM: SourceSpec(_I32, _ROWS, Tail.VOCABULARY),
    ValueSource.OUTPUT_HISTOGRAM: SourceSpec(_I32, _ROWS, Tail.VOCABULARY),
    ValueSource.LOGIT_BIAS_TOKENS: SourceSpec(_I32, _ROWS, Tail.LIST),
    ValueSource.LOGIT_BIAS_VALUES: SourceSpec(_F32, _ROWS, Tail.LIST),
    ValueSource.TOP_LOGPROBS: SourceSpec(_I32, _ROWS),
    ValueSource.MIN_OUTPUT: SourceSpec(_I32, _ROWS),
    ValueSource.GRAMMAR_MASK: SourceSpec(_U32, _BATCH, Tail.WORDS, CONSUMERS),
    ValueSource.GRAMMAR_ACTIVE: SourceSpec(_I32, _BATCH, operations=CONSUMERS),
    ValueSource.OUTPUT_COUNT: SourceSpec(_I32, _ROWS),
    # Copied proposals. GRAMMAR_MASK is of the token before the first; each of theirs is of the
    # token after it.
    ValueSource.PROPOSAL_TOKENS: SourceSpec(_I32, _BATCH, Tail.LIST, _SPECULATIVE),
    ValueSource.PROPOSAL_COUNT: SourceSpec(_I32, _BATCH, operations=_SPECULATIVE),
    ValueSource.PROPOSAL_GENERATION: SourceSpec(_I32, _BATCH, operations=_SPECULATIVE),
    ValueSource.PROPOSAL_ENDPOINT: SourceSpec(_I32, _BATCH, operations=_SPECULATIVE),
    ValueSource.PROPOSAL_GRAMMAR_MASK: SourceSpec(_U32, _BATCH, Tail.LIST_OF_WORDS, _SPECULATIVE),
    # Constants and images.
    ValueSource.CONSTANT: SourceSpec(_NUMBERS, frozenset(IndexKind), Tail.ANY),
    ValueSource.IMAGE_TENSOR: SourceSpec(
        frozenset(DType), _SCALAR | _BATCH | _PACKED, Tail.ANY, PROMPTED
    ),
}

COPIED_PROPOSALS = (
    ValueSource.PROPOSAL_TOKENS,
    ValueSource.PROPOSAL_COUNT,
    ValueSource.PROPOSAL_GENERATION,
    ValueSource.PROPOSAL_ENDPOINT,
)
"""What a graph binds all of, or none of, to verify copied drafts."""

IMAGE_SOURCES = (
    ValueSource.IMAGE_FEATURE_INDEX,
    ValueSource.IMAGE_CONTEXT_INDEX,
    ValueSource.IMAGE_FEATURE_SLOT,
    ValueSource.IMAGE_TENSOR,
)
"""What only a model with image input has."""
