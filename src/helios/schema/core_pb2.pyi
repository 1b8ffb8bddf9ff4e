from helios.schema import contract_pb2 as _contract_pb2
from helios.schema import manifest_pb2 as _manifest_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ResourceKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESOURCE_KIND_UNSPECIFIED: _ClassVar[ResourceKind]
    RESOURCE_KIND_PROGRAM: _ClassVar[ResourceKind]
    RESOURCE_KIND_WEIGHTS: _ClassVar[ResourceKind]
    RESOURCE_KIND_TOKENIZER: _ClassVar[ResourceKind]
    RESOURCE_KIND_TEMPLATE: _ClassVar[ResourceKind]
    RESOURCE_KIND_LICENSE: _ClassVar[ResourceKind]
    RESOURCE_KIND_REBUILD: _ClassVar[ResourceKind]

class Encoding(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ENCODING_UNSPECIFIED: _ClassVar[Encoding]
    ENCODING_RAW: _ClassVar[Encoding]
    ENCODING_ZSTD: _ClassVar[Encoding]
RESOURCE_KIND_UNSPECIFIED: ResourceKind
RESOURCE_KIND_PROGRAM: ResourceKind
RESOURCE_KIND_WEIGHTS: ResourceKind
RESOURCE_KIND_TOKENIZER: ResourceKind
RESOURCE_KIND_TEMPLATE: ResourceKind
RESOURCE_KIND_LICENSE: ResourceKind
RESOURCE_KIND_REBUILD: ResourceKind
ENCODING_UNSPECIFIED: Encoding
ENCODING_RAW: Encoding
ENCODING_ZSTD: Encoding

class Signature(_message.Message):
    __slots__ = ("key_id", "signature")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    signature: bytes
    def __init__(self, key_id: _Optional[str] = ..., signature: _Optional[bytes] = ...) -> None: ...

class Envelope(_message.Message):
    __slots__ = ("payload_type", "payload", "signatures")
    PAYLOAD_TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    payload_type: str
    payload: bytes
    signatures: _containers.RepeatedCompositeFieldContainer[Signature]
    def __init__(self, payload_type: _Optional[str] = ..., payload: _Optional[bytes] = ..., signatures: _Optional[_Iterable[_Union[Signature, _Mapping]]] = ...) -> None: ...

class Stored(_message.Message):
    __slots__ = ("nbytes", "encoding")
    NBYTES_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    nbytes: int
    encoding: Encoding
    def __init__(self, nbytes: _Optional[int] = ..., encoding: _Optional[_Union[Encoding, str]] = ...) -> None: ...

class Resource(_message.Message):
    __slots__ = ("id", "kind", "index", "stored", "decoded_nbytes", "chunk_nbytes", "chunk_sha256", "media_type")
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    DECODED_NBYTES_FIELD_NUMBER: _ClassVar[int]
    CHUNK_NBYTES_FIELD_NUMBER: _ClassVar[int]
    CHUNK_SHA256_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    id: str
    kind: ResourceKind
    index: int
    stored: Stored
    decoded_nbytes: int
    chunk_nbytes: int
    chunk_sha256: _containers.RepeatedScalarFieldContainer[bytes]
    media_type: str
    def __init__(self, id: _Optional[str] = ..., kind: _Optional[_Union[ResourceKind, str]] = ..., index: _Optional[int] = ..., stored: _Optional[_Union[Stored, _Mapping]] = ..., decoded_nbytes: _Optional[int] = ..., chunk_nbytes: _Optional[int] = ..., chunk_sha256: _Optional[_Iterable[bytes]] = ..., media_type: _Optional[str] = ...) -> None: ...

class Publisher(_message.Message):
    __slots__ = ("namespace", "name", "license")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    LICENSE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    license: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., license: _Optional[str] = ...) -> None: ...

class Provenance(_message.Message):
    __slots__ = ("source", "source_sha256", "recipe", "engine_version")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_SHA256_FIELD_NUMBER: _ClassVar[int]
    RECIPE_FIELD_NUMBER: _ClassVar[int]
    ENGINE_VERSION_FIELD_NUMBER: _ClassVar[int]
    source: str
    source_sha256: bytes
    recipe: str
    engine_version: str
    def __init__(self, source: _Optional[str] = ..., source_sha256: _Optional[bytes] = ..., recipe: _Optional[str] = ..., engine_version: _Optional[str] = ...) -> None: ...

class DeploymentBody(_message.Message):
    __slots__ = ("contract", "manifest")
    CONTRACT_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_FIELD_NUMBER: _ClassVar[int]
    contract: _contract_pb2.ServingContract
    manifest: _manifest_pb2.ExecutionManifest
    def __init__(self, contract: _Optional[_Union[_contract_pb2.ServingContract, _Mapping]] = ..., manifest: _Optional[_Union[_manifest_pb2.ExecutionManifest, _Mapping]] = ...) -> None: ...

class CoreBody(_message.Message):
    __slots__ = ("format_version", "publisher", "deployment", "resources", "provenance")
    FORMAT_VERSION_FIELD_NUMBER: _ClassVar[int]
    PUBLISHER_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    format_version: int
    publisher: Publisher
    deployment: DeploymentBody
    resources: _containers.RepeatedCompositeFieldContainer[Resource]
    provenance: Provenance
    def __init__(self, format_version: _Optional[int] = ..., publisher: _Optional[_Union[Publisher, _Mapping]] = ..., deployment: _Optional[_Union[DeploymentBody, _Mapping]] = ..., resources: _Optional[_Iterable[_Union[Resource, _Mapping]]] = ..., provenance: _Optional[_Union[Provenance, _Mapping]] = ...) -> None: ...

class Location(_message.Message):
    __slots__ = ("resource", "file", "offset", "nbytes")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    NBYTES_FIELD_NUMBER: _ClassVar[int]
    resource: str
    file: str
    offset: int
    nbytes: int
    def __init__(self, resource: _Optional[str] = ..., file: _Optional[str] = ..., offset: _Optional[int] = ..., nbytes: _Optional[int] = ...) -> None: ...

class LocationSet(_message.Message):
    __slots__ = ("locations",)
    LOCATIONS_FIELD_NUMBER: _ClassVar[int]
    locations: _containers.RepeatedCompositeFieldContainer[Location]
    def __init__(self, locations: _Optional[_Iterable[_Union[Location, _Mapping]]] = ...) -> None: ...
