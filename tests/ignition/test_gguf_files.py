"""Models split over several GGUF files are those that one file would be."""

import shutil
from pathlib import Path

import pytest
from tiny_gguf import write_gguf

from helios.errors import SourceError
from helios.ignition.export import assemble
from helios.ignition.options import PrepareOptions
from helios.ignition.sources.open import open_source


@pytest.fixture
def first(tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "tiny.gguf", split=8)


def refusal(path: Path) -> SourceError:
    with pytest.raises(SourceError) as caught:
        open_source(path)
    assert caught.value.remedy
    return caught.value


def test_all_files_together_are_the_model(first: Path, tmp_path: Path) -> None:
    assert len(list(tmp_path.glob("*.gguf"))) == 3
    whole = open_source(write_gguf(tmp_path / "whole.gguf"))
    split = open_source(first)
    assert {n: bytes(t.data()) for n, t in split.tensors.items()} == {
        n: bytes(t.data()) for n, t in whole.tensors.items()
    }
    deployment = assemble(split, PrepareOptions())
    assert deployment.contract.served_id == "tiny"
    assert b"".join(deployment.weights.chunks())


def test_the_digest_covers_every_file(first: Path, tmp_path: Path) -> None:
    before = open_source(first).sha256()
    last = max(tmp_path.glob("*.gguf"))
    content = bytearray(last.read_bytes())
    content[-1] ^= 1
    last.write_bytes(content)
    assert open_source(first).sha256() != before


def test_a_later_file_is_not_the_model(first: Path, tmp_path: Path) -> None:
    second = sorted(tmp_path.glob("*.gguf"))[1]
    assert "-00001-of-00003.gguf" in refusal(second).remedy


def test_a_missing_file_is_named(first: Path, tmp_path: Path) -> None:
    last = max(tmp_path.glob("*.gguf"))
    last.unlink()
    assert refusal(first).field == last.name


def test_a_renamed_first_file_is_told_its_name(first: Path, tmp_path: Path) -> None:
    renamed = first.rename(tmp_path / "renamed.gguf")
    assert refusal(renamed).field == "renamed.gguf"


def test_files_in_another_order_are_refused(first: Path, tmp_path: Path) -> None:
    _, second, third = sorted(tmp_path.glob("*.gguf"))
    shutil.copy(third, second)
    assert refusal(first).field == second.name
