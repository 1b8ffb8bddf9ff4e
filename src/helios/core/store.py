"""Logical stores: resources by id, verified, whatever carries them.

A payload core, format 2, keeps each resource as stored bytes under chunk commitments. Other
carriers, such as cores whose resources are encrypted chunks, can be added as further stores; what
uses a core sees only `CoreStore`.
"""

import mmap
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from itertools import islice
from threading import Lock
from typing import Protocol

from helios.core import frames
from helios.core.body import Encoding, ResourceFacts, ResourceKind
from helios.core.chunks import Progress, VerifiedBytes, check_chunk, chunk_span
from helios.core.files import CoreFolder
from helios.core.locations import Placed
from helios.errors import CoreError

_WORKERS = 4
_JOB_CHUNKS = 4
_AHEAD_WORKERS = 2


class CoreStore(Protocol):
    """Verified access to the resources of one core. Any thread may call any method."""

    @property
    def mapped_nbytes(self) -> int:
        """Bytes of weights that are used from mapped files."""

    @property
    def copied_nbytes(self) -> int:
        """Bytes of weights that are used from private memory."""

    @property
    def copy_reason(self) -> str:
        """Why weights are copied, or empty."""

    def read(self, resource: str) -> bytes:
        """A whole resource other than weights, verified and decoded."""

    def view(self, resource: str, offset: int, nbytes: int) -> memoryview:
        """Read-only bytes of a weights resource, verified before this returns."""

    def verify(self, progress: Progress | None = None) -> None:
        """Check every byte; weights become ready for use."""

    def verify_ahead(self) -> None:
        """Start checking mapped weights in threads, so that using them waits less."""

    def audit(self, progress: Progress | None = None) -> None:
        """Check every byte and keep none."""

    def close(self) -> None:
        """Release files. Views already handed out stay valid."""


class PayloadStore:
    """The resources of a payload core, in the core's file and files beside it."""

    def __init__(self, folder: CoreFolder, placed: Mapping[str, Placed]) -> None:
        self._folder = folder
        self._placed = placed
        self._weights: dict[str, VerifiedBytes] = {}
        self._lock = Lock()
        self._closed = False
        self._ahead: ThreadPoolExecutor | None = None

    @property
    def mapped_nbytes(self) -> int:
        """Bytes of weights that are used from mapped files."""
        return self._weight_nbytes(copied=False)

    @property
    def copied_nbytes(self) -> int:
        """Bytes of weights that are used from private memory."""
        return self._weight_nbytes(copied=True)

    @property
    def copy_reason(self) -> str:
        """Why weights are copied, or empty."""
        for placed in self._placed.values():
            if placed.facts.kind is ResourceKind.WEIGHTS and placed.file.copy_reason:
                return f"{placed.file.name}: {placed.file.copy_reason}"
        return ""

    def read(self, resource: str) -> bytes:
        """A whole resource other than weights, verified and decoded."""
        placed = self._find(resource)
        facts = placed.facts
        if facts.kind is ResourceKind.WEIGHTS:
            raise CoreError(
                "weights are read by name, not as a whole",
                field=f"resource {resource}",
                remedy="use weight()",
            )
        chunks = [_read_chunk(placed, index) for index in range(len(facts.chunk_sha256))]
        stored = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if facts.encoding is Encoding.RAW:
            return stored
        return frames.decode(stored, facts.decoded_nbytes, field=f"resource {resource}")

    def view(self, resource: str, offset: int, nbytes: int) -> memoryview:
        """Read-only bytes of a weights resource, verified before this returns."""
        return self._weights_of(self._find(resource)).view(offset, nbytes)

    def verify(self, progress: Progress | None = None) -> None:
        """Check every byte; weights become ready for use."""
        self._check_all(self._verify_chunk, progress)

    def verify_ahead(self) -> None:
        """Start checking mapped weights in threads, so that using them waits less."""
        if self._ahead is None:
            self._ahead = ThreadPoolExecutor(_AHEAD_WORKERS, thread_name_prefix="helios-verify")
            for placed in self._placed.values():
                # A copy takes memory, which nobody has planned for yet.
                if placed.facts.kind is ResourceKind.WEIGHTS and not placed.file.copy_reason:
                    weights = self._weights_of(self._find(placed.facts.id))
                    for index in range(len(placed.facts.chunk_sha256)):
                        self._ahead.submit(weights.verify, index)

    def audit(self, progress: Progress | None = None) -> None:
        """Check every byte and keep none."""
        self._check_all(_audit_chunk, progress)

    def close(self) -> None:
        """Release files. Views already handed out stay valid."""
        self._closed = True
        if self._ahead is not None:
            self._ahead.shutdown(cancel_futures=True)
        self._weights.clear()
        self._folder.close()

    def _find(self, resource: str) -> Placed:
        if self._closed:
            raise CoreError("the core is closed", field=f"resource {resource}")
        placed = self._placed.get(resource)
        if placed is None:
            raise CoreError("this core has no such resource", field="resource", value=resource)
        return placed

    def _weights_of(self, placed: Placed) -> VerifiedBytes:
        with self._lock:
            name = placed.facts.id
            if name not in self._weights:
                self._weights[name] = _open_weights(placed)
            return self._weights[name]

    def _weight_nbytes(self, *, copied: bool) -> int:
        return sum(
            placed.facts.stored_nbytes
            for placed in self._placed.values()
            if placed.facts.kind is ResourceKind.WEIGHTS and bool(placed.file.copy_reason) is copied
        )

    def _verify_chunk(self, placed: Placed, index: int) -> None:
        if placed.facts.kind is ResourceKind.WEIGHTS:
            self._weights_of(placed).verify(index)
        else:
            _audit_chunk(placed, index)

    def _check_all(self, check: Callable[[Placed, int], None], progress: Progress | None) -> None:
        for facts in self._facts():
            self._find(facts.id)
        _in_parallel(check, self._placed.values(), progress)
        for facts in self._facts():
            if facts.encoding is Encoding.ZSTD:
                self.read(facts.id)

    def _facts(self) -> Iterator[ResourceFacts]:
        return (placed.facts for placed in self._placed.values())


