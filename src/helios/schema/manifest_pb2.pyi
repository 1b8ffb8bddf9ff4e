from helios.schema import program_pb2 as _program_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CompletionField(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMPLETION_FIELD_UNSPECIFIED: _ClassVar[CompletionField]
    COMPLETION_FIELD_SLOT: _ClassVar[CompletionField]
    COMPLETION_FIELD_GENERATION: _ClassVar[CompletionField]
    COMPLETION_FIELD_ACCEPTED: _ClassVar[CompletionField]
    COMPLETION_FIELD_ENDPOINT: _ClassVar[CompletionField]
    COMPLETION_FIELD_TOKENS: _ClassVar[CompletionField]
    COMPLETION_FIELD_LOGPROB: _ClassVar[CompletionField]
    COMPLETION_FIELD_TOP_TOKENS: _ClassVar[CompletionField]
    COMPLETION_FIELD_TOP_LOGPROBS: _ClassVar[CompletionField]
    COMPLETION_FIELD_SCORES: _ClassVar[CompletionField]
    COMPLETION_FIELD_OFFERED: _ClassVar[CompletionField]
    COMPLETION_FIELD_CURSOR: _ClassVar[CompletionField]
    COMPLETION_FIELD_MODEL: _ClassVar[CompletionField]
    COMPLETION_FIELD_CONFIDENCE: _ClassVar[CompletionField]
    COMPLETION_FIELD_SCORE_TOP_TOKENS: _ClassVar[CompletionField]
    COMPLETION_FIELD_SCORE_TOP_LOGPROBS: _ClassVar[CompletionField]

class WeightStorage(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WEIGHT_STORAGE_UNSPECIFIED: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_F32: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_F16: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_BF16: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_Q8_0: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_Q4_0: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_Q4_1: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_Q5_0: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_Q5_1: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_Q2_K: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_Q3_K: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_Q4_K: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_Q5_K: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_Q6_K: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_IQ4_NL: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_MXFP4: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_TILE16_W4G32: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_TILE16_W4G32F: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_TILE16_W8G32: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_TILE16_W8G32M: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_TILE16_W8G16: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_TILE16_W8G16M: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_TILE16_F16: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_TILE16_BF16: _ClassVar[WeightStorage]
    WEIGHT_STORAGE_TILE16_F32: _ClassVar[WeightStorage]
COMPLETION_FIELD_UNSPECIFIED: CompletionField
COMPLETION_FIELD_SLOT: CompletionField
COMPLETION_FIELD_GENERATION: CompletionField
COMPLETION_FIELD_ACCEPTED: CompletionField
COMPLETION_FIELD_ENDPOINT: CompletionField
COMPLETION_FIELD_TOKENS: CompletionField
COMPLETION_FIELD_LOGPROB: CompletionField
COMPLETION_FIELD_TOP_TOKENS: CompletionField
COMPLETION_FIELD_TOP_LOGPROBS: CompletionField
COMPLETION_FIELD_SCORES: CompletionField
COMPLETION_FIELD_OFFERED: CompletionField
COMPLETION_FIELD_CURSOR: CompletionField
COMPLETION_FIELD_MODEL: CompletionField
COMPLETION_FIELD_CONFIDENCE: CompletionField
COMPLETION_FIELD_SCORE_TOP_TOKENS: CompletionField
COMPLETION_FIELD_SCORE_TOP_LOGPROBS: CompletionField
WEIGHT_STORAGE_UNSPECIFIED: WeightStorage
WEIGHT_STORAGE_F32: WeightStorage
WEIGHT_STORAGE_F16: WeightStorage
WEIGHT_STORAGE_BF16: WeightStorage
WEIGHT_STORAGE_Q8_0: WeightStorage
WEIGHT_STORAGE_Q4_0: WeightStorage
WEIGHT_STORAGE_Q4_1: WeightStorage
WEIGHT_STORAGE_Q5_0: WeightStorage
WEIGHT_STORAGE_Q5_1: WeightStorage
WEIGHT_STORAGE_Q2_K: WeightStorage
WEIGHT_STORAGE_Q3_K: WeightStorage
WEIGHT_STORAGE_Q4_K: WeightStorage
WEIGHT_STORAGE_Q5_K: WeightStorage
WEIGHT_STORAGE_Q6_K: WeightStorage
WEIGHT_STORAGE_IQ4_NL: WeightStorage
WEIGHT_STORAGE_MXFP4: WeightStorage
WEIGHT_STORAGE_TILE16_W4G32: WeightStorage
WEIGHT_STORAGE_TILE16_W4G32F: WeightStorage
WEIGHT_STORAGE_TILE16_W8G32: WeightStorage
WEIGHT_STORAGE_TILE16_W8G32M: WeightStorage
WEIGHT_STORAGE_TILE16_W8G16: WeightStorage
WEIGHT_STORAGE_TILE16_W8G16M: WeightStorage
WEIGHT_STORAGE_TILE16_F16: WeightStorage
WEIGHT_STORAGE_TILE16_BF16: WeightStorage
WEIGHT_STORAGE_TILE16_F32: WeightStorage

class BufferDescriptor(_message.Message):
    __slots__ = ("name", "kind", "type")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: _program_pb2.BufferKind
    type: _program_pb2.TensorType
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[_program_pb2.BufferKind, str]] = ..., type: _Optional[_Union[_program_pb2.TensorType, _Mapping]] = ...) -> None: ...

