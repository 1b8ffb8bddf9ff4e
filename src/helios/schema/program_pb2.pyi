from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DTYPE_UNSPECIFIED: _ClassVar[DType]
    DTYPE_F32: _ClassVar[DType]
    DTYPE_F16: _ClassVar[DType]
    DTYPE_BF16: _ClassVar[DType]
    DTYPE_I32: _ClassVar[DType]
    DTYPE_U32: _ClassVar[DType]
    DTYPE_U64: _ClassVar[DType]
    DTYPE_U8: _ClassVar[DType]
    DTYPE_I64: _ClassVar[DType]

class Operation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPERATION_UNSPECIFIED: _ClassVar[Operation]
    OPERATION_INITIALIZE: _ClassVar[Operation]
    OPERATION_RESTORE: _ClassVar[Operation]
    OPERATION_PREFILL: _ClassVar[Operation]
    OPERATION_SCORED_PREFILL: _ClassVar[Operation]
    OPERATION_RESUME: _ClassVar[Operation]
    OPERATION_DECODE: _ClassVar[Operation]
    OPERATION_MIXED: _ClassVar[Operation]
    OPERATION_SPECULATIVE: _ClassVar[Operation]
    OPERATION_TUNING: _ClassVar[Operation]

class ExtentKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXTENT_KIND_UNSPECIFIED: _ClassVar[ExtentKind]
    EXTENT_KIND_DYNAMIC: _ClassVar[ExtentKind]
    EXTENT_KIND_LOAD: _ClassVar[ExtentKind]

class BufferKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BUFFER_KIND_UNSPECIFIED: _ClassVar[BufferKind]
    BUFFER_KIND_TRANSPORT: _ClassVar[BufferKind]
    BUFFER_KIND_COMPLETION: _ClassVar[BufferKind]
    BUFFER_KIND_STATE: _ClassVar[BufferKind]
    BUFFER_KIND_CACHE: _ClassVar[BufferKind]
    BUFFER_KIND_TUNED: _ClassVar[BufferKind]

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_TOKENS: _ClassVar[Role]
    ROLE_POSITIONS: _ClassVar[Role]
    ROLE_TOKEN_MASK: _ClassVar[Role]
    ROLE_REPETITION_TOKEN_IDS: _ClassVar[Role]
    ROLE_REPETITION_OFFSETS: _ClassVar[Role]
    ROLE_REPETITION_PENALTY: _ClassVar[Role]
    ROLE_LOGITS: _ClassVar[Role]
    ROLE_SAMPLED_TOKEN: _ClassVar[Role]
DTYPE_UNSPECIFIED: DType
DTYPE_F32: DType
DTYPE_F16: DType
DTYPE_BF16: DType
DTYPE_I32: DType
DTYPE_U32: DType
DTYPE_U64: DType
DTYPE_U8: DType
DTYPE_I64: DType
OPERATION_UNSPECIFIED: Operation
OPERATION_INITIALIZE: Operation
OPERATION_RESTORE: Operation
OPERATION_PREFILL: Operation
OPERATION_SCORED_PREFILL: Operation
OPERATION_RESUME: Operation
OPERATION_DECODE: Operation
OPERATION_MIXED: Operation
OPERATION_SPECULATIVE: Operation
OPERATION_TUNING: Operation
EXTENT_KIND_UNSPECIFIED: ExtentKind
EXTENT_KIND_DYNAMIC: ExtentKind
EXTENT_KIND_LOAD: ExtentKind
BUFFER_KIND_UNSPECIFIED: BufferKind
BUFFER_KIND_TRANSPORT: BufferKind
BUFFER_KIND_COMPLETION: BufferKind
BUFFER_KIND_STATE: BufferKind
BUFFER_KIND_CACHE: BufferKind
BUFFER_KIND_TUNED: BufferKind
ROLE_UNSPECIFIED: Role
ROLE_TOKENS: Role
ROLE_POSITIONS: Role
ROLE_TOKEN_MASK: Role
ROLE_REPETITION_TOKEN_IDS: Role
ROLE_REPETITION_OFFSETS: Role
ROLE_REPETITION_PENALTY: Role
ROLE_LOGITS: Role
ROLE_SAMPLED_TOKEN: Role

class Extent(_message.Message):
    __slots__ = ("name", "kind", "capacity")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: ExtentKind
    capacity: int
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[ExtentKind, str]] = ..., capacity: _Optional[int] = ...) -> None: ...