def _open_weights(placed: Placed) -> VerifiedBytes:
    facts, file = placed.facts, placed.file
    if not file.copy_reason:
        mapped = file.map(placed.offset, facts.stored_nbytes)
        return VerifiedBytes(facts.id, facts.chunk_sha256, mapped)

    def fill(offset: int, view: memoryview) -> None:
        file.read_into(placed.offset + offset, view)

    memory = _private_memory(facts)
    return VerifiedBytes(facts.id, facts.chunk_sha256, memory, fill)


def _private_memory(facts: ResourceFacts) -> memoryview:
    """Zeroed, page-aligned memory that takes room only as it is filled."""
    try:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        return memoryview(mmap.mmap(-1, facts.stored_nbytes, flags=flags))
    except (OSError, ValueError, OverflowError, MemoryError) as error:
        raise CoreError(
            f"no memory to copy it into: {error}",
            field=f"resource {facts.id}",
            value=facts.stored_nbytes,
            remedy="make the core's file writable by its owner alone, so that it is mapped",
        ) from error


def _read_chunk(placed: Placed, index: int) -> bytes:
    offset, nbytes = chunk_span(index, placed.facts.stored_nbytes)
    data = placed.file.read(placed.offset + offset, nbytes)
    check_chunk(placed.facts.id, index, data, placed.facts.chunk_sha256[index])
    return data


def _audit_chunk(placed: Placed, index: int) -> None:
    _read_chunk(placed, index)


def _in_parallel(
    check: Callable[[Placed, int], None],
    resources: Iterable[Placed],
    progress: Progress | None,
) -> None:
    """Run `check` over every chunk; report (bytes checked, bytes in all) from this thread."""
    placed = list(resources)
    total = sum(entry.facts.stored_nbytes for entry in placed)

    def run(job: list[tuple[Placed, int]]) -> int:
        for entry, index in job:
            check(entry, index)
        return sum(chunk_span(index, entry.facts.stored_nbytes)[1] for entry, index in job)

    done = 0
    with ThreadPoolExecutor(_WORKERS, thread_name_prefix="helios-verify") as pool:
        futures: list[Future[int]] = [pool.submit(run, job) for job in _jobs(placed)]
        try:
            for future in as_completed(futures):
                done += future.result()
                if progress is not None:
                    progress(done, total)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _jobs(placed: Iterable[Placed]) -> Iterator[list[tuple[Placed, int]]]:
    chunks = ((entry, i) for entry in placed for i in range(len(entry.facts.chunk_sha256)))
    while job := list(islice(chunks, _JOB_CHUNKS)):
        yield job
