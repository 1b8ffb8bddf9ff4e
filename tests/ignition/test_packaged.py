"""Models that come in packages: found, joined from parts, and checked."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from helios.errors import SourceError
from helios.ignition.recipes.packaged import PackagedModel, PackagedPart


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two packages with a part each."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for package, content in (("made_up_first", b"head "), ("made_up_second", b"and tail")):
        folder = tmp_path / package / "data"
        folder.mkdir(parents=True)
        (folder.parent / "__init__.py").write_text("raise AssertionError('imported')")
        (folder / "part").write_bytes(content)
    return tmp_path


def model(packages: Sequence[str]) -> PackagedModel:
    return PackagedModel(
        name="whole.gguf",
        install="pip install made-up",
        parts=tuple(PackagedPart(package, "data/part") for package in packages),
        sha256=hashlib.sha256(b"head and tail").hexdigest(),
    )


def test_parts_are_joined_once(packages: Path) -> None:
    packaged = model(["made_up_first", "made_up_second"])
    whole = packaged.locate(packages / "joined")
    assert whole.read_bytes() == b"head and tail"
    packaged.check(whole)
    stamp = whole.stat().st_mtime_ns
    assert packaged.locate(packages / "joined") == whole
    assert whole.stat().st_mtime_ns == stamp
    assert [p.name for p in whole.parent.iterdir()] == ["whole.gguf"]


def test_a_file_cut_short_is_joined_again(packages: Path) -> None:
    packaged = model(["made_up_first", "made_up_second"])
    whole = packaged.locate(packages / "joined")
    whole.write_bytes(b"head")
    assert packaged.locate(packages / "joined").read_bytes() == b"head and tail"


def test_a_whole_file_is_used_where_it_lies(packages: Path) -> None:
    found = model(["made_up_first"]).locate(packages / "joined")
    assert found == packages / "made_up_first" / "data" / "part"
    assert not (packages / "joined").exists()


def test_another_file_is_refused(packages: Path) -> None:
    packaged = model(["made_up_first"])
    with pytest.raises(SourceError, match="not the one that was published"):
        packaged.check(packaged.locate(packages))


def test_a_missing_package_is_named_with_its_remedy(packages: Path) -> None:
    with pytest.raises(SourceError) as caught:
        model(["made_up_first", "made_up_third"]).locate(packages / "joined")
    assert caught.value.value == "made_up_third"
    assert caught.value.remedy == "pip install made-up"
