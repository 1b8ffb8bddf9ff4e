"""Which files are opened, and which of them are mapped."""

import mmap
import os
from pathlib import Path

import pytest
from making_cores import WEIGHTS, Parts, contents, read_everything

from helios.core import files, reader
from helios.core.files import CoreFolder
from helios.core.keys import SigningKey
from helios.core.trust import TrustStore
from helios.errors import CoreError


def beside(parts: Parts, path: Path, key: SigningKey, name: str, data: bytes | None) -> Path:
    """The core with its weights moved to another file, which is written where data is given."""
    entry = next(e for e in parts.locations.locations if e.resource == "weights")
    entry.file, entry.offset = name, 4096
    if data is not None:
        (path.parent / name).parent.mkdir(exist_ok=True)
        (path.parent / name).write_bytes(bytes(4096) + data)
        (path.parent / name).chmod(0o644)
    # The gap that the weights leave in the core itself must close.
    last = next(e for e in parts.locations.locations if e.resource == "license")
    last.offset -= 4096
    return parts.write(path, key)


def opened(path: Path, trust: TrustStore) -> reader.Core:
    authenticated = reader.authenticate(path, trust)
    return reader.authorize(authenticated, authenticated.namespace)


def test_weights_are_mapped_from_a_file_of_ours(core_path: Path, trust: TrustStore) -> None:
    with opened(core_path, trust) as core:
        assert (core.mapped_nbytes, core.copied_nbytes) == (len(WEIGHTS), 0)
        assert core.copy_reason == ""
        data = core.weight("rest").data
        assert data == WEIGHTS[576:]
        assert data.readonly


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666, 0o622])
def test_weights_of_a_writable_file_are_copied(
    core_path: Path, trust: TrustStore, mode: int
) -> None:
    expected = read_everything(core_path, trust)
    core_path.chmod(mode)
    with opened(core_path, trust) as core:
        assert (core.mapped_nbytes, core.copied_nbytes) == (0, len(WEIGHTS))
        assert "others may write to it" in core.copy_reason
        assert contents(core) == expected
        data = core.weight("rest").data
        assert data.readonly
        # What was hashed is what is used, whatever becomes of the file.
        core_path.write_bytes(bytes(core_path.stat().st_size))
        assert data == WEIGHTS[576:]
        assert core.weight("embed").data == WEIGHTS[:512]


def test_a_copy_of_changed_bytes_is_refused(core_path: Path, trust: TrustStore) -> None:
    core_path.chmod(0o666)
    with opened(core_path, trust) as core:
        place = core_path.read_bytes().index(WEIGHTS)
        with core_path.open("r+b") as file:
            file.seek(place + 600)
            file.write(b"\0")
        with pytest.raises(CoreError, match="resource weights: chunk 0 does not have the signed"):
            core.weight("embed")


@pytest.mark.parametrize(
    ("mode", "copied"),
    [(0o755, False), (0o775, True), (0o757, True), (0o777, True), (0o1777, False)],
)
def test_the_folder_counts_unless_it_is_sticky(
    core_path: Path, trust: TrustStore, mode: int, copied: bool
) -> None:
    core_path.parent.chmod(mode)
    with opened(core_path, trust) as core:
        assert bool(core.copied_nbytes) is copied
        assert ("folder" in core.copy_reason) is copied
        assert core.weight("rest").data == WEIGHTS[576:]


def facts(uid: int, mode: int = 0o644) -> os.stat_result:
    return os.stat_result((0o100000 | mode, 1, 1, 1, uid, uid, 0, 0, 0, 0))


def test_only_files_of_ours_or_roots_are_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for file, folder in ((1000, 1000), (0, 0), (1000, 0), (0, 1000)):
        assert files._copy_reason(facts(file), facts(folder, 0o755)) == ""
    for file, folder in ((1001, 1000), (1000, 1001), (1001, 0)):
        assert "another user" in files._copy_reason(facts(file), facts(folder, 0o755))


def test_views_outlive_the_core(core_path: Path, trust: TrustStore) -> None:
    with opened(core_path, trust) as core:
        data = core.weight("rest").data
    core_path.unlink()
    assert data == WEIGHTS[576:]
    for use in (lambda: core.weight("rest"), lambda: core.resource("tokenizer"), core.verify_all):
        with pytest.raises(CoreError, match="closed"):
            use()


def test_a_link_to_a_core_is_followed(core_path: Path, trust: TrustStore, tmp_path: Path) -> None:
    (tmp_path / "link.core").symlink_to(core_path)
    assert read_everything(tmp_path / "link.core", trust) == read_everything(core_path, trust)


def test_what_is_no_file(tmp_path: Path, trust: TrustStore) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name, message in (
        ("missing", "No such file"),
        ("pipe", "not a regular file"),
        ("loop", "loop"),
        (".", "not a regular file"),
        ("nul\0", "null"),
        ("pipe/inner", "Not a directory"),
    ):
        with pytest.raises(CoreError, match=message):
            reader.authenticate(tmp_path / name, trust)


