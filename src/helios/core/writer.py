"""Writing cores: streamed once, hashed as written, signed last, and there at once or not at all.

Weights of many gigabytes pass through a buffer's worth of memory. The head comes first in the
file but is known last; it fits because a body's size does not depend on what its digests are.
"""

import errno
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from io import FileIO
from pathlib import Path

from helios.core import frames
from helios.core.body import (
    FORMAT_VERSION,
    Encoding,
    ResourceKind,
    encoding_of,
    parse_body,
)
from helios.core.chunks import CHUNK_NBYTES, DIGEST_NBYTES, ChunkHasher, Progress, chunk_count
from helios.core.envelope import seal, sealed_nbytes
from helios.core.keys import SigningKey
from helios.core.layout import MAX_ENVELOPE_NBYTES, MAX_LOCATIONS_NBYTES, Head, place
from helios.errors import CoreError
from helios.records import dataclass
from helios.schema import contract_pb2, core_pb2, manifest_pb2

Chunks = Callable[[], Iterator[bytes | bytearray | memoryview]]


@dataclass(frozen=True, slots=True)
class ResourceInput:
    """A resource to write: either `data`, or `chunks`, which yields its `nbytes` bytes.

    `chunks` may yield pieces of any size; each is hashed and written before the next is asked
    for. Programs are given decoded, as `data`; the writer makes the frame.
    """

    id: str
    kind: int
    data: bytes | None = None
    chunks: Chunks | None = None
    nbytes: int | None = None
    media_type: str = ""


@dataclass(frozen=True, slots=True)
class CoreSummary:
    """What was written: sizes in bytes, the SHA-256 of the signed payload in hex."""

    path: Path
    nbytes: int
    head_nbytes: int
    resources: int
    namespace: str
    key_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class _Stored:
    """A resource in the form in which it is stored."""

    id: str
    kind: ResourceKind
    chunks: Chunks
    nbytes: int
    decoded_nbytes: int
    media_type: str


def write_core(
    path: str | os.PathLike[str],
    *,
    publisher: core_pb2.Publisher,
    contract: contract_pb2.ServingContract,
    manifest: manifest_pb2.ExecutionManifest,
    resources: Sequence[ResourceInput],
    provenance: core_pb2.Provenance,
    key: SigningKey,
    progress: Progress | None = None,
) -> CoreSummary:
    """Write and sign a core at `path`, replacing a file there only once the new one is whole.

    The manifest's weight descriptors name resources of this call and ranges within them. All
    facts are checked before a byte is written; a failure or interruption leaves nothing behind.
    `progress(bytes written, bytes in all)` counts stored resource bytes.
    """
    stored = [_stored(entry) for entry in resources]
    path = Path(path)
    body = core_pb2.CoreBody(
        format_version=FORMAT_VERSION,
        publisher=publisher,
        deployment=core_pb2.DeploymentBody(contract=contract, manifest=manifest),
        resources=[_describe(index, entry) for index, entry in enumerate(stored)],
        provenance=provenance,
    )
    draft = body.SerializeToString()
    parse_body(draft)
    envelope_nbytes = sealed_nbytes(draft, key)
    locations = place(envelope_nbytes, [(entry.id, entry.nbytes) for entry in stored])
    head = Head(envelope_nbytes, locations.ByteSize())
    _check_head(head)

    with _replacing(path) as file:
        _write_resources(file, path, body, stored, locations, progress)
        payload = body.SerializeToString()
        envelope = seal(payload, key).SerializeToString()
        with _disk(path):
            file.seek(0)
            _write(file, memoryview(head.pack() + envelope + locations.SerializeToString()))
            nbytes = file.seek(0, os.SEEK_END)
    return CoreSummary(
        path=path,
        nbytes=nbytes,
        head_nbytes=head.end,
        resources=len(stored),
        namespace=publisher.namespace,
        key_id=key.id,
        digest=sha256(payload).hexdigest(),
    )


