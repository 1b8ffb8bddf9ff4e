"""The signed facts of a core, checked against one another.

A signature says who wrote a body, not that it makes sense: the writer refuses to sign a body, and
the reader to use one, that does not pass here. What the contract and the manifest mean is not
judged; only what they say about resources is.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

from helios.contract.kinds import WeightStorage
from helios.core import frames
from helios.core.chunks import CHUNK_NBYTES, DIGEST_NBYTES, chunk_count
from helios.core.trust import check_namespace
from helios.core.wire import parse
from helios.errors import CoreError
from helios.records import dataclass
from helios.schema import core_pb2 as pb
from helios.schema import manifest_pb2

FORMAT_VERSION = 3
MAX_RESOURCES = 1 << 14
MAX_ID_CHARACTERS = 255

_REBUILD = "prepare the core again"


class ResourceKind(IntEnum):
    """What a resource is for, numbered as on the wire."""

    PROGRAM = pb.RESOURCE_KIND_PROGRAM
    WEIGHTS = pb.RESOURCE_KIND_WEIGHTS
    TOKENIZER = pb.RESOURCE_KIND_TOKENIZER
    TEMPLATE = pb.RESOURCE_KIND_TEMPLATE
    LICENSE = pb.RESOURCE_KIND_LICENSE
    REBUILD = pb.RESOURCE_KIND_REBUILD


class Encoding(IntEnum):
    """How a resource is stored, numbered as on the wire."""

    RAW = pb.ENCODING_RAW
    ZSTD = pb.ENCODING_ZSTD


def encoding_of(kind: ResourceKind) -> Encoding:
    """The one encoding each kind has: executables are frames, all else is stored as it is."""
    return Encoding.ZSTD if kind is ResourceKind.PROGRAM else Encoding.RAW


@dataclass(frozen=True, slots=True)
class ResourceFacts:
    """What is signed about one resource. Lengths in bytes; digests of the stored bytes."""

    id: str
    kind: ResourceKind
    index: int
    encoding: Encoding
    stored_nbytes: int
    decoded_nbytes: int
    chunk_sha256: tuple[bytes, ...]
    media_type: str


@dataclass(frozen=True, slots=True)
class WeightFacts:
    """Where a stored tensor lies within its resource; `shape` is logical, outermost first."""

    name: str
    storage: WeightStorage
    shape: tuple[int, ...]
    resource: str
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class BodyFacts:
    """A checked body: its namespace, and its resources and weights by id and name, in order."""

    namespace: str
    resources: Mapping[str, ResourceFacts]
    weights: Mapping[str, WeightFacts]


def parse_body(payload: bytes) -> tuple[pb.CoreBody, BodyFacts]:
    """The body in an envelope's payload and its facts, or `CoreError` for the first fault."""
    body = parse(pb.CoreBody, payload, field="body")
    if body.format_version != FORMAT_VERSION:
        raise CoreError(
            "unsupported payload format",
            field="body.format_version",
            value=body.format_version,
            remedy=f"this Helios reads payload format {FORMAT_VERSION}; {_REBUILD} or use a "
            "newer Helios",
        )
    for part in ("publisher", "deployment"):
        _require(body.HasField(part), "is missing", f"body.{part}")
    for part in ("contract", "manifest"):
        _require(body.deployment.HasField(part), "is missing", f"body.deployment.{part}")
    namespace = check_namespace(body.publisher.namespace, field="body.publisher.namespace")
    resources = _resources(body.resources)
    weights = _weights(body.deployment.manifest.weights, resources)
    _check_references(body.deployment, resources)
    return body, BodyFacts(namespace, resources, weights)


def _resources(entries: Sequence[pb.Resource]) -> dict[str, ResourceFacts]:
    if len(entries) > MAX_RESOURCES:
        raise CoreError(
            f"a core has at most {MAX_RESOURCES} resources",
            field="body.resources",
            value=len(entries),
        )
    found: dict[str, ResourceFacts] = {}
    for place, entry in enumerate(entries):
        field = f"body.resources[{place}]"
        named = 0 < len(entry.id) <= MAX_ID_CHARACTERS and entry.id.isprintable()
        _require(named, "is not a resource id", f"{field}.id", entry.id)
        _require(entry.id not in found, "is used twice", f"{field}.id", entry.id)
        _require(entry.index == place, f"must be its place, {place}", f"{field}.index", entry.index)
        found[entry.id] = _resource(entry, field)
    return found


def _resource(entry: pb.Resource, field: str) -> ResourceFacts:
    number = int(entry.kind)
    known = number in {kind.value for kind in ResourceKind}
    _require(known, "is not a kind this version knows", f"{field}.kind", number)
    kind = ResourceKind(number)
    _check_stored(entry, kind, field)
    _check_chunks(entry, field)
    return ResourceFacts(
        id=entry.id,
        kind=kind,
        index=entry.index,
        encoding=encoding_of(kind),
        stored_nbytes=entry.stored.nbytes,
        decoded_nbytes=entry.decoded_nbytes,
        chunk_sha256=tuple(entry.chunk_sha256),
        media_type=entry.media_type,
    )


