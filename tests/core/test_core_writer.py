import errno
import os
import resource as limits
import stat
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from making_cores import NAMESPACE, contents, manifest, read_everything, resources, write_small

from helios.core import writer
from helios.core.body import ResourceKind
from helios.core.chunks import CHUNK_NBYTES
from helios.core.keys import SigningKey
from helios.core.reader import Core, authenticate, authorize, inspect
from helios.core.trust import TrustStore
from helios.core.writer import ResourceInput
from helios.errors import CoreError, HeliosError
from helios.schema import core_pb2, manifest_pb2


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def replaced(**fields: object) -> list[ResourceInput]:
    """The small core's resources with the weights changed."""
    weights = {"id": "weights", "kind": ResourceKind.WEIGHTS, **fields}
    return [ResourceInput(**weights) if r.id == "weights" else r for r in resources()]  # type: ignore[arg-type]


def test_the_summary_is_true(core_path: Path, key: SigningKey) -> None:
    summary = write_small(core_path, key)
    found = inspect(core_path)
    assert summary.path == core_path
    assert summary.nbytes == core_path.stat().st_size
    assert summary.digest == found.digest
    assert summary.resources == len(found.resources) == 6
    assert (summary.namespace, summary.key_id) == (NAMESPACE, key.id)


def test_the_same_input_gives_the_same_file(core_path: Path, key: SigningKey) -> None:
    before = core_path.read_bytes()
    write_small(core_path, key)
    assert core_path.read_bytes() == before


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077])
def test_the_file_can_be_mapped_under_any_umask(
    core_path: Path, key: SigningKey, umask: int
) -> None:
    before = os.umask(umask)
    try:
        write_small(core_path, key)
    finally:
        os.umask(before)
    assert stat.S_IMODE(core_path.stat().st_mode) == 0o644 & ~umask


def test_progress_counts_stored_bytes(core_path: Path, key: SigningKey) -> None:
    steps: list[tuple[int, int]] = []
    write_small(core_path, key, progress=lambda done, total: steps.append((done, total)))
    total = sum(facts.stored_nbytes for facts in inspect(core_path).resources)
    assert steps[-1] == (total, total)
    assert steps == sorted(steps)


# ---- large weights -----------------------------------------------------------------------------

LARGE = 2 * CHUNK_NBYTES + 12_345


