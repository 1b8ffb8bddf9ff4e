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


def read_tokenizer(source: str) -> tuple[tokenizers.Tokenizer, dict[str, Any]]:
    """The tokenizer in a file's text, and the file's content. Raises any error for a bad one."""
    fields = msgspec.json.decode(source, type=dict[str, msgspec.Raw])
    try:
        pairs = msgspec.json.decode(fields["model"], type=_BytePairs)
    except (KeyError, msgspec.ValidationError):
        return tokenizers.Tokenizer.from_str(source), msgspec.json.decode(source)
    rest = {name: msgspec.json.decode(raw) for name, raw in fields.items() if name != "model"}
    added = rest.get("added_tokens") or []
    frame = {**rest, "model": _EMPTY, "added_tokens": []}
    tokenizer = tokenizers.Tokenizer.from_str(msgspec.json.encode(frame).decode())
    tokenizer.model = pairs.model()
    # Last, as the library adds them: their ids are looked up in the model.
    tokenizer.add_tokens([_added(token) for token in added])
    return tokenizer, {**rest, "model": msgspec.structs.asdict(pairs)}


def _added(token: dict[str, Any]) -> tokenizers.AddedToken:
    fields = {name: value for name, value in token.items() if name != "id"}
    return tokenizers.AddedToken(**fields)
