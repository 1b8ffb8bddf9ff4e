"""What a contract may select, as Python enums numbered as on the wire.

The wire's unspecified zero has no member here: it selects nothing.
"""

from enum import IntEnum, IntFlag

from helios.schema import contract_pb2 as contract
from helios.schema import frontend_pb2 as frontend
from helios.schema import manifest_pb2 as manifest


class ValueSource(IntEnum):
    """Which host value fills a transport destination."""

    SLOT = contract.VALUE_SOURCE_SLOT
    GENERATION = contract.VALUE_SOURCE_GENERATION
    LIVE_ROWS = contract.VALUE_SOURCE_LIVE_ROWS
    QUERY_LENGTH = contract.VALUE_SOURCE_QUERY_LENGTH
    SPECULATIVE_PREFIX_LIMIT = contract.VALUE_SOURCE_SPECULATIVE_PREFIX_LIMIT
    SAMPLING_DECISION = contract.VALUE_SOURCE_SAMPLING_DECISION
    MIXED_PREFILL_ROW = contract.VALUE_SOURCE_MIXED_PREFILL_ROW
    SAMPLED_ROW = contract.VALUE_SOURCE_SAMPLED_ROW

    PROMPT_TOKENS = contract.VALUE_SOURCE_PROMPT_TOKENS
    SCORED_TARGET_TOKENS = contract.VALUE_SOURCE_SCORED_TARGET_TOKENS
    PENDING_TOKEN = contract.VALUE_SOURCE_PENDING_TOKEN
    PROMPT_POSITIONS = contract.VALUE_SOURCE_PROMPT_POSITIONS
    IMAGE_FEATURE_INDEX = contract.VALUE_SOURCE_IMAGE_FEATURE_INDEX
    IMAGE_CONTEXT_INDEX = contract.VALUE_SOURCE_IMAGE_CONTEXT_INDEX
    IMAGE_FEATURE_SLOT = contract.VALUE_SOURCE_IMAGE_FEATURE_SLOT

    PAGE_TABLE = contract.VALUE_SOURCE_PAGE_TABLE
    STATE_ROW = contract.VALUE_SOURCE_STATE_ROW
    RESTORE_SOURCE = contract.VALUE_SOURCE_RESTORE_SOURCE
    SNAPSHOT_DESTINATION = contract.VALUE_SOURCE_SNAPSHOT_DESTINATION
    CONSUMED_TOKENS = contract.VALUE_SOURCE_CONSUMED_TOKENS

    SEED = contract.VALUE_SOURCE_SEED
    TEMPERATURE = contract.VALUE_SOURCE_TEMPERATURE
    TOP_K = contract.VALUE_SOURCE_TOP_K
    TOP_P = contract.VALUE_SOURCE_TOP_P
    MIN_P = contract.VALUE_SOURCE_MIN_P
    REPETITION_PENALTY = contract.VALUE_SOURCE_REPETITION_PENALTY
    PRESENCE_PENALTY = contract.VALUE_SOURCE_PRESENCE_PENALTY
    FREQUENCY_PENALTY = contract.VALUE_SOURCE_FREQUENCY_PENALTY
    OUTPUT_LIMIT = contract.VALUE_SOURCE_OUTPUT_LIMIT
    EOS_TOKENS = contract.VALUE_SOURCE_EOS_TOKENS
    PROMPT_HISTOGRAM = contract.VALUE_SOURCE_PROMPT_HISTOGRAM
    OUTPUT_HISTOGRAM = contract.VALUE_SOURCE_OUTPUT_HISTOGRAM
    LOGIT_BIAS_TOKENS = contract.VALUE_SOURCE_LOGIT_BIAS_TOKENS
    LOGIT_BIAS_VALUES = contract.VALUE_SOURCE_LOGIT_BIAS_VALUES
    TOP_LOGPROBS = contract.VALUE_SOURCE_TOP_LOGPROBS
    MIN_OUTPUT = contract.VALUE_SOURCE_MIN_OUTPUT
    GRAMMAR_MASK = contract.VALUE_SOURCE_GRAMMAR_MASK
    GRAMMAR_ACTIVE = contract.VALUE_SOURCE_GRAMMAR_ACTIVE
    OUTPUT_COUNT = contract.VALUE_SOURCE_OUTPUT_COUNT

    PROPOSAL_TOKENS = contract.VALUE_SOURCE_PROPOSAL_TOKENS
    PROPOSAL_COUNT = contract.VALUE_SOURCE_PROPOSAL_COUNT
    PROPOSAL_GENERATION = contract.VALUE_SOURCE_PROPOSAL_GENERATION
    PROPOSAL_ENDPOINT = contract.VALUE_SOURCE_PROPOSAL_ENDPOINT
    PROPOSAL_GRAMMAR_MASK = contract.VALUE_SOURCE_PROPOSAL_GRAMMAR_MASK

    CONSTANT = contract.VALUE_SOURCE_CONSTANT
    IMAGE_TENSOR = contract.VALUE_SOURCE_IMAGE_TENSOR


