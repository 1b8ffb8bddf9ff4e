import hashlib
import threading
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.core import chunks
from helios.core.chunks import CHUNK_NBYTES, ChunkHasher, VerifiedBytes, chunk_count, chunk_span
from helios.errors import CoreError


@pytest.mark.parametrize(
    ("nbytes", "count"),
    [
        (1, 1),
        (CHUNK_NBYTES - 1, 1),
        (CHUNK_NBYTES, 1),
        (CHUNK_NBYTES + 1, 2),
        (3 * CHUNK_NBYTES, 3),
        ((1 << 64) - 1, 1 << 42),
    ],
)
def test_counts_and_spans(nbytes: int, count: int) -> None:
    assert chunk_count(nbytes) == count
    offset, length = chunk_span(count - 1, nbytes)
    assert offset + length == nbytes
    assert 1 <= length <= CHUNK_NBYTES


@pytest.fixture
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(chunks, "CHUNK_NBYTES", 10)
    return 10


@settings(derandomize=True, max_examples=80, deadline=None)
@given(st.lists(st.binary(max_size=35), max_size=12))
def test_pieces_of_any_size_give_the_same_digests(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    expected = [hashlib.sha256(whole[i : i + 10]).digest() for i in range(0, len(whole), 10)]
    before, chunks.CHUNK_NBYTES = chunks.CHUNK_NBYTES, 10
    try:
        hasher = ChunkHasher()
        for piece in pieces:
            hasher.update(memoryview(piece))
        assert hasher.finish() == expected
    finally:
        chunks.CHUNK_NBYTES = before


def digests(data: bytes, size: int) -> list[bytes]:
    return [hashlib.sha256(data[i : i + size]).digest() for i in range(0, len(data), size)]


DATA = bytes(range(95))


def test_only_the_chunks_of_a_view_are_checked(short_chunks: int) -> None:
    damaged = bytearray(DATA)
    damaged[45] ^= 1  # chunk 4
    held = VerifiedBytes("w", digests(DATA, short_chunks), memoryview(damaged))
    assert held.view(0, 40) == DATA[:40]
    assert held.view(50, 45) == DATA[50:]
    for offset, nbytes in ((39, 2), (45, 1), (49, 2), (0, 95)):
        with pytest.raises(CoreError, match="resource w: chunk 4 does not have"):
            held.view(offset, nbytes)
    damaged[45] ^= 1
    assert held.view(0, 95) == DATA


def test_views_are_read_only(short_chunks: int) -> None:
    held = VerifiedBytes("w", digests(DATA, short_chunks), memoryview(bytearray(DATA)))
    assert held.view(3, 4).readonly


def test_each_chunk_is_filled_and_hashed_once_whoever_asks(short_chunks: int) -> None:
    memory, filled, lock = memoryview(bytearray(95)), [0] * 10, threading.Lock()

    def fill(offset: int, view: memoryview) -> None:
        with lock:
            filled[offset // 10] += 1
        view[:] = DATA[offset : offset + len(view)]

    held = VerifiedBytes("w", digests(DATA, short_chunks), memory, fill)
    gate, wrong = threading.Barrier(8), []

    def ask(start: int) -> None:
        gate.wait()
        for step in range(95):
            at = (start + step) % 90
            if held.view(at, 5) != DATA[at : at + 5]:
                wrong.append(at)

    threads = [threading.Thread(target=ask, args=(11 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert filled == [1] * 10


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    outcome: list[object] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, outcome


def test_waiters_share_a_failure_and_a_later_try_starts_anew(short_chunks: int) -> None:
    entered, release, tries = threading.Event(), threading.Event(), []

    def fill(offset: int, view: memoryview) -> None:
        tries.append(offset)
        if len(tries) == 1:
            entered.set()
            release.wait(10)
            raise CoreError("the disk failed")
        view[:] = DATA[offset : offset + len(view)]

    held = VerifiedBytes("w", digests(DATA, short_chunks), memoryview(bytearray(95)), fill)
    first, one = in_thread(lambda: held.verify(0))
    entered.wait(10)
    second, two = in_thread(lambda: held.verify(0))
    release.set()
    first.join()
    second.join()
    assert isinstance(one[0], CoreError)
    # The second thread either waited for the first's failure or came after it and succeeded.
    assert two[0] is one[0] or two[0] is None
    assert held.view(0, 10) == DATA[:10]
    assert len(tries) == 2
