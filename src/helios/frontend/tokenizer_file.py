"""Reading a `tokenizer.json`.

The library reads a vocabulary and its merges slowly, and holds the interpreter lock for all of it.
So the model of a byte-pair tokenizer is read here and handed over ready made, which takes half the
time; the rest of the file, and any other model, is the library's to read.
"""

from typing import Any, Literal

import msgspec
import tokenizers
from tokenizers import models

_EMPTY = {"type": "BPE", "vocab": {}, "merges": []}


class _BytePairs(msgspec.Struct, forbid_unknown_fields=True):
    """A byte-pair model: the library's own fields and defaults."""

    type: Literal["BPE"]
    vocab: dict[str, int]
    merges: list[tuple[str, str]]
    dropout: float | None = None
    unk_token: str | None = None
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None
    fuse_unk: bool = False
    byte_fallback: bool = False
    ignore_merges: bool = False

    def model(self) -> models.BPE:
        """The library's model."""
        given = {name: getattr(self, name) for name in self.__struct_fields__ if name != "type"}
        return models.BPE(**{name: value for name, value in given.items() if value is not None})


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """A file with such a model. What it leaves out stays left out."""

    model: _BytePairs
    added_tokens: list[dict[str, Any]] = []
    version: Any = msgspec.UNSET
    truncation: Any = msgspec.UNSET
    padding: Any = msgspec.UNSET
    normalizer: Any = msgspec.UNSET
    pre_tokenizer: Any = msgspec.UNSET
    post_processor: Any = msgspec.UNSET
    decoder: Any = msgspec.UNSET

    def fields(self) -> dict[str, Any]:
        """What the file holds besides the model."""
        held = {name: getattr(self, name) for name in self.__struct_fields__ if name != "model"}
        return {name: value for name, value in held.items() if value is not msgspec.UNSET}


def read_tokenizer(source: str) -> tuple[tokenizers.Tokenizer, dict[str, Any]]:
    """The tokenizer in a file's text, and the file's content. Raises any error for a bad one."""
    try:
        file = msgspec.json.decode(source, type=_File)
    except msgspec.ValidationError:
        return tokenizers.Tokenizer.from_str(source), msgspec.json.decode(source)
    rest = file.fields()
    frame = {**rest, "model": _EMPTY, "added_tokens": []}
    tokenizer = tokenizers.Tokenizer.from_str(msgspec.json.encode(frame).decode())
    tokenizer.model = file.model.model()
    # Last, as the library adds them: their ids are looked up in the model.
    tokenizer.add_tokens([_added(token) for token in file.added_tokens])
    return tokenizer, {**rest, "model": msgspec.structs.asdict(file.model)}


def _added(token: dict[str, Any]) -> tokenizers.AddedToken:
    fields = {name: value for name, value in token.items() if name != "id"}
    return tokenizers.AddedToken(**fields)