def _stored(entry: ResourceInput) -> _Stored:
    """The resource in its stored form; frames are made here, everything else as it is read."""
    field = f"resource {entry.id}"
    if entry.kind not in set(ResourceKind):
        raise CoreError("is not a resource kind", field=f"{field}.kind", value=entry.kind)
    if (entry.data is None) == (entry.chunks is None):
        raise CoreError("needs either data or chunks", field=field)
    kind = ResourceKind(entry.kind)
    if entry.data is None:
        return _streamed(entry, kind, field)
    if entry.nbytes not in (None, len(entry.data)):
        raise CoreError(f"has {len(entry.data)} bytes", field=f"{field}.nbytes", value=entry.nbytes)
    data = entry.data
    if encoding_of(kind) is Encoding.ZSTD:
        data = frames.encode(data, field=field)
    return _Stored(
        entry.id, kind, lambda: iter((data,)), len(data), len(entry.data), entry.media_type
    )


def _streamed(entry: ResourceInput, kind: ResourceKind, field: str) -> _Stored:
    if encoding_of(kind) is Encoding.ZSTD:
        raise CoreError("an executable is given as data, not as chunks", field=field)
    if entry.chunks is None or entry.nbytes is None:
        raise CoreError("chunks need their total length", field=f"{field}.nbytes")
    return _Stored(entry.id, kind, entry.chunks, entry.nbytes, entry.nbytes, entry.media_type)


def _describe(index: int, entry: _Stored) -> core_pb2.Resource:
    """The resource's signed facts, with digests of the right size and no meaning yet."""
    return core_pb2.Resource(
        id=entry.id,
        kind=entry.kind.value,
        index=index,
        stored=core_pb2.Stored(nbytes=entry.nbytes, encoding=encoding_of(entry.kind).value),
        decoded_nbytes=entry.decoded_nbytes,
        chunk_nbytes=CHUNK_NBYTES,
        chunk_sha256=[bytes(DIGEST_NBYTES)] * chunk_count(entry.nbytes),
        media_type=entry.media_type,
    )


def _check_head(head: Head) -> None:
    for name, nbytes, limit in (
        ("envelope", head.envelope_nbytes, MAX_ENVELOPE_NBYTES),
        ("location set", head.locations_nbytes, MAX_LOCATIONS_NBYTES),
    ):
        if nbytes > limit:
            raise CoreError(
                f"the {name} may have at most {limit} bytes",
                field=name,
                value=nbytes,
                remedy="put more tensors into fewer resources",
            )


def _write_resources(
    file: FileIO,
    path: Path,
    body: core_pb2.CoreBody,
    stored: Sequence[_Stored],
    locations: core_pb2.LocationSet,
    progress: Progress | None,
) -> None:
    """Write every resource at its location and put its digests into `body`."""
    done, total = 0, sum(entry.nbytes for entry in stored)
    for entry, facts, location in zip(stored, body.resources, locations.locations, strict=True):
        file.seek(location.offset)
        hasher = ChunkHasher()
        for piece in _exactly(entry):
            with _disk(path):
                _write(file, piece)
            hasher.update(piece)
            done += len(piece)
            if progress is not None:
                progress(done, total)
        facts.chunk_sha256[:] = hasher.finish()


def _exactly(entry: _Stored) -> Iterator[memoryview]:
    """The resource's pieces, which must have the promised length together."""
    left = entry.nbytes
    for piece in entry.chunks():
        view = memoryview(piece).cast("B")
        left -= len(view)
        if left < 0:
            break
        yield view
    if left:
        raise CoreError(
            f"its source gave {'more' if left < 0 else 'fewer'} than the promised bytes",
            field=f"resource {entry.id}.nbytes",
            value=entry.nbytes,
        )


@contextmanager
def _replacing(path: Path) -> Iterator[FileIO]:
    """A new file beside `path` that takes its place when the block ends well, else vanishes."""
    if path.is_dir():
        raise CoreError("is a folder", field=str(path), remedy="name the file to write")
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with _disk(path):
        # Writable by its owner alone, whatever the umask: readers map such files.
        descriptor = os.open(scratch, flags, 0o644)
    try:
        with FileIO(descriptor, "w") as file:
            yield file
            with _disk(path):
                os.fsync(descriptor)
        with _disk(path):
            os.replace(scratch, path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(file: FileIO, data: memoryview) -> None:
    while len(data):
        data = data[file.write(data) :]


@contextmanager
def _disk(path: Path) -> Iterator[None]:
    """Report what goes wrong with the disk as a fault of writing `path`."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        raise CoreError(
            f"the core can't be written: {error.strerror}",
            field=str(path),
            remedy="free some space or choose another disk"
            if full
            else "choose a folder you may write to",
        ) from error
