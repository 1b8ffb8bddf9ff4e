"""Opening a checkpoint, whatever its format."""

from pathlib import Path

from helios.errors import SourceError
from helios.ignition.sources.gguf import GgufSource
from helios.ignition.sources.huggingface import HuggingFaceSource
from helios.ignition.sources.source import Source


def open_source(path: Path, *, complete: bool = True) -> Source:
    """The source at a path: a folder is a Hugging Face checkpoint, a file is GGUF.

    Without `complete`, tensors need only be described (a file may end after its header) and a
    folder needs no tokenizer: enough to plan for, not to prepare.
    """
    if path.is_dir():
        return HuggingFaceSource(path, complete=complete)
    if not path.exists():
        raise SourceError(
            "no such file or folder",
            field=str(path),
            remedy="give a .gguf file or a checkpoint folder",
        )
    return GgufSource(path, complete=complete)
