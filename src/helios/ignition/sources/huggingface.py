"""A Hugging Face checkpoint folder as a source: `config.json`, safetensors and tokenizer files."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

from helios.errors import SourceError
from helios.ignition.sources.facts import Facts
from helios.ignition.sources.mapping import digest, map_file
from helios.ignition.sources.safetensors import read_safetensors
from helios.ignition.sources.sampling import huggingface_sampling
from helios.ignition.sources.source import (
    Dialect,
    License,
    SourceTensor,
    TokenizerFile,
)

MAX_JSON = 1 << 28
_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"
_LICENSE_LINE = re.compile(r"^license:\s*(\S+)\s*$", re.MULTILINE)


class HuggingFaceSource:
    """A checkpoint folder. JSON files are read at once, tensors are mapped.

    Raises `SourceError` for a folder that is not a sound checkpoint. Without `complete`, tensor
    data and the tokenizer may be absent.
    """

    dialect = Dialect.HUGGINGFACE

    def __init__(self, path: Path, *, complete: bool = True) -> None:
        self.path = path
        self._complete = complete
        self._read: list[str] = []
        self.config = Facts(self._json("config.json"))
        self.architecture = self.config.text("model_type")
        self.name = path.resolve().name
        if "quantization_config" in self.config:
            raise SourceError(
                "quantised safetensors are not supported",
                field="quantization_config",
                value=self.config.group("quantization_config").text("quant_method", "unknown"),
                remedy="prepare the unquantised checkpoint or a GGUF file",
            )
        generation = Facts(self._json("generation_config.json", required=False))
        tokenizer_config = Facts(self._json("tokenizer_config.json", required=False))
        self.tensors: Mapping[str, SourceTensor] = self._tensors()
        self.tokenizer = self._tokenizer(generation, tokenizer_config)
        self.chat_template = self._template(tokenizer_config)
        self.license = self._license()
        self.sampling = huggingface_sampling(generation)

    def sha256(self) -> bytes:
        """The digest of the names and digests of every file read."""
        state = hashlib.sha256()
        for name in sorted(set(self._read)):
            state.update(name.encode() + b"\0" + digest(map_file(self.path / name)))
        return state.digest()

    # ---- files --------------------------------------------------------------------------

    def _bytes(self, name: str, limit: int = MAX_JSON) -> bytes | None:
        """The content of a small file of the folder, or None if there is none."""
        file = self.path / name
        if not file.is_file():
            return None
        if file.stat().st_size > limit:
            raise SourceError(
                f"larger than {limit} bytes",
                field=name,
                value=file.stat().st_size,
                remedy="use the original file",
            )
        self._read.append(name)
        return file.read_bytes()

    def _json(self, name: str, required: bool = True) -> Mapping[str, object]:
        content = self._bytes(name)
        if content is None and not required:
            return {}
        try:
            value = json.loads(content or b"")
        except (ValueError, RecursionError) as error:
            raise SourceError(
                f"not readable as JSON: {error}", field=name, remedy="download the folder again"
            ) from None
        if not isinstance(value, dict):
            raise SourceError(
                "must be a JSON object",
                field=name,
                value=type(value).__name__,
                remedy="download the folder again",
            )
        return value

    def _tensors(self) -> Mapping[str, SourceTensor]:
        if not (self.path / _INDEX).is_file():
            self._read.append(_SINGLE)
            return read_safetensors(self.path / _SINGLE, complete=self._complete)
        index = Facts(self._json(_INDEX)).group("weight_map")
        wanted = {name: self._shard_name(index.text(name)) for name in sorted(index.keys())}
        tensors: dict[str, SourceTensor] = {}
        for shard in sorted(set(wanted.values())):
            self._read.append(shard)
            held = read_safetensors(self.path / shard, complete=self._complete)
            tensors |= {name: tensor for name, tensor in held.items() if wanted.get(name) == shard}
        if missing := sorted(set(wanted) - set(tensors)):
            raise SourceError(
                "the index names a tensor its file lacks",
                field=missing[0],
                value=wanted[missing[0]],
                remedy="download the folder again",
            )
        return tensors

    def _shard_name(self, name: str) -> str:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise SourceError(
                "must be a safetensors file of this folder",
                field=_INDEX,
                value=name,
                remedy="download the folder again",
            )
        return name

    # ---- text ---------------------------------------------------------------------------

    def _tokenizer(self, generation: Facts, settings: Facts) -> TokenizerFile:
        content = self._bytes("tokenizer.json")
        if content is None and self._complete:
            raise SourceError(
                "the folder lacks a fast tokenizer",
                field="tokenizer.json",
                remedy="save the tokenizer with transformers first",
            )
        return TokenizerFile(
            json=content or b"",
            bos=_token_text(settings, "bos_token"),
            eos=_token_text(settings, "eos_token"),
            padding=_token_text(settings, "pad_token"),
            unknown=_token_text(settings, "unk_token"),
            eos_ids=_end_ids(generation) or _end_ids(self.config),
            add_bos=settings.flag("add_bos_token") if "add_bos_token" in settings else None,
        )

    def _template(self, settings: Facts) -> str | None:
        content = self._bytes("chat_template.jinja")
        if content is not None:
            return _text(content, "chat_template.jinja")
        if "chat_template" not in settings:
            return None
        try:
            named = settings.sequence("chat_template")
        except SourceError:
            return settings.text("chat_template")
        by_name = {t["name"]: t["template"] for t in named if isinstance(t, dict) and "name" in t}
        return str(by_name["default"]) if "default" in by_name else None

    def _license(self) -> License:
        text = self._bytes("LICENSE") or self._bytes("LICENSE.txt") or b""
        card = (self._bytes("README.md") or b"").decode(errors="replace")
        found = _LICENSE_LINE.search(card[:4096])
        return License(found[1] if found else "", text=text.decode(errors="replace"))


def _text(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise SourceError(
            f"not UTF-8 text: {error}", field=name, remedy="download the folder again"
        ) from None


def _token_text(settings: Facts, key: str) -> str | None:
    """A special token, which is a string or an object with its content."""
    if key not in settings:
        return None
    try:
        return settings.text(key)
    except SourceError:
        return settings.group(key).text("content")


def _end_ids(facts: Facts) -> tuple[int, ...]:
    if "eos_token_id" not in facts:
        return ()
    try:
        return (facts.whole("eos_token_id"),)
    except SourceError:
        ids = facts.sequence("eos_token_id")
    if not all(type(i) is int and i >= 0 for i in ids):
        raise SourceError(
            "must be token ids", field=facts.name("eos_token_id"), value=ids, remedy="correct it"
        )
    return tuple(i for i in ids if isinstance(i, int))