class IndexKind(IntEnum):
    """How a destination is addressed."""

    SCALAR = contract.INDEX_KIND_SCALAR
    SUBMISSION_ROW = contract.INDEX_KIND_SUBMISSION_ROW
    ACTIVE_ROW = contract.INDEX_KIND_ACTIVE_ROW
    PHYSICAL_ROW = contract.INDEX_KIND_PHYSICAL_ROW
    PACKED_TOKEN = contract.INDEX_KIND_PACKED_TOKEN


class Access(IntFlag):
    """What a graph does to a state view; the wire's numbers are these two bits."""

    READ = contract.ACCESS_READ
    WRITE = contract.ACCESS_WRITE
    READ_WRITE = contract.ACCESS_READ_WRITE


class HistoryKind(IntEnum):
    """How a layer remembers earlier tokens."""

    PAGED_KEY_VALUE = contract.HISTORY_KIND_PAGED_KEY_VALUE
    PAGED_LATENT = contract.HISTORY_KIND_PAGED_LATENT
    SLIDING_WINDOW = contract.HISTORY_KIND_SLIDING_WINDOW
    RECURRENT = contract.HISTORY_KIND_RECURRENT
    CONTINUATION = contract.HISTORY_KIND_CONTINUATION


class CompletionField(IntEnum):
    """What a completion buffer reports."""

    SLOT = manifest.COMPLETION_FIELD_SLOT
    GENERATION = manifest.COMPLETION_FIELD_GENERATION
    ACCEPTED = manifest.COMPLETION_FIELD_ACCEPTED
    ENDPOINT = manifest.COMPLETION_FIELD_ENDPOINT
    TOKENS = manifest.COMPLETION_FIELD_TOKENS
    LOGPROB = manifest.COMPLETION_FIELD_LOGPROB
    TOP_TOKENS = manifest.COMPLETION_FIELD_TOP_TOKENS
    TOP_LOGPROBS = manifest.COMPLETION_FIELD_TOP_LOGPROBS
    SCORES = manifest.COMPLETION_FIELD_SCORES
    OFFERED = manifest.COMPLETION_FIELD_OFFERED
    CURSOR = manifest.COMPLETION_FIELD_CURSOR
    MODEL = manifest.COMPLETION_FIELD_MODEL
    CONFIDENCE = manifest.COMPLETION_FIELD_CONFIDENCE
    SCORE_TOP_TOKENS = manifest.COMPLETION_FIELD_SCORE_TOP_TOKENS
    SCORE_TOP_LOGPROBS = manifest.COMPLETION_FIELD_SCORE_TOP_LOGPROBS


class WeightStorage(IntEnum):
    """How a stored tensor's bytes encode its elements."""

    F32 = manifest.WEIGHT_STORAGE_F32
    F16 = manifest.WEIGHT_STORAGE_F16
    BF16 = manifest.WEIGHT_STORAGE_BF16
    Q8_0 = manifest.WEIGHT_STORAGE_Q8_0
    Q4_0 = manifest.WEIGHT_STORAGE_Q4_0
    Q4_1 = manifest.WEIGHT_STORAGE_Q4_1
    Q5_0 = manifest.WEIGHT_STORAGE_Q5_0
    Q5_1 = manifest.WEIGHT_STORAGE_Q5_1
    Q2_K = manifest.WEIGHT_STORAGE_Q2_K
    Q3_K = manifest.WEIGHT_STORAGE_Q3_K
    Q4_K = manifest.WEIGHT_STORAGE_Q4_K
    Q5_K = manifest.WEIGHT_STORAGE_Q5_K
    Q6_K = manifest.WEIGHT_STORAGE_Q6_K
    IQ4_NL = manifest.WEIGHT_STORAGE_IQ4_NL
    MXFP4 = manifest.WEIGHT_STORAGE_MXFP4
    TILE16_W4G32 = manifest.WEIGHT_STORAGE_TILE16_W4G32
    TILE16_W4G32F = manifest.WEIGHT_STORAGE_TILE16_W4G32F
    TILE16_W8G32 = manifest.WEIGHT_STORAGE_TILE16_W8G32
    TILE16_W8G32M = manifest.WEIGHT_STORAGE_TILE16_W8G32M
    TILE16_W8G16 = manifest.WEIGHT_STORAGE_TILE16_W8G16
    TILE16_W8G16M = manifest.WEIGHT_STORAGE_TILE16_W8G16M
    TILE16_F16 = manifest.WEIGHT_STORAGE_TILE16_F16
    TILE16_BF16 = manifest.WEIGHT_STORAGE_TILE16_BF16
    TILE16_F32 = manifest.WEIGHT_STORAGE_TILE16_F32

    @property
    def tile_rows(self) -> int:
        """Rows that are stored together: matrices are padded to a multiple; 1 if there are no
        tiles."""
        return 16 if self >= WeightStorage.TILE16_W4G32 else 1