def _check_stored(entry: pb.Resource, kind: ResourceKind, field: str) -> None:
    encoding = int(entry.stored.encoding)
    stored, decoded = entry.stored.nbytes, entry.decoded_nbytes
    _require(
        encoding == encoding_of(kind),
        f"must be {encoding_of(kind).name} for kind {kind.name}",
        f"{field}.stored.encoding",
        encoding,
    )
    _require(stored > 0, "must not be zero", f"{field}.stored.nbytes", stored)
    if encoding == Encoding.RAW:
        _require(
            decoded == stored,
            f"must equal the stored length, {stored}",
            f"{field}.decoded_nbytes",
            decoded,
        )
        return
    frames.check_decoded_nbytes(decoded, field=f"{field}.decoded_nbytes")
    _require(
        stored <= frames.MAX_FRAME_NBYTES,
        f"a frame has at most {frames.MAX_FRAME_NBYTES} bytes",
        f"{field}.stored.nbytes",
        stored,
    )


def _check_chunks(entry: pb.Resource, field: str) -> None:
    _require(
        entry.chunk_nbytes == CHUNK_NBYTES,
        f"must be {CHUNK_NBYTES}",
        f"{field}.chunk_nbytes",
        entry.chunk_nbytes,
    )
    count = chunk_count(entry.stored.nbytes)
    _require(
        len(entry.chunk_sha256) == count,
        f"{entry.stored.nbytes} stored bytes have {count} chunks",
        f"{field}.chunk_sha256",
        len(entry.chunk_sha256),
    )
    for digest in entry.chunk_sha256:
        _require(
            len(digest) == DIGEST_NBYTES,
            f"a SHA-256 has {DIGEST_NBYTES} bytes",
            f"{field}.chunk_sha256",
            len(digest),
        )


def _weights(
    entries: Iterable[manifest_pb2.WeightDescriptor], resources: Mapping[str, ResourceFacts]
) -> dict[str, WeightFacts]:
    known = {storage.value for storage in WeightStorage}
    found: dict[str, WeightFacts] = {}
    for place, entry in enumerate(entries):
        field = f"manifest.weights[{place}]"
        _require(bool(entry.name), "must not be empty", f"{field}.name", entry.name)
        _require(entry.name not in found, "is used twice", f"{field}.name", entry.name)
        storage = int(entry.storage)
        _require(
            storage in known, "is not a storage this version knows", f"{field}.storage", storage
        )
        held = _referred(resources, entry.resource, ResourceKind.WEIGHTS, f"{field}.resource")
        _require(entry.nbytes > 0, "must not be zero", f"{field}.nbytes", entry.nbytes)
        _require(
            entry.offset + entry.nbytes <= held.stored_nbytes,
            f"reaches past the {held.stored_nbytes} bytes of resource {held.id}",
            field,
            entry.offset + entry.nbytes,
        )
        found[entry.name] = WeightFacts(
            name=entry.name,
            storage=WeightStorage(storage),
            shape=tuple(entry.shape),
            resource=entry.resource,
            offset=entry.offset,
            nbytes=entry.nbytes,
        )
    return found


def _check_references(
    deployment: pb.DeploymentBody, resources: Mapping[str, ResourceFacts]
) -> None:
    manifest, model = deployment.manifest, deployment.contract.model
    catalogs = (("programs", manifest.programs), ("tuning", manifest.tuning))
    for catalog, entries in catalogs:
        for place, program in enumerate(entries):
            field = f"manifest.{catalog}[{place}].resource"
            _referred(resources, program.resource, ResourceKind.PROGRAM, field)
    for place, graph in enumerate(model.graphs):
        for name in graph.resources:
            field = f"contract.model.graphs[{place}].resources"
            _referred(resources, name, ResourceKind.PROGRAM, field)
    frontend = model.frontend
    for name, kind, part in (
        (frontend.tokenizer_resource, ResourceKind.TOKENIZER, "tokenizer_resource"),
        (frontend.template_resource, ResourceKind.TEMPLATE, "template_resource"),
    ):
        if name:
            _referred(resources, name, kind, f"contract.model.frontend.{part}")


def _referred(
    resources: Mapping[str, ResourceFacts], name: str, kind: ResourceKind, field: str
) -> ResourceFacts:
    facts = resources.get(name)
    if facts is None or facts.kind is not kind:
        raise CoreError(
            f"names no resource of kind {kind.name}", field=field, value=name, remedy=_REBUILD
        )
    return facts


def _require(holds: bool, message: str, field: str, value: object = None) -> None:
    if not holds:
        raise CoreError(message, field=field, value=value, remedy=_REBUILD)
