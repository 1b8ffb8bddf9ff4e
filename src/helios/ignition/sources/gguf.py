"""A GGUF file as a source."""

import hashlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np

from helios.errors import SourceError
from helios.ignition.sources.facts import Facts
from helios.ignition.sources.gguf_files import GgufFile, read_files
from helios.ignition.sources.gguf_header import TensorEntry
from helios.ignition.sources.mapping import digest, present
from helios.ignition.sources.sampling import gguf_sampling
from helios.ignition.sources.source import (
    Dialect,
    GgmlVocabulary,
    License,
    SourceTensor,
)
from helios.ignition.sources.templates import DEFAULT, one_template

# Ids under any of these keys end generation.
_END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")


class GgufSource:
    """A GGUF file, or the first of several, mapped. Tensors are read when asked for.

    Raises `SourceError` for what is not a sound GGUF model. A mapping lives as long as any tensor
    view of it does. Without `complete`, files may end anywhere after their headers.
    """

    dialect = Dialect.GGUF

    def __init__(self, path: Path, *, complete: bool = True) -> None:
        self.path = path
        self._files = read_files(path, complete=complete)
        self._fields = self._files[0].header.fields
        general = self._view("general.")
        self.architecture = general.text("architecture")
        self.name = general.text("name", path.stem)
        self.config = self._view(f"{self.architecture}.")
        self.tensors: Mapping[str, SourceTensor] = self._tensors()
        self.tokenizer = _vocabulary(self._view("tokenizer.ggml."))
        self.chat_template = _template(self._view("tokenizer."))
        self.license = License(
            *(general.text(key, "") for key in ("license", "license.name", "license.link"))
        )
        self.sampling = gguf_sampling(self._view("general.sampling."))

    def sha256(self) -> bytes:
        """The digest of the file, or of the digests of several."""
        digests = [digest(file.data) for file in self._files]
        return digests[0] if len(digests) == 1 else hashlib.sha256(b"".join(digests)).digest()

    def _view(self, prefix: str) -> Facts:
        chosen = {k[len(prefix) :]: v for k, v in self._fields.items() if k.startswith(prefix)}
        return Facts(chosen, prefix)

    def _tensors(self) -> Mapping[str, SourceTensor]:
        return {
            entry.name: SourceTensor(
                entry.name, entry.storage, entry.shape, entry.nbytes, partial(_load, file, entry)
            )
            for file in self._files
            for entry in file.header.tensors
        }


def _load(file: GgufFile, entry: TensorEntry) -> memoryview:
    return present(file.data, entry.offset, entry.offset + entry.nbytes, entry.name)


def _template(facts: Facts) -> str | None:
    """One template for all that the file names."""
    prefix = "chat_template."
    keys = [key for key in sorted(facts.keys()) if key.startswith(prefix)]
    named = {key.removeprefix(prefix): facts.text(key) for key in keys}
    return one_template({**named, DEFAULT: facts.text("chat_template", "")})


def _vocabulary(facts: Facts) -> GgmlVocabulary:
    tokens = _texts(facts, "tokens")
    types = _numbers(facts, "token_type", len(tokens), 1)
    scores = _numbers(facts, "scores", len(tokens), 0.0)
    ends = [_token_id(facts, key, len(tokens)) for key in _END_KEYS]
    return GgmlVocabulary(
        model=facts.text("model"),
        pre=facts.text("pre", "default"),
        tokens=tuple(tokens),
        types=tuple(int(t) for t in types),
        scores=tuple(float(s) for s in scores),
        merges=tuple(_texts(facts, "merges")) if "merges" in facts else (),
        bos=_token_id(facts, "bos_token_id", len(tokens)),
        eos=tuple(dict.fromkeys(end for end in ends if end is not None)),
        unknown=_token_id(facts, "unknown_token_id", len(tokens)),
        padding=_token_id(facts, "padding_token_id", len(tokens)),
        add_bos=facts.flag("add_bos_token") if "add_bos_token" in facts else None,
        add_space_prefix=facts.flag("add_space_prefix", True),
    )


def _texts(facts: Facts, key: str) -> list[str]:
    values = facts.sequence(key)
    if not values or not all(isinstance(v, str) for v in values):
        raise SourceError(
            "must be a list of strings", field=facts.name(key), remedy="convert the model again"
        )
    return [str(v) for v in values]


def _numbers(facts: Facts, key: str, count: int, default: float) -> list[float]:
    if key not in facts:
        return [default] * count
    values = facts.array(key)
    if len(values) != count or not np.isfinite(values).all():
        raise SourceError(
            f"must hold {count} finite numbers",
            field=facts.name(key),
            value=len(values),
            remedy="convert the model again",
        )
    return [float(v) for v in values]


def _token_id(facts: Facts, key: str, count: int) -> int | None:
    if key not in facts:
        return None
    value = facts.whole(key)
    if value >= count:
        raise SourceError(
            f"must be below the vocabulary of {count}",
            field=facts.name(key),
            value=value,
            remedy="convert the model again",
        )
    return value
