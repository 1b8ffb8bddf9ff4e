from helios.schema import program_pb2 as _program_pb2
from helios.schema import frontend_pb2 as _frontend_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ValueSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VALUE_SOURCE_UNSPECIFIED: _ClassVar[ValueSource]
    VALUE_SOURCE_SLOT: _ClassVar[ValueSource]
    VALUE_SOURCE_GENERATION: _ClassVar[ValueSource]
    VALUE_SOURCE_LIVE_ROWS: _ClassVar[ValueSource]
    VALUE_SOURCE_QUERY_LENGTH: _ClassVar[ValueSource]
    VALUE_SOURCE_SPECULATIVE_PREFIX_LIMIT: _ClassVar[ValueSource]
    VALUE_SOURCE_SAMPLING_DECISION: _ClassVar[ValueSource]
    VALUE_SOURCE_MIXED_PREFILL_ROW: _ClassVar[ValueSource]
    VALUE_SOURCE_SAMPLED_ROW: _ClassVar[ValueSource]
    VALUE_SOURCE_PROMPT_TOKENS: _ClassVar[ValueSource]
    VALUE_SOURCE_SCORED_TARGET_TOKENS: _ClassVar[ValueSource]
    VALUE_SOURCE_PENDING_TOKEN: _ClassVar[ValueSource]
    VALUE_SOURCE_PROMPT_POSITIONS: _ClassVar[ValueSource]
    VALUE_SOURCE_IMAGE_FEATURE_INDEX: _ClassVar[ValueSource]
    VALUE_SOURCE_IMAGE_CONTEXT_INDEX: _ClassVar[ValueSource]
    VALUE_SOURCE_IMAGE_FEATURE_SLOT: _ClassVar[ValueSource]
    VALUE_SOURCE_PAGE_TABLE: _ClassVar[ValueSource]
    VALUE_SOURCE_STATE_ROW: _ClassVar[ValueSource]
    VALUE_SOURCE_RESTORE_SOURCE: _ClassVar[ValueSource]
    VALUE_SOURCE_SNAPSHOT_DESTINATION: _ClassVar[ValueSource]
    VALUE_SOURCE_CONSUMED_TOKENS: _ClassVar[ValueSource]
    VALUE_SOURCE_SEED: _ClassVar[ValueSource]
    VALUE_SOURCE_TEMPERATURE: _ClassVar[ValueSource]
    VALUE_SOURCE_TOP_K: _ClassVar[ValueSource]
    VALUE_SOURCE_TOP_P: _ClassVar[ValueSource]
    VALUE_SOURCE_MIN_P: _ClassVar[ValueSource]
    VALUE_SOURCE_REPETITION_PENALTY: _ClassVar[ValueSource]
    VALUE_SOURCE_PRESENCE_PENALTY: _ClassVar[ValueSource]
    VALUE_SOURCE_FREQUENCY_PENALTY: _ClassVar[ValueSource]
    VALUE_SOURCE_OUTPUT_LIMIT: _ClassVar[ValueSource]
    VALUE_SOURCE_EOS_TOKENS: _ClassVar[ValueSource]
    VALUE_SOURCE_PROMPT_HISTOGRAM: _ClassVar[ValueSource]
    VALUE_SOURCE_OUTPUT_HISTOGRAM: _ClassVar[ValueSource]
    VALUE_SOURCE_LOGIT_BIAS_TOKENS: _ClassVar[ValueSource]
    VALUE_SOURCE_LOGIT_BIAS_VALUES: _ClassVar[ValueSource]
    VALUE_SOURCE_TOP_LOGPROBS: _ClassVar[ValueSource]
    VALUE_SOURCE_MIN_OUTPUT: _ClassVar[ValueSource]
    VALUE_SOURCE_GRAMMAR_MASK: _ClassVar[ValueSource]
    VALUE_SOURCE_GRAMMAR_ACTIVE: _ClassVar[ValueSource]
    VALUE_SOURCE_OUTPUT_COUNT: _ClassVar[ValueSource]
    VALUE_SOURCE_PROPOSAL_TOKENS: _ClassVar[ValueSource]
    VALUE_SOURCE_PROPOSAL_COUNT: _ClassVar[ValueSource]
    VALUE_SOURCE_PROPOSAL_GENERATION: _ClassVar[ValueSource]
    VALUE_SOURCE_PROPOSAL_ENDPOINT: _ClassVar[ValueSource]
    VALUE_SOURCE_PROPOSAL_GRAMMAR_MASK: _ClassVar[ValueSource]
    VALUE_SOURCE_CONSTANT: _ClassVar[ValueSource]
    VALUE_SOURCE_IMAGE_TENSOR: _ClassVar[ValueSource]

class IndexKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INDEX_KIND_UNSPECIFIED: _ClassVar[IndexKind]
    INDEX_KIND_SCALAR: _ClassVar[IndexKind]
    INDEX_KIND_SUBMISSION_ROW: _ClassVar[IndexKind]
    INDEX_KIND_ACTIVE_ROW: _ClassVar[IndexKind]
    INDEX_KIND_PHYSICAL_ROW: _ClassVar[IndexKind]
    INDEX_KIND_PACKED_TOKEN: _ClassVar[IndexKind]

class Access(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACCESS_UNSPECIFIED: _ClassVar[Access]
    ACCESS_READ: _ClassVar[Access]
    ACCESS_WRITE: _ClassVar[Access]
    ACCESS_READ_WRITE: _ClassVar[Access]

class HistoryKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HISTORY_KIND_UNSPECIFIED: _ClassVar[HistoryKind]
    HISTORY_KIND_PAGED_KEY_VALUE: _ClassVar[HistoryKind]
    HISTORY_KIND_PAGED_LATENT: _ClassVar[HistoryKind]
    HISTORY_KIND_SLIDING_WINDOW: _ClassVar[HistoryKind]
    HISTORY_KIND_RECURRENT: _ClassVar[HistoryKind]
    HISTORY_KIND_CONTINUATION: _ClassVar[HistoryKind]
VALUE_SOURCE_UNSPECIFIED: ValueSource
VALUE_SOURCE_SLOT: ValueSource
VALUE_SOURCE_GENERATION: ValueSource
VALUE_SOURCE_LIVE_ROWS: ValueSource
VALUE_SOURCE_QUERY_LENGTH: ValueSource
VALUE_SOURCE_SPECULATIVE_PREFIX_LIMIT: ValueSource
VALUE_SOURCE_SAMPLING_DECISION: ValueSource
VALUE_SOURCE_MIXED_PREFILL_ROW: ValueSource
VALUE_SOURCE_SAMPLED_ROW: ValueSource
VALUE_SOURCE_PROMPT_TOKENS: ValueSource
VALUE_SOURCE_SCORED_TARGET_TOKENS: ValueSource
VALUE_SOURCE_PENDING_TOKEN: ValueSource
VALUE_SOURCE_PROMPT_POSITIONS: ValueSource
VALUE_SOURCE_IMAGE_FEATURE_INDEX: ValueSource
VALUE_SOURCE_IMAGE_CONTEXT_INDEX: ValueSource
VALUE_SOURCE_IMAGE_FEATURE_SLOT: ValueSource
VALUE_SOURCE_PAGE_TABLE: ValueSource
VALUE_SOURCE_STATE_ROW: ValueSource
VALUE_SOURCE_RESTORE_SOURCE: ValueSource
VALUE_SOURCE_SNAPSHOT_DESTINATION: ValueSource
VALUE_SOURCE_CONSUMED_TOKENS: ValueSource
VALUE_SOURCE_SEED: ValueSource
VALUE_SOURCE_TEMPERATURE: ValueSource
VALUE_SOURCE_TOP_K: ValueSource
VALUE_SOURCE_TOP_P: ValueSource
VALUE_SOURCE_MIN_P: ValueSource
VALUE_SOURCE_REPETITION_PENALTY: ValueSource
VALUE_SOURCE_PRESENCE_PENALTY: ValueSource
VALUE_SOURCE_FREQUENCY_PENALTY: ValueSource
VALUE_SOURCE_OUTPUT_LIMIT: ValueSource
VALUE_SOURCE_EOS_TOKENS: ValueSource
VALUE_SOURCE_PROMPT_HISTOGRAM: ValueSource
VALUE_SOURCE_OUTPUT_HISTOGRAM: ValueSource
VALUE_SOURCE_LOGIT_BIAS_TOKENS: ValueSource
VALUE_SOURCE_LOGIT_BIAS_VALUES: ValueSource
VALUE_SOURCE_TOP_LOGPROBS: ValueSource
VALUE_SOURCE_MIN_OUTPUT: ValueSource
VALUE_SOURCE_GRAMMAR_MASK: ValueSource
VALUE_SOURCE_GRAMMAR_ACTIVE: ValueSource
VALUE_SOURCE_OUTPUT_COUNT: ValueSource
VALUE_SOURCE_PROPOSAL_TOKENS: ValueSource
VALUE_SOURCE_PROPOSAL_COUNT: ValueSource
VALUE_SOURCE_PROPOSAL_GENERATION: ValueSource
VALUE_SOURCE_PROPOSAL_ENDPOINT: ValueSource
VALUE_SOURCE_PROPOSAL_GRAMMAR_MASK: ValueSource
VALUE_SOURCE_CONSTANT: ValueSource
VALUE_SOURCE_IMAGE_TENSOR: ValueSource
INDEX_KIND_UNSPECIFIED: IndexKind
INDEX_KIND_SCALAR: IndexKind
INDEX_KIND_SUBMISSION_ROW: IndexKind
INDEX_KIND_ACTIVE_ROW: IndexKind
INDEX_KIND_PHYSICAL_ROW: IndexKind
INDEX_KIND_PACKED_TOKEN: IndexKind
ACCESS_UNSPECIFIED: Access
ACCESS_READ: Access
ACCESS_WRITE: Access
ACCESS_READ_WRITE: Access
HISTORY_KIND_UNSPECIFIED: HistoryKind
HISTORY_KIND_PAGED_KEY_VALUE: HistoryKind
HISTORY_KIND_PAGED_LATENT: HistoryKind
HISTORY_KIND_SLIDING_WINDOW: HistoryKind
HISTORY_KIND_RECURRENT: HistoryKind
HISTORY_KIND_CONTINUATION: HistoryKind

class ServingContract(_message.Message):
    __slots__ = ("served_id", "aliases", "cache_identity", "context_tokens", "prefill_tokens", "prepared_pages", "prepared_snapshots", "concurrency", "speculative_widths", "defaults", "model")
    SERVED_ID_FIELD_NUMBER: _ClassVar[int]
    ALIASES_FIELD_NUMBER: _ClassVar[int]
    CACHE_IDENTITY_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PREFILL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PREPARED_PAGES_FIELD_NUMBER: _ClassVar[int]
    PREPARED_SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    SPECULATIVE_WIDTHS_FIELD_NUMBER: _ClassVar[int]
    DEFAULTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    served_id: str
    aliases: _containers.RepeatedScalarFieldContainer[str]
    cache_identity: str
    context_tokens: int
    prefill_tokens: int
    prepared_pages: int
    prepared_snapshots: int
    concurrency: int
    speculative_widths: _containers.RepeatedScalarFieldContainer[int]
    defaults: ServingDefaults
    model: ModelContract
    def __init__(self, served_id: _Optional[str] = ..., aliases: _Optional[_Iterable[str]] = ..., cache_identity: _Optional[str] = ..., context_tokens: _Optional[int] = ..., prefill_tokens: _Optional[int] = ..., prepared_pages: _Optional[int] = ..., prepared_snapshots: _Optional[int] = ..., concurrency: _Optional[int] = ..., speculative_widths: _Optional[_Iterable[int]] = ..., defaults: _Optional[_Union[ServingDefaults, _Mapping]] = ..., model: _Optional[_Union[ModelContract, _Mapping]] = ...) -> None: ...

class ServingDefaults(_message.Message):
    __slots__ = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "max_output_tokens")
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    MIN_P_FIELD_NUMBER: _ClassVar[int]
    REPETITION_PENALTY_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_PENALTY_FIELD_NUMBER: _ClassVar[int]
    FREQUENCY_PENALTY_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    max_output_tokens: int
    def __init__(self, temperature: _Optional[float] = ..., top_k: _Optional[int] = ..., top_p: _Optional[float] = ..., min_p: _Optional[float] = ..., repetition_penalty: _Optional[float] = ..., presence_penalty: _Optional[float] = ..., frequency_penalty: _Optional[float] = ..., max_output_tokens: _Optional[int] = ...) -> None: ...

