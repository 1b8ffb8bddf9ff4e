from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ToolParser(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOOL_PARSER_UNSPECIFIED: _ClassVar[ToolParser]
    TOOL_PARSER_NONE: _ClassVar[ToolParser]
    TOOL_PARSER_FUNCTION_TAGS: _ClassVar[ToolParser]
    TOOL_PARSER_JSON_TAGS: _ClassVar[ToolParser]
    TOOL_PARSER_ARGUMENT_TAGS: _ClassVar[ToolParser]
    TOOL_PARSER_DSML: _ClassVar[ToolParser]
    TOOL_PARSER_SECTIONS: _ClassVar[ToolParser]
    TOOL_PARSER_XTML: _ClassVar[ToolParser]
    TOOL_PARSER_ATEM: _ClassVar[ToolParser]
    TOOL_PARSER_JSON_MESSAGE: _ClassVar[ToolParser]
    TOOL_PARSER_PYTHONIC: _ClassVar[ToolParser]
    TOOL_PARSER_JSON_ARRAY: _ClassVar[ToolParser]
    TOOL_PARSER_NAMED_JSON: _ClassVar[ToolParser]
    TOOL_PARSER_QUOTED_MAPPING: _ClassVar[ToolParser]
    TOOL_PARSER_INVOKE_TAGS: _ClassVar[ToolParser]
    TOOL_PARSER_HARMONY: _ClassVar[ToolParser]

class ReasoningParser(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REASONING_PARSER_UNSPECIFIED: _ClassVar[ReasoningParser]
    REASONING_PARSER_NONE: _ClassVar[ReasoningParser]
    REASONING_PARSER_THINK_TAGS: _ClassVar[ReasoningParser]
    REASONING_PARSER_XTML_THINK: _ClassVar[ReasoningParser]
    REASONING_PARSER_RECIPIENT_HEADERS: _ClassVar[ReasoningParser]
    REASONING_PARSER_HARMONY: _ClassVar[ReasoningParser]

class ImagePreparation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    IMAGE_PREPARATION_UNSPECIFIED: _ClassVar[ImagePreparation]
    IMAGE_PREPARATION_NONE: _ClassVar[ImagePreparation]
    IMAGE_PREPARATION_SMART_RESIZE: _ClassVar[ImagePreparation]
    IMAGE_PREPARATION_FIXED_SQUARE: _ClassVar[ImagePreparation]
    IMAGE_PREPARATION_TILES: _ClassVar[ImagePreparation]

class ImageLayout(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    IMAGE_LAYOUT_UNSPECIFIED: _ClassVar[ImageLayout]
    IMAGE_LAYOUT_NONE: _ClassVar[ImageLayout]
    IMAGE_LAYOUT_SPATIAL_MERGE: _ClassVar[ImageLayout]
    IMAGE_LAYOUT_POOLED_GRID: _ClassVar[ImageLayout]
    IMAGE_LAYOUT_TILED_GRID: _ClassVar[ImageLayout]

class ValueTyping(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VALUE_TYPING_UNSPECIFIED: _ClassVar[ValueTyping]
    VALUE_TYPING_JSON: _ClassVar[ValueTyping]
    VALUE_TYPING_SCHEMA: _ClassVar[ValueTyping]
    VALUE_TYPING_ATTRIBUTE: _ClassVar[ValueTyping]
    VALUE_TYPING_WIRE: _ClassVar[ValueTyping]

class ParallelCalls(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PARALLEL_CALLS_UNSPECIFIED: _ClassVar[ParallelCalls]
    PARALLEL_CALLS_NONE: _ClassVar[ParallelCalls]
    PARALLEL_CALLS_REPEAT_BLOCK: _ClassVar[ParallelCalls]
    PARALLEL_CALLS_ITEMS: _ClassVar[ParallelCalls]
    PARALLEL_CALLS_FRAMES: _ClassVar[ParallelCalls]
TOOL_PARSER_UNSPECIFIED: ToolParser
TOOL_PARSER_NONE: ToolParser
TOOL_PARSER_FUNCTION_TAGS: ToolParser
TOOL_PARSER_JSON_TAGS: ToolParser
TOOL_PARSER_ARGUMENT_TAGS: ToolParser
TOOL_PARSER_DSML: ToolParser
TOOL_PARSER_SECTIONS: ToolParser
TOOL_PARSER_XTML: ToolParser
TOOL_PARSER_ATEM: ToolParser
TOOL_PARSER_JSON_MESSAGE: ToolParser
TOOL_PARSER_PYTHONIC: ToolParser
TOOL_PARSER_JSON_ARRAY: ToolParser
TOOL_PARSER_NAMED_JSON: ToolParser
TOOL_PARSER_QUOTED_MAPPING: ToolParser
TOOL_PARSER_INVOKE_TAGS: ToolParser
TOOL_PARSER_HARMONY: ToolParser
REASONING_PARSER_UNSPECIFIED: ReasoningParser
REASONING_PARSER_NONE: ReasoningParser
REASONING_PARSER_THINK_TAGS: ReasoningParser
REASONING_PARSER_XTML_THINK: ReasoningParser
REASONING_PARSER_RECIPIENT_HEADERS: ReasoningParser
REASONING_PARSER_HARMONY: ReasoningParser
IMAGE_PREPARATION_UNSPECIFIED: ImagePreparation
IMAGE_PREPARATION_NONE: ImagePreparation
IMAGE_PREPARATION_SMART_RESIZE: ImagePreparation
IMAGE_PREPARATION_FIXED_SQUARE: ImagePreparation
IMAGE_PREPARATION_TILES: ImagePreparation
IMAGE_LAYOUT_UNSPECIFIED: ImageLayout
IMAGE_LAYOUT_NONE: ImageLayout
IMAGE_LAYOUT_SPATIAL_MERGE: ImageLayout
IMAGE_LAYOUT_POOLED_GRID: ImageLayout
IMAGE_LAYOUT_TILED_GRID: ImageLayout
VALUE_TYPING_UNSPECIFIED: ValueTyping
VALUE_TYPING_JSON: ValueTyping
VALUE_TYPING_SCHEMA: ValueTyping
VALUE_TYPING_ATTRIBUTE: ValueTyping
VALUE_TYPING_WIRE: ValueTyping
PARALLEL_CALLS_UNSPECIFIED: ParallelCalls
PARALLEL_CALLS_NONE: ParallelCalls
PARALLEL_CALLS_REPEAT_BLOCK: ParallelCalls
PARALLEL_CALLS_ITEMS: ParallelCalls
PARALLEL_CALLS_FRAMES: ParallelCalls

class DelimiterPair(_message.Message):
    __slots__ = ("open", "close")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    open: str
    close: str
    def __init__(self, open: _Optional[str] = ..., close: _Optional[str] = ...) -> None: ...

class FrameSyntax(_message.Message):
    __slots__ = ("start", "role", "channel", "recipient", "constrain", "message", "ends", "reasoning", "visible", "generic_tool")
    START_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    RECIPIENT_FIELD_NUMBER: _ClassVar[int]
    CONSTRAIN_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    VISIBLE_FIELD_NUMBER: _ClassVar[int]
    GENERIC_TOOL_FIELD_NUMBER: _ClassVar[int]
    start: str
    role: str
    channel: str
    recipient: str
    constrain: str
    message: str
    ends: _containers.RepeatedScalarFieldContainer[str]
    reasoning: _containers.RepeatedScalarFieldContainer[str]
    visible: _containers.RepeatedScalarFieldContainer[str]
    generic_tool: str
    def __init__(self, start: _Optional[str] = ..., role: _Optional[str] = ..., channel: _Optional[str] = ..., recipient: _Optional[str] = ..., constrain: _Optional[str] = ..., message: _Optional[str] = ..., ends: _Optional[_Iterable[str]] = ..., reasoning: _Optional[_Iterable[str]] = ..., visible: _Optional[_Iterable[str]] = ..., generic_tool: _Optional[str] = ...) -> None: ...

class ToolSyntax(_message.Message):
    __slots__ = ("block", "call", "name_end", "key", "value", "wrapping_newlines", "separator", "typing", "parallel", "string_attribute", "type_attribute", "name_fields", "argument_fields", "id_marker", "quote", "implicit_ends", "call_type", "fence", "tag_end", "tokens", "trims_content", "lead", "bare_calls", "id_fields", "name_prefix", "ordinal", "id_length", "frame")
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    NAME_END_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    WRAPPING_NEWLINES_FIELD_NUMBER: _ClassVar[int]
    SEPARATOR_FIELD_NUMBER: _ClassVar[int]
    TYPING_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_FIELD_NUMBER: _ClassVar[int]
    STRING_ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    TYPE_ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELDS_FIELD_NUMBER: _ClassVar[int]
    ARGUMENT_FIELDS_FIELD_NUMBER: _ClassVar[int]
    ID_MARKER_FIELD_NUMBER: _ClassVar[int]
    QUOTE_FIELD_NUMBER: _ClassVar[int]
    IMPLICIT_ENDS_FIELD_NUMBER: _ClassVar[int]
    CALL_TYPE_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    TAG_END_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    TRIMS_CONTENT_FIELD_NUMBER: _ClassVar[int]
    LEAD_FIELD_NUMBER: _ClassVar[int]
    BARE_CALLS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELDS_FIELD_NUMBER: _ClassVar[int]
    NAME_PREFIX_FIELD_NUMBER: _ClassVar[int]
    ORDINAL_FIELD_NUMBER: _ClassVar[int]
    ID_LENGTH_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    block: DelimiterPair
    call: DelimiterPair
    name_end: str
    key: DelimiterPair
    value: DelimiterPair
    wrapping_newlines: bool
    separator: str
    typing: ValueTyping
    parallel: ParallelCalls
    string_attribute: str
    type_attribute: str
    name_fields: _containers.RepeatedScalarFieldContainer[str]
    argument_fields: _containers.RepeatedScalarFieldContainer[str]
    id_marker: str
    quote: str
    implicit_ends: _containers.RepeatedScalarFieldContainer[str]
    call_type: str
    fence: DelimiterPair
    tag_end: str
    tokens: _containers.RepeatedScalarFieldContainer[str]
    trims_content: bool
    lead: str
    bare_calls: bool
    id_fields: _containers.RepeatedScalarFieldContainer[str]
    name_prefix: str
    ordinal: str
    id_length: int
    frame: FrameSyntax
    def __init__(self, block: _Optional[_Union[DelimiterPair, _Mapping]] = ..., call: _Optional[_Union[DelimiterPair, _Mapping]] = ..., name_end: _Optional[str] = ..., key: _Optional[_Union[DelimiterPair, _Mapping]] = ..., value: _Optional[_Union[DelimiterPair, _Mapping]] = ..., wrapping_newlines: _Optional[bool] = ..., separator: _Optional[str] = ..., typing: _Optional[_Union[ValueTyping, str]] = ..., parallel: _Optional[_Union[ParallelCalls, str]] = ..., string_attribute: _Optional[str] = ..., type_attribute: _Optional[str] = ..., name_fields: _Optional[_Iterable[str]] = ..., argument_fields: _Optional[_Iterable[str]] = ..., id_marker: _Optional[str] = ..., quote: _Optional[str] = ..., implicit_ends: _Optional[_Iterable[str]] = ..., call_type: _Optional[str] = ..., fence: _Optional[_Union[DelimiterPair, _Mapping]] = ..., tag_end: _Optional[str] = ..., tokens: _Optional[_Iterable[str]] = ..., trims_content: _Optional[bool] = ..., lead: _Optional[str] = ..., bare_calls: _Optional[bool] = ..., id_fields: _Optional[_Iterable[str]] = ..., name_prefix: _Optional[str] = ..., ordinal: _Optional[str] = ..., id_length: _Optional[int] = ..., frame: _Optional[_Union[FrameSyntax, _Mapping]] = ...) -> None: ...

class ReasoningSyntax(_message.Message):
    __slots__ = ("delimiters", "wrapping_newlines", "terminal_markers", "tokens")
    DELIMITERS_FIELD_NUMBER: _ClassVar[int]
    WRAPPING_NEWLINES_FIELD_NUMBER: _ClassVar[int]
    TERMINAL_MARKERS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    delimiters: DelimiterPair
    wrapping_newlines: bool
    terminal_markers: _containers.RepeatedScalarFieldContainer[str]
    tokens: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, delimiters: _Optional[_Union[DelimiterPair, _Mapping]] = ..., wrapping_newlines: _Optional[bool] = ..., terminal_markers: _Optional[_Iterable[str]] = ..., tokens: _Optional[_Iterable[str]] = ...) -> None: ...

class AssistantEnvelope(_message.Message):
    __slots__ = ("open", "close", "tool_response")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    TOOL_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    open: str
    close: _containers.RepeatedScalarFieldContainer[str]
    tool_response: DelimiterPair
    def __init__(self, open: _Optional[str] = ..., close: _Optional[_Iterable[str]] = ..., tool_response: _Optional[_Union[DelimiterPair, _Mapping]] = ...) -> None: ...

class PrefixBoundaryRule(_message.Message):
    __slots__ = ("role", "generation_prompt", "last_only")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    GENERATION_PROMPT_FIELD_NUMBER: _ClassVar[int]
    LAST_ONLY_FIELD_NUMBER: _ClassVar[int]
    role: str
    generation_prompt: bool
    last_only: bool
    def __init__(self, role: _Optional[str] = ..., generation_prompt: _Optional[bool] = ..., last_only: _Optional[bool] = ...) -> None: ...

class ImageTokens(_message.Message):
    __slots__ = ("feature_ids", "begin_id", "end_id", "atomic_span")
    FEATURE_IDS_FIELD_NUMBER: _ClassVar[int]
    BEGIN_ID_FIELD_NUMBER: _ClassVar[int]
    END_ID_FIELD_NUMBER: _ClassVar[int]
    ATOMIC_SPAN_FIELD_NUMBER: _ClassVar[int]
    feature_ids: _containers.RepeatedScalarFieldContainer[int]
    begin_id: int
    end_id: int
    atomic_span: bool
    def __init__(self, feature_ids: _Optional[_Iterable[int]] = ..., begin_id: _Optional[int] = ..., end_id: _Optional[int] = ..., atomic_span: _Optional[bool] = ...) -> None: ...

class ImageSettings(_message.Message):
    __slots__ = ("patch_size", "merge_size", "minimum_pixels", "maximum_pixels", "mean", "deviation", "square_size", "maximum_tiles")
    PATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    MERGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_PIXELS_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_PIXELS_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    DEVIATION_FIELD_NUMBER: _ClassVar[int]
    SQUARE_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_TILES_FIELD_NUMBER: _ClassVar[int]
    patch_size: int
    merge_size: int
    minimum_pixels: int
    maximum_pixels: int
    mean: _containers.RepeatedScalarFieldContainer[float]
    deviation: _containers.RepeatedScalarFieldContainer[float]
    square_size: int
    maximum_tiles: int
    def __init__(self, patch_size: _Optional[int] = ..., merge_size: _Optional[int] = ..., minimum_pixels: _Optional[int] = ..., maximum_pixels: _Optional[int] = ..., mean: _Optional[_Iterable[float]] = ..., deviation: _Optional[_Iterable[float]] = ..., square_size: _Optional[int] = ..., maximum_tiles: _Optional[int] = ...) -> None: ...

class TemplateToken(_message.Message):
    __slots__ = ("name", "text")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class FrontendContract(_message.Message):
    __slots__ = ("tool_parser", "tool_syntax", "reasoning_parser", "reasoning_syntax", "assistant", "eos_tokens", "template_tokens", "add_bos", "prefix_boundaries", "image_preparation", "image_layout", "image_tokens", "image_settings", "tokenizer_resource", "template_resource", "thinking_switches")
    TOOL_PARSER_FIELD_NUMBER: _ClassVar[int]
    TOOL_SYNTAX_FIELD_NUMBER: _ClassVar[int]
    REASONING_PARSER_FIELD_NUMBER: _ClassVar[int]
    REASONING_SYNTAX_FIELD_NUMBER: _ClassVar[int]
    ASSISTANT_FIELD_NUMBER: _ClassVar[int]
    EOS_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    ADD_BOS_FIELD_NUMBER: _ClassVar[int]
    PREFIX_BOUNDARIES_FIELD_NUMBER: _ClassVar[int]
    IMAGE_PREPARATION_FIELD_NUMBER: _ClassVar[int]
    IMAGE_LAYOUT_FIELD_NUMBER: _ClassVar[int]
    IMAGE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    IMAGE_SETTINGS_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_RESOURCE_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_RESOURCE_FIELD_NUMBER: _ClassVar[int]
    THINKING_SWITCHES_FIELD_NUMBER: _ClassVar[int]
    tool_parser: ToolParser
    tool_syntax: ToolSyntax
    reasoning_parser: ReasoningParser
    reasoning_syntax: ReasoningSyntax
    assistant: AssistantEnvelope
    eos_tokens: _containers.RepeatedScalarFieldContainer[int]
    template_tokens: _containers.RepeatedCompositeFieldContainer[TemplateToken]
    add_bos: bool
    prefix_boundaries: _containers.RepeatedCompositeFieldContainer[PrefixBoundaryRule]
    image_preparation: ImagePreparation
    image_layout: ImageLayout
    image_tokens: ImageTokens
    image_settings: ImageSettings
    tokenizer_resource: str
    template_resource: str
    thinking_switches: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tool_parser: _Optional[_Union[ToolParser, str]] = ..., tool_syntax: _Optional[_Union[ToolSyntax, _Mapping]] = ..., reasoning_parser: _Optional[_Union[ReasoningParser, str]] = ..., reasoning_syntax: _Optional[_Union[ReasoningSyntax, _Mapping]] = ..., assistant: _Optional[_Union[AssistantEnvelope, _Mapping]] = ..., eos_tokens: _Optional[_Iterable[int]] = ..., template_tokens: _Optional[_Iterable[_Union[TemplateToken, _Mapping]]] = ..., add_bos: _Optional[bool] = ..., prefix_boundaries: _Optional[_Iterable[_Union[PrefixBoundaryRule, _Mapping]]] = ..., image_preparation: _Optional[_Union[ImagePreparation, str]] = ..., image_layout: _Optional[_Union[ImageLayout, str]] = ..., image_tokens: _Optional[_Union[ImageTokens, _Mapping]] = ..., image_settings: _Optional[_Union[ImageSettings, _Mapping]] = ..., tokenizer_resource: _Optional[str] = ..., template_resource: _Optional[str] = ..., thinking_switches: _Optional[_Iterable[str]] = ...) -> None: ...