SOURCE_STORAGES = tuple(storage for storage in WeightStorage if storage.tile_rows == 1)
"""What checkpoints store; the rest is made from it when a model is prepared."""


class ToolParser(IntEnum):
    """A reusable tool-call syntax."""

    NONE = frontend.TOOL_PARSER_NONE
    FUNCTION_TAGS = frontend.TOOL_PARSER_FUNCTION_TAGS
    JSON_TAGS = frontend.TOOL_PARSER_JSON_TAGS
    ARGUMENT_TAGS = frontend.TOOL_PARSER_ARGUMENT_TAGS
    DSML = frontend.TOOL_PARSER_DSML
    SECTIONS = frontend.TOOL_PARSER_SECTIONS
    XTML = frontend.TOOL_PARSER_XTML
    ATEM = frontend.TOOL_PARSER_ATEM
    JSON_MESSAGE = frontend.TOOL_PARSER_JSON_MESSAGE
    PYTHONIC = frontend.TOOL_PARSER_PYTHONIC
    JSON_ARRAY = frontend.TOOL_PARSER_JSON_ARRAY
    NAMED_JSON = frontend.TOOL_PARSER_NAMED_JSON
    QUOTED_MAPPING = frontend.TOOL_PARSER_QUOTED_MAPPING
    INVOKE_TAGS = frontend.TOOL_PARSER_INVOKE_TAGS
    HARMONY = frontend.TOOL_PARSER_HARMONY


class ReasoningParser(IntEnum):
    """A reusable reasoning syntax."""

    NONE = frontend.REASONING_PARSER_NONE
    THINK_TAGS = frontend.REASONING_PARSER_THINK_TAGS
    XTML_THINK = frontend.REASONING_PARSER_XTML_THINK
    RECIPIENT_HEADERS = frontend.REASONING_PARSER_RECIPIENT_HEADERS
    HARMONY = frontend.REASONING_PARSER_HARMONY


class ImagePreparation(IntEnum):
    """How an image becomes patches."""

    NONE = frontend.IMAGE_PREPARATION_NONE
    SMART_RESIZE = frontend.IMAGE_PREPARATION_SMART_RESIZE
    FIXED_SQUARE = frontend.IMAGE_PREPARATION_FIXED_SQUARE
    TILES = frontend.IMAGE_PREPARATION_TILES


class ImageLayout(IntEnum):
    """How an image's features stand among the prompt's tokens."""

    NONE = frontend.IMAGE_LAYOUT_NONE
    SPATIAL_MERGE = frontend.IMAGE_LAYOUT_SPATIAL_MERGE
    POOLED_GRID = frontend.IMAGE_LAYOUT_POOLED_GRID
    TILED_GRID = frontend.IMAGE_LAYOUT_TILED_GRID


class ValueTyping(IntEnum):
    """Where the type of a tool argument comes from."""

    JSON = frontend.VALUE_TYPING_JSON
    SCHEMA = frontend.VALUE_TYPING_SCHEMA
    ATTRIBUTE = frontend.VALUE_TYPING_ATTRIBUTE
    WIRE = frontend.VALUE_TYPING_WIRE


class ParallelCalls(IntEnum):
    """How several tool calls of one message are written."""

    NONE = frontend.PARALLEL_CALLS_NONE
    REPEAT_BLOCK = frontend.PARALLEL_CALLS_REPEAT_BLOCK
    ITEMS = frontend.PARALLEL_CALLS_ITEMS
    FRAMES = frontend.PARALLEL_CALLS_FRAMES
