"""The files of one GGUF model: a single one, or several that each hold some of its tensors.

Split models name their files `NAME-00001-of-00003.gguf`; the first has all metadata, and every
file says which of how many it is (https://github.com/ggml-org/llama.cpp/tree/master/tools/gguf-split).
"""

from pathlib import Path

from helios.errors import SourceError
from helios.ignition.sources.facts import Facts
from helios.ignition.sources.gguf_header import Header, read_header
from helios.ignition.sources.mapping import map_file
from helios.ignition.sources.split_name import SPLIT_NAME
from helios.records import dataclass

_PREFIX = "split."


@dataclass(frozen=True, slots=True)
class GgufFile:
    """One mapped file and its header."""

    path: Path
    data: memoryview
    header: Header

    @property
    def split(self) -> Facts:
        """What it says of the split it belongs to."""
        fields = self.header.fields.items()
        return Facts({k[len(_PREFIX) :]: v for k, v in fields if k.startswith(_PREFIX)}, _PREFIX)


def read_files(path: Path, *, complete: bool = True) -> tuple[GgufFile, ...]:
    """All files of the model whose first one is at `path`; raises `SourceError` if one lacks."""
    first = _read(path, complete)
    count = first.split.whole("count", 1)
    if count <= 1:
        return (first,)
    others = [_read(_sibling(path, number, count), complete) for number in range(2, count + 1)]
    files = (first, *others)
    for number, file in enumerate(files):
        if (file.split.whole("no", 0), file.split.whole("count", 1)) != (number, count):
            raise SourceError(
                f"is not file {number + 1} of {count}",
                field=file.path.name,
                value=(file.split.whole("no", 0) + 1, file.split.whole("count", 1)),
                remedy="download all files of the model again",
            )
    _check_tensors(files)
    return files


def _read(path: Path, complete: bool) -> GgufFile:
    data = map_file(path)
    return GgufFile(path, data, read_header(data, path.name, complete=complete))


def _sibling(path: Path, number: int, count: int) -> Path:
    """The file of that number, of a model whose first file this is."""
    named = SPLIT_NAME.fullmatch(path.name)
    if named is None or (int(named[2]), int(named[3])) != (1, count):
        raise SourceError(
            f"one file of {count}",
            field=path.name,
            value=count,
            remedy=f"give the first one, named …-00001-of-{count:05}.gguf, beside the others",
        )
    sibling = path.with_name(f"{named[1]}-{number:05}-of-{count:05}{named[4] or ''}")
    if not sibling.is_file():
        raise SourceError(
            "a file of the model is missing",
            field=sibling.name,
            remedy="put all of its files into one folder",
        )
    return sibling


def _check_tensors(files: tuple[GgufFile, ...]) -> None:
    """No tensor is in two files, and all that were counted are there."""
    names = [tensor.name for file in files for tensor in file.header.tensors]
    expected = files[0].split.whole("tensors.count", len(names))
    if len(set(names)) != len(names) or len(names) != expected:
        raise SourceError(
            f"the files should hold {expected} different tensors",
            field=files[0].path.name,
            value=len(set(names)),
            remedy="download all files of the model again",
        )