def test_no_file_stays_open_after_a_refusal(core_path: Path, tmp_path: Path) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(Exception, match="none of the 0"):
            reader.authenticate(core_path, TrustStore(tmp_path / "nobody"))
        with pytest.raises(CoreError):
            reader.authenticate(core_path.parent, TrustStore(tmp_path / "nobody"))
        reader.inspect(core_path)
    assert sorted(os.listdir("/proc/self/fd")) == before


# ---- files beside the core ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["weights.bin", "shards/weights-0001"])
def test_resources_may_lie_in_files_beside_the_core(
    core_path: Path, parts: Parts, key: SigningKey, trust: TrustStore, name: str
) -> None:
    expected = read_everything(core_path, trust)
    path = beside(parts, core_path, key, name, WEIGHTS + b"what follows is nobody's matter")
    assert read_everything(path, trust) == expected
    with opened(path, trust) as core:
        assert core.mapped_nbytes == len(WEIGHTS)
    (path.parent / name).chmod(0o666)
    with opened(path, trust) as core:
        assert core.copied_nbytes == len(WEIGHTS)
        assert core.weight("rest").data == WEIGHTS[576:]


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../outside",
        "shards/../../outside",
        "./weights.bin",
        "shards//weights",
        "weights.bin/",
        "..",
        "nul\0",
        "x" * 1025,
    ],
)
def test_names_that_lead_elsewhere(
    core_path: Path, parts: Parts, key: SigningKey, trust: TrustStore, name: str
) -> None:
    (core_path.parent.parent / "outside").write_bytes(bytes(4096) + WEIGHTS)
    path = beside(parts, core_path, key, name, None)
    with pytest.raises(CoreError, match="beneath the core's own folder"):
        reader.authenticate(path, trust)


def test_links_beside_the_core_are_not_followed(
    core_path: Path, parts: Parts, key: SigningKey, trust: TrustStore
) -> None:
    folder, outside = core_path.parent, core_path.parent.parent / "outside"
    outside.mkdir()
    (outside / "w").write_bytes(bytes(4096) + WEIGHTS)
    (folder / "link").symlink_to(outside / "w")
    (folder / "door").symlink_to(outside)
    (folder / "plain").write_bytes(b"")
    for name in ("link", "door/w", "plain/w"):
        path = beside(parts, core_path, key, name, None)
        with pytest.raises(CoreError, match="leads through a symbolic link"):
            reader.authenticate(path, trust)
    for name in ("missing", "x" * 300):
        path = beside(parts, core_path, key, name, None)
        with pytest.raises(CoreError, match="can't be opened"):
            reader.authenticate(path, trust)
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    for name in ("pipe", "folder"):
        path = beside(parts, core_path, key, name, None)
        with pytest.raises(CoreError, match="not a regular file"):
            reader.authenticate(path, trust)


def test_a_core_is_not_spread_over_any_number_of_files(
    core_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_FILES", 3)
    folder = CoreFolder(core_path)
    for name in "abc":
        (core_path.parent / name).write_bytes(b"")
    folder.file("a")
    folder.file("b")
    assert folder.file("a") is folder.file("a")
    with pytest.raises(CoreError, match="at most 3 files"):
        folder.file("c")
    folder.close()
    folder.close()


def test_reads_past_the_end_reserve_nothing(core_path: Path) -> None:
    folder = CoreFolder(core_path)
    size = folder.core.nbytes
    for offset, nbytes in ((0, 1 << 62), (size, 1), (1 << 63, 1), (size - 1, 2)):
        with pytest.raises(CoreError, match="ends too early"):
            folder.core.read(offset, nbytes)
        with pytest.raises(CoreError, match="ends too early"):
            folder.core.map(offset, nbytes)
    assert folder.core.read(size, 0) == b""
    os.truncate(core_path, size - 10)
    with pytest.raises(CoreError, match="ends too early"):
        folder.core.read(size - 20, 20)
    folder.close()
    with pytest.raises(CoreError, match="can't be read"):
        folder.core.read(0, 1)


@pytest.mark.parametrize(
    ("mode", "message"), [(0o644, "can't be mapped"), (0o666, "no memory to copy it into")]
)
def test_a_system_that_gives_no_memory(
    core_path: Path, trust: TrustStore, monkeypatch: pytest.MonkeyPatch, mode: int, message: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    core_path.chmod(mode)
    with opened(core_path, trust) as core:
        with monkeypatch.context() as patch:
            patch.setattr(mmap, "mmap", fail)
            with pytest.raises(CoreError, match=message):
                core.weight("rest")
        assert core.weight("rest").data == WEIGHTS[576:]
