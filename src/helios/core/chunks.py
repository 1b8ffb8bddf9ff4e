"""Chunk commitments: the SHA-256 of every 4 MiB of a resource's stored bytes.

What is hashed is what is used. Bytes that are copied are hashed in the memory they were copied
to; bytes that are mapped come from files that nobody else can write (see `files`).
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from hashlib import sha256
from threading import Lock

from helios.errors import CoreError

CHUNK_NBYTES = 4 << 20
DIGEST_NBYTES = 32

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all); the first never falls, and ends at the second."""


def chunk_count(nbytes: int) -> int:
    """Chunks of a resource of `nbytes` stored bytes: the last may be short, none is empty."""
    return -(-nbytes // CHUNK_NBYTES)


def chunk_span(index: int, nbytes: int) -> tuple[int, int]:
    """The offset and length of chunk `index` of a resource of `nbytes` stored bytes."""
    offset = index * CHUNK_NBYTES
    return offset, min(CHUNK_NBYTES, nbytes - offset)


def check_chunk(resource: str, index: int, data: bytes | memoryview, expected: bytes) -> None:
    """Refuse `data` unless its SHA-256 is the signed one."""
    if sha256(data).digest() != expected:
        raise CoreError(
            f"chunk {index} does not have the signed SHA-256",
            field=f"resource {resource}",
            remedy="the core is damaged or was changed; prepare or copy it again",
        )


class ChunkHasher:
    """Commitments over bytes that arrive in pieces of any size."""

    def __init__(self) -> None:
        self._digests: list[bytes] = []
        self._current = sha256()
        self._filled = 0

    def update(self, piece: memoryview) -> None:
        """Hash the next bytes."""
        while len(piece):
            part = piece[: CHUNK_NBYTES - self._filled]
            self._current.update(part)
            self._filled += len(part)
            piece = piece[len(part) :]
            if self._filled == CHUNK_NBYTES:
                self._close()

    def finish(self) -> list[bytes]:
        """The digests of all chunks, in order."""
        if self._filled:
            self._close()
        return self._digests

    def _close(self) -> None:
        self._digests.append(self._current.digest())
        self._current = sha256()
        self._filled = 0


class VerifiedBytes:
    """A resource's stored bytes in memory, each chunk checked once, before its first use.

    `buffer` is mapped, or is private memory that `fill` copies a range into: `fill(offset,
    view)`. Any number of threads may ask; a chunk that one of them is checking makes the others
    that want it wait. Views keep the memory alive.
    """

    def __init__(
        self,
        resource: str,
        digests: Sequence[bytes],
        buffer: memoryview,
        fill: Callable[[int, memoryview], None] | None = None,
    ) -> None:
        self._resource = resource
        self._digests = digests
        self._buffer = buffer
        self._fill = fill
        self._lock = Lock()
        self._verified = bytearray(len(digests))
        self._claims: dict[int, Future[None]] = {}

    def view(self, offset: int, nbytes: int) -> memoryview:
        """Read-only bytes `offset` to `offset + nbytes` (not empty), verified."""
        for index in range(offset // CHUNK_NBYTES, chunk_count(offset + nbytes)):
            self.verify(index)
        return self._buffer[offset : offset + nbytes].toreadonly()

    def verify(self, index: int) -> None:
        """Check one chunk, unless that was done before."""
        with self._lock:
            if self._verified[index]:
                return
            claim = self._claims.get(index)
            mine = claim is None
            if claim is None:
                claim = self._claims[index] = Future()
        if mine:
            self._settle(index, claim)
        else:
            claim.result()

    def _settle(self, index: int, claim: Future[None]) -> None:
        try:
            offset, nbytes = chunk_span(index, len(self._buffer))
            view = self._buffer[offset : offset + nbytes]
            if self._fill is not None:
                self._fill(offset, view)
            check_chunk(self._resource, index, view, self._digests[index])
        except BaseException as error:
            # The chunk stays unverified: whoever asks next checks it again.
            self._release(index)
            claim.set_exception(error)
            raise
        self._verified[index] = 1
        self._release(index)
        claim.set_result(None)

    def _release(self, index: int) -> None:
        with self._lock:
            del self._claims[index]