class ModelContract(_message.Message):
    __slots__ = ("version", "vocabulary", "input_vocabulary", "vision", "cache", "graphs", "frontend", "state_views")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    VOCABULARY_FIELD_NUMBER: _ClassVar[int]
    INPUT_VOCABULARY_FIELD_NUMBER: _ClassVar[int]
    VISION_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    GRAPHS_FIELD_NUMBER: _ClassVar[int]
    FRONTEND_FIELD_NUMBER: _ClassVar[int]
    STATE_VIEWS_FIELD_NUMBER: _ClassVar[int]
    version: int
    vocabulary: int
    input_vocabulary: int
    vision: VisionContract
    cache: CacheContract
    graphs: _containers.RepeatedCompositeFieldContainer[GraphContract]
    frontend: _frontend_pb2.FrontendContract
    state_views: _containers.RepeatedCompositeFieldContainer[StateView]
    def __init__(self, version: _Optional[int] = ..., vocabulary: _Optional[int] = ..., input_vocabulary: _Optional[int] = ..., vision: _Optional[_Union[VisionContract, _Mapping]] = ..., cache: _Optional[_Union[CacheContract, _Mapping]] = ..., graphs: _Optional[_Iterable[_Union[GraphContract, _Mapping]]] = ..., frontend: _Optional[_Union[_frontend_pb2.FrontendContract, _Mapping]] = ..., state_views: _Optional[_Iterable[_Union[StateView, _Mapping]]] = ...) -> None: ...