def large(sizes: list[int]) -> tuple[list[ResourceInput], manifest_pb2.ExecutionManifest, bytes]:
    data = np.random.default_rng(5).bytes(LARGE)

    def pieces() -> Iterator[memoryview]:
        at = 0
        while at < LARGE:
            for size in sizes:
                yield memoryview(data)[at : at + size]
                at += size

    catalog = manifest()
    del catalog.weights[:]
    for index, offset in enumerate(range(0, LARGE - 4, 3_000_000)):
        nbytes = min(3_000_000, (LARGE - offset) // 4 * 4)
        catalog.weights.add(
            name=f"w{index}",
            storage=manifest_pb2.WEIGHT_STORAGE_F32,
            shape=[nbytes // 4],
            resource="weights",
            offset=offset,
            nbytes=nbytes,
        )
    return replaced(chunks=pieces, nbytes=LARGE), catalog, data


@pytest.mark.parametrize("sizes", [[LARGE], [1 << 20], [CHUNK_NBYTES, 1, 999_999]])
def test_weights_of_several_chunks(
    core_path: Path, key: SigningKey, trust: TrustStore, sizes: list[int]
) -> None:
    inputs, catalog, data = large(sizes)
    write_small(core_path, key, resources=inputs, manifest=catalog)
    with authorize(authenticate(core_path, trust), NAMESPACE) as core:
        for facts in catalog.weights:
            stored = core.weight(facts.name).data
            assert stored == data[facts.offset : facts.offset + facts.nbytes]


@pytest.mark.parametrize("mode", [0o644, 0o666])
def test_only_tensors_in_a_damaged_chunk_are_lost(
    core_path: Path, key: SigningKey, trust: TrustStore, mode: int
) -> None:
    inputs, catalog, data = large([1 << 20])
    write_small(core_path, key, resources=inputs, manifest=catalog)
    core_path.chmod(mode)
    start = core_path.read_bytes().index(data[:64])
    with core_path.open("r+b") as file:
        file.seek(start + CHUNK_NBYTES)  # the first byte of chunk 1
        file.write(bytes([data[CHUNK_NBYTES] ^ 0x80]))
    core = authorize(authenticate(core_path, trust), NAMESPACE)
    assert core.weight("w0").data == data[:3_000_000]  # chunk 0
    for name in ("w1", "w2"):  # chunks 0 to 1, chunks 1 to 2
        with pytest.raises(CoreError, match="resource weights: chunk 1 does not"):
            core.weight(name)
    with pytest.raises(CoreError, match="chunk 1"):
        core.verify_all()
    assert core.weight("w0").data == data[:3_000_000]


def test_streaming_takes_little_memory(core_path: Path, key: SigningKey) -> None:
    total = 16 * CHUNK_NBYTES

    def pieces() -> Iterator[bytes]:
        for _ in range(total >> 20):
            yield bytes(1 << 20)

    catalog = manifest()
    tracemalloc.start()
    write_small(core_path, key, resources=replaced(chunks=pieces, nbytes=total), manifest=catalog)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20


# ---- refused before a byte is written ----------------------------------------------------------


def unsourced() -> Iterator[bytes]:
    raise AssertionError("nothing may be asked of a source before the facts are checked")


def weights_outside() -> manifest_pb2.ExecutionManifest:
    catalog = manifest()
    catalog.weights[3].nbytes += 4
    return catalog


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resources": [*resources(), resources()[2]]}, r"resources\[6\].id: is used twice"),
        ({"resources": replaced(chunks=unsourced, nbytes=1279)}, "reaches past the 1279 bytes"),
        ({"resources": replaced(chunks=unsourced, nbytes=0)}, "nbytes: must not be zero"),
        ({"resources": replaced(chunks=unsourced)}, "chunks need their total length"),
        ({"resources": replaced()}, "needs either data or chunks"),
        ({"resources": replaced(data=b"a", chunks=unsourced)}, "needs either data or chunks"),
        ({"resources": replaced(data=b"ab", nbytes=3)}, r"has 2 bytes \(got 3"),
        ({"resources": replaced(data=b"")}, "nbytes: must not be zero"),
        ({"resources": replaced(data=b"a", kind=99)}, r"is not a resource kind \(got 99"),
        ({"resources": replaced(kind=1, chunks=unsourced, nbytes=3)}, "given as data"),
        ({"resources": replaced(kind=1, data=b"")}, "an executable has 1 to"),
        ({"resources": resources()[1:]}, "names no resource of kind PROGRAM"),
        ({"manifest": weights_outside()}, "reaches past the 1280 bytes of resource weights"),
        ({"publisher": core_pb2.Publisher()}, "not a publisher namespace"),
    ],
)
def test_what_no_reader_would_take_is_not_written(
    tmp_path: Path, key: SigningKey, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(HeliosError, match=message):
        write_small(tmp_path / "bad.core", key, **changes)
    assert names(tmp_path) == []


def test_a_head_that_would_not_fit(
    tmp_path: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MAX_ENVELOPE_NBYTES", 500)
    with pytest.raises(CoreError, match="the envelope may have at most 500 bytes"):
        write_small(tmp_path / "big.core", key)
    assert names(tmp_path) == []


# ---- failures on the way -----------------------------------------------------------------------


def source(*pieces: bytes, failure: BaseException | None = None) -> Callable[[], Iterator[bytes]]:
    def run() -> Iterator[bytes]:
        yield from pieces
        if failure is not None:
            raise failure

    return run


@pytest.mark.parametrize(
    ("chunks", "error"),
    [
        (source(bytes(1279)), CoreError),
        (source(bytes(1280), b"x"), CoreError),
        (source(bytes(5000)), CoreError),
        (source(bytes(100), failure=KeyboardInterrupt()), KeyboardInterrupt),
        (source(bytes(100), failure=OSError(errno.EIO, "source went away")), OSError),
    ],
)
def test_a_failing_source_leaves_the_old_core(
    core_path: Path,
    key: SigningKey,
    chunks: Callable[[], Iterator[bytes]],
    error: type[BaseException],
) -> None:
    before = core_path.read_bytes()
    with pytest.raises(error):
        write_small(core_path, key, resources=replaced(chunks=chunks, nbytes=1280))
    assert core_path.read_bytes() == before
    assert names(core_path.parent) == [core_path.name]


def test_the_length_of_a_source_is_held_to(core_path: Path, key: SigningKey) -> None:
    for nbytes, word in ((1279, "fewer"), (1281, "more")):
        with pytest.raises(CoreError, match=f"resource weights.nbytes: its source gave {word}"):
            write_small(
                core_path, key, resources=replaced(chunks=source(bytes(nbytes)), nbytes=1280)
            )


def test_a_full_disk_leaves_nothing(tmp_path: Path, key: SigningKey) -> None:
    # The system refuses bytes past this limit as it does on a full disk.
    soft, hard = limits.getrlimit(limits.RLIMIT_FSIZE)
    for most in (100, 5000, 20_000):
        limits.setrlimit(limits.RLIMIT_FSIZE, (most, hard))
        try:
            with pytest.raises(CoreError, match=r"can't be written.*free some space"):
                write_small(tmp_path / "a.core", key)
        finally:
            limits.setrlimit(limits.RLIMIT_FSIZE, (soft, hard))
        assert names(tmp_path) == []


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failure_at_the_very_end_leaves_nothing(
    tmp_path: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(CoreError, match=r"No space left on device.*free some space"):
        write_small(tmp_path / "a.core", key)
    assert names(tmp_path) == []


def test_places_that_cannot_be_written(tmp_path: Path, key: SigningKey) -> None:
    with pytest.raises(CoreError, match="No such file or directory"):
        write_small(tmp_path / "missing" / "a.core", key)
    (tmp_path / "folder").mkdir()
    with pytest.raises(CoreError, match="is a folder"):
        write_small(tmp_path / "folder", key)
    assert names(tmp_path) == ["folder"]


def test_a_core_in_use_may_be_replaced(core_path: Path, key: SigningKey, trust: TrustStore) -> None:
    with authorize(authenticate(core_path, trust), NAMESPACE) as old:
        held: Core = old
        write_small(
            core_path,
            key,
            resources=replaced(data=bytes(1280)),
        )
        before = contents(held)
    after = read_everything(core_path, trust)
    assert before["weight rest"] != after["weight rest"]
    assert before["programs"] == after["programs"]