class TransportDestination(_message.Message):
    __slots__ = ("name", "type", "retained")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    RETAINED_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: _program_pb2.TensorType
    retained: bool
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[_program_pb2.TensorType, _Mapping]] = ..., retained: _Optional[bool] = ...) -> None: ...

class CompletionBinding(_message.Message):
    __slots__ = ("field", "buffer")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    BUFFER_FIELD_NUMBER: _ClassVar[int]
    field: CompletionField
    buffer: str
    def __init__(self, field: _Optional[_Union[CompletionField, str]] = ..., buffer: _Optional[str] = ...) -> None: ...

class TunedInput(_message.Message):
    __slots__ = ("buffer", "producer")
    BUFFER_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    buffer: str
    producer: str
    def __init__(self, buffer: _Optional[str] = ..., producer: _Optional[str] = ...) -> None: ...

class ProgramDescriptor(_message.Message):
    __slots__ = ("name", "operation", "resource", "completion", "tuned_inputs", "tuned_outputs")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_FIELD_NUMBER: _ClassVar[int]
    TUNED_INPUTS_FIELD_NUMBER: _ClassVar[int]
    TUNED_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    operation: _program_pb2.Operation
    resource: str
    completion: _containers.RepeatedCompositeFieldContainer[CompletionBinding]
    tuned_inputs: _containers.RepeatedCompositeFieldContainer[TunedInput]
    tuned_outputs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., operation: _Optional[_Union[_program_pb2.Operation, str]] = ..., resource: _Optional[str] = ..., completion: _Optional[_Iterable[_Union[CompletionBinding, _Mapping]]] = ..., tuned_inputs: _Optional[_Iterable[_Union[TunedInput, _Mapping]]] = ..., tuned_outputs: _Optional[_Iterable[str]] = ...) -> None: ...

class WeightDescriptor(_message.Message):
    __slots__ = ("name", "storage", "shape", "resource", "offset", "nbytes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STORAGE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    NBYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    storage: WeightStorage
    shape: _containers.RepeatedScalarFieldContainer[int]
    resource: str
    offset: int
    nbytes: int
    def __init__(self, name: _Optional[str] = ..., storage: _Optional[_Union[WeightStorage, str]] = ..., shape: _Optional[_Iterable[int]] = ..., resource: _Optional[str] = ..., offset: _Optional[int] = ..., nbytes: _Optional[int] = ...) -> None: ...

class ExecutionManifest(_message.Message):
    __slots__ = ("abi", "buffers", "transport", "programs", "tuning", "weights", "request_slots", "draft_capacity")
    ABI_FIELD_NUMBER: _ClassVar[int]
    BUFFERS_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    TUNING_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_SLOTS_FIELD_NUMBER: _ClassVar[int]
    DRAFT_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    abi: int
    buffers: _containers.RepeatedCompositeFieldContainer[BufferDescriptor]
    transport: _containers.RepeatedCompositeFieldContainer[TransportDestination]
    programs: _containers.RepeatedCompositeFieldContainer[ProgramDescriptor]
    tuning: _containers.RepeatedCompositeFieldContainer[ProgramDescriptor]
    weights: _containers.RepeatedCompositeFieldContainer[WeightDescriptor]
    request_slots: int
    draft_capacity: int
    def __init__(self, abi: _Optional[int] = ..., buffers: _Optional[_Iterable[_Union[BufferDescriptor, _Mapping]]] = ..., transport: _Optional[_Iterable[_Union[TransportDestination, _Mapping]]] = ..., programs: _Optional[_Iterable[_Union[ProgramDescriptor, _Mapping]]] = ..., tuning: _Optional[_Iterable[_Union[ProgramDescriptor, _Mapping]]] = ..., weights: _Optional[_Iterable[_Union[WeightDescriptor, _Mapping]]] = ..., request_slots: _Optional[int] = ..., draft_capacity: _Optional[int] = ...) -> None: ...