class VisionContract(_message.Message):
    __slots__ = ("feature_slots", "window_feature_capacity", "patches_per_feature", "patch_capacities")
    FEATURE_SLOTS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FEATURE_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    PATCHES_PER_FEATURE_FIELD_NUMBER: _ClassVar[int]
    PATCH_CAPACITIES_FIELD_NUMBER: _ClassVar[int]
    feature_slots: int
    window_feature_capacity: int
    patches_per_feature: int
    patch_capacities: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, feature_slots: _Optional[int] = ..., window_feature_capacity: _Optional[int] = ..., patches_per_feature: _Optional[int] = ..., patch_capacities: _Optional[_Iterable[int]] = ...) -> None: ...

class ValueBinding(_message.Message):
    __slots__ = ("destination", "source", "index", "offset", "padding", "constants", "image_tensor")
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    PADDING_FIELD_NUMBER: _ClassVar[int]
    CONSTANTS_FIELD_NUMBER: _ClassVar[int]
    IMAGE_TENSOR_FIELD_NUMBER: _ClassVar[int]
    destination: str
    source: ValueSource
    index: IndexKind
    offset: int
    padding: int
    constants: _containers.RepeatedScalarFieldContainer[int]
    image_tensor: str
    def __init__(self, destination: _Optional[str] = ..., source: _Optional[_Union[ValueSource, str]] = ..., index: _Optional[_Union[IndexKind, str]] = ..., offset: _Optional[int] = ..., padding: _Optional[int] = ..., constants: _Optional[_Iterable[int]] = ..., image_tensor: _Optional[str] = ...) -> None: ...