class Dimension(_message.Message):
    __slots__ = ("constant", "extent")
    CONSTANT_FIELD_NUMBER: _ClassVar[int]
    EXTENT_FIELD_NUMBER: _ClassVar[int]
    constant: int
    extent: str
    def __init__(self, constant: _Optional[int] = ..., extent: _Optional[str] = ...) -> None: ...

class TensorType(_message.Message):
    __slots__ = ("dtype", "shape")
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    dtype: DType
    shape: _containers.RepeatedCompositeFieldContainer[Dimension]
    def __init__(self, dtype: _Optional[_Union[DType, str]] = ..., shape: _Optional[_Iterable[_Union[Dimension, _Mapping]]] = ...) -> None: ...

class Buffer(_message.Message):
    __slots__ = ("name", "kind", "type", "role")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: BufferKind
    type: TensorType
    role: Role
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[BufferKind, str]] = ..., type: _Optional[_Union[TensorType, _Mapping]] = ..., role: _Optional[_Union[Role, str]] = ...) -> None: ...

class Weight(_message.Message):
    __slots__ = ("name", "type")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: TensorType
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[TensorType, _Mapping]] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("name", "type", "role")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: TensorType
    role: Role
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[TensorType, _Mapping]] = ..., role: _Optional[_Union[Role, str]] = ...) -> None: ...

class Reference(_message.Message):
    __slots__ = ("value", "buffer", "weight")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    BUFFER_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    value: str
    buffer: str
    weight: str
    def __init__(self, value: _Optional[str] = ..., buffer: _Optional[str] = ..., weight: _Optional[str] = ...) -> None: ...

class IntegerList(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, values: _Optional[_Iterable[int]] = ...) -> None: ...

class Attribute(_message.Message):
    __slots__ = ("name", "integer", "real", "text", "boolean", "integers")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    REAL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    BOOLEAN_FIELD_NUMBER: _ClassVar[int]
    INTEGERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    integer: int
    real: float
    text: str
    boolean: bool
    integers: IntegerList
    def __init__(self, name: _Optional[str] = ..., integer: _Optional[int] = ..., real: _Optional[float] = ..., text: _Optional[str] = ..., boolean: _Optional[bool] = ..., integers: _Optional[_Union[IntegerList, _Mapping]] = ...) -> None: ...

class Op(_message.Message):
    __slots__ = ("kind", "operands", "results", "attributes")
    KIND_FIELD_NUMBER: _ClassVar[int]
    OPERANDS_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    kind: str
    operands: _containers.RepeatedCompositeFieldContainer[Reference]
    results: _containers.RepeatedScalarFieldContainer[str]
    attributes: _containers.RepeatedCompositeFieldContainer[Attribute]
    def __init__(self, kind: _Optional[str] = ..., operands: _Optional[_Iterable[_Union[Reference, _Mapping]]] = ..., results: _Optional[_Iterable[str]] = ..., attributes: _Optional[_Iterable[_Union[Attribute, _Mapping]]] = ...) -> None: ...

class Program(_message.Message):
    __slots__ = ("name", "operation", "extents", "buffers", "weights", "values", "ops")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    EXTENTS_FIELD_NUMBER: _ClassVar[int]
    BUFFERS_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    OPS_FIELD_NUMBER: _ClassVar[int]
    name: str
    operation: Operation
    extents: _containers.RepeatedCompositeFieldContainer[Extent]
    buffers: _containers.RepeatedCompositeFieldContainer[Buffer]
    weights: _containers.RepeatedCompositeFieldContainer[Weight]
    values: _containers.RepeatedCompositeFieldContainer[Value]
    ops: _containers.RepeatedCompositeFieldContainer[Op]
    def __init__(self, name: _Optional[str] = ..., operation: _Optional[_Union[Operation, str]] = ..., extents: _Optional[_Iterable[_Union[Extent, _Mapping]]] = ..., buffers: _Optional[_Iterable[_Union[Buffer, _Mapping]]] = ..., weights: _Optional[_Iterable[_Union[Weight, _Mapping]]] = ..., values: _Optional[_Iterable[_Union[Value, _Mapping]]] = ..., ops: _Optional[_Iterable[_Union[Op, _Mapping]]] = ...) -> None: ...