class StateView(_message.Message):
    __slots__ = ("name", "buffer", "byte_offset", "row_stride", "row_bytes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BUFFER_FIELD_NUMBER: _ClassVar[int]
    BYTE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ROW_STRIDE_FIELD_NUMBER: _ClassVar[int]
    ROW_BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    buffer: str
    byte_offset: int
    row_stride: int
    row_bytes: int
    def __init__(self, name: _Optional[str] = ..., buffer: _Optional[str] = ..., byte_offset: _Optional[int] = ..., row_stride: _Optional[int] = ..., row_bytes: _Optional[int] = ...) -> None: ...

class StateAccess(_message.Message):
    __slots__ = ("view", "access")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    view: str
    access: Access
    def __init__(self, view: _Optional[str] = ..., access: _Optional[_Union[Access, str]] = ...) -> None: ...

class TunedBinding(_message.Message):
    __slots__ = ("buffer", "producer")
    BUFFER_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    buffer: str
    producer: str
    def __init__(self, buffer: _Optional[str] = ..., producer: _Optional[str] = ...) -> None: ...

class GraphContract(_message.Message):
    __slots__ = ("program", "operation", "bindings", "state", "pending_view", "pending_destination", "tuned_bindings", "resources", "batch_capacity", "draft_tokens", "token_capacity", "packed_token_capacity", "confidence_width", "state_rows_per_request", "draft_cursor")
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    BINDINGS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PENDING_VIEW_FIELD_NUMBER: _ClassVar[int]
    PENDING_DESTINATION_FIELD_NUMBER: _ClassVar[int]
    TUNED_BINDINGS_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    BATCH_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    DRAFT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    PACKED_TOKEN_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_WIDTH_FIELD_NUMBER: _ClassVar[int]
    STATE_ROWS_PER_REQUEST_FIELD_NUMBER: _ClassVar[int]
    DRAFT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    program: str
    operation: _program_pb2.Operation
    bindings: _containers.RepeatedCompositeFieldContainer[ValueBinding]
    state: _containers.RepeatedCompositeFieldContainer[StateAccess]
    pending_view: str
    pending_destination: str
    tuned_bindings: _containers.RepeatedCompositeFieldContainer[TunedBinding]
    resources: _containers.RepeatedScalarFieldContainer[str]
    batch_capacity: int
    draft_tokens: int
    token_capacity: int
    packed_token_capacity: int
    confidence_width: int
    state_rows_per_request: int
    draft_cursor: DraftCursor
    def __init__(self, program: _Optional[str] = ..., operation: _Optional[_Union[_program_pb2.Operation, str]] = ..., bindings: _Optional[_Iterable[_Union[ValueBinding, _Mapping]]] = ..., state: _Optional[_Iterable[_Union[StateAccess, _Mapping]]] = ..., pending_view: _Optional[str] = ..., pending_destination: _Optional[str] = ..., tuned_bindings: _Optional[_Iterable[_Union[TunedBinding, _Mapping]]] = ..., resources: _Optional[_Iterable[str]] = ..., batch_capacity: _Optional[int] = ..., draft_tokens: _Optional[int] = ..., token_capacity: _Optional[int] = ..., packed_token_capacity: _Optional[int] = ..., confidence_width: _Optional[int] = ..., state_rows_per_request: _Optional[int] = ..., draft_cursor: _Optional[_Union[DraftCursor, _Mapping]] = ...) -> None: ...

class DraftCursor(_message.Message):
    __slots__ = ("view", "lag_tokens")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    LAG_TOKENS_FIELD_NUMBER: _ClassVar[int]
    view: str
    lag_tokens: int
    def __init__(self, view: _Optional[str] = ..., lag_tokens: _Optional[int] = ...) -> None: ...

class CachePlane(_message.Message):
    __slots__ = ("buffer", "record_bytes")
    BUFFER_FIELD_NUMBER: _ClassVar[int]
    RECORD_BYTES_FIELD_NUMBER: _ClassVar[int]
    buffer: str
    record_bytes: int
    def __init__(self, buffer: _Optional[str] = ..., record_bytes: _Optional[int] = ...) -> None: ...

class HistoryRegion(_message.Message):
    __slots__ = ("name", "kind", "planes", "tokens_per_record", "window_tokens")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PLANES_FIELD_NUMBER: _ClassVar[int]
    TOKENS_PER_RECORD_FIELD_NUMBER: _ClassVar[int]
    WINDOW_TOKENS_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: HistoryKind
    planes: _containers.RepeatedCompositeFieldContainer[CachePlane]
    tokens_per_record: int
    window_tokens: int
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[HistoryKind, str]] = ..., planes: _Optional[_Iterable[_Union[CachePlane, _Mapping]]] = ..., tokens_per_record: _Optional[int] = ..., window_tokens: _Optional[int] = ...) -> None: ...

class PageTableView(_message.Message):
    __slots__ = ("destination", "page_offset")
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    PAGE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    destination: str
    page_offset: int
    def __init__(self, destination: _Optional[str] = ..., page_offset: _Optional[int] = ...) -> None: ...

class CacheContract(_message.Message):
    __slots__ = ("page_tokens", "histories", "page_tables")
    PAGE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    HISTORIES_FIELD_NUMBER: _ClassVar[int]
    PAGE_TABLES_FIELD_NUMBER: _ClassVar[int]
    page_tokens: int
    histories: _containers.RepeatedCompositeFieldContainer[HistoryRegion]
    page_tables: _containers.RepeatedCompositeFieldContainer[PageTableView]
    def __init__(self, page_tokens: _Optional[int] = ..., histories: _Optional[_Iterable[_Union[HistoryRegion, _Mapping]]] = ..., page_tables: _Optional[_Iterable[_Union[PageTableView, _Mapping]]] = ...) -> None: ...
