"""A Hugging Face checkpoint folder as a source: `config.json`, safetensors and tokenizer files."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from helios.errors import SourceError
from helios.ignition.sources.facts import Facts
from helios.ignition.sources.folder import Folder
from helios.ignition.sources.huggingface_text import (
    hub_name,
    read_license,
    read_template,
    read_tokenizer,
)
from helios.ignition.sources.language_part import language_config, language_name
from helios.ignition.sources.safetensors import read_safetensors
from helios.ignition.sources.sampling import huggingface_sampling
from helios.ignition.sources.source import Dialect, SourceTensor

_CONFIG = "config.json"
_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"


class HuggingFaceSource:
    """A checkpoint folder. JSON files are read at once, tensors are mapped.

    Of a model of several modalities this is the language model. Raises `SourceError` for a folder
    that is not a sound checkpoint. Without `complete`, tensor data and the tokenizer may be absent.
    """

    dialect = Dialect.HUGGINGFACE

    def __init__(self, path: Path, *, complete: bool = True) -> None:
        self.path = path
        self.name = hub_name(path)
        self._complete = complete
        self._folder = folder = Folder(path)
        _check_config(folder)
        whole = Facts(folder.json(_CONFIG))
        self.config = language_config(whole)
        self.architecture = self.config.text("model_type")
        _check_plain(whole)
        generation = Facts(folder.json("generation_config.json"))
        self.tensors: Mapping[str, SourceTensor] = self._tensors()
        ends = (generation, whole, self.config)
        self.tokenizer = read_tokenizer(folder, ends, complete=complete)
        self.chat_template = read_template(folder)
        self.license = read_license(folder)
        self.sampling = huggingface_sampling(generation)

    def sha256(self) -> bytes:
        """The digest of the names and digests of every file read."""
        return self._folder.sha256()

    def _tensors(self) -> Mapping[str, SourceTensor]:
        stored = self._sharded() if _INDEX in self._folder else self._shard(_SINGLE)
        named = {name: language_name(name) for name in stored}
        return {new: replace(stored[old], name=new) for old, new in named.items() if new}

    def _sharded(self) -> Mapping[str, SourceTensor]:
        index = Facts(self._folder.json(_INDEX)).group("weight_map")
        names = [name for name in sorted(index.keys()) if language_name(name)]
        wanted = {name: _shard_name(index.text(name)) for name in names}
        tensors: dict[str, SourceTensor] = {}
        for shard in sorted(set(wanted.values())):
            held = self._shard(shard)
            tensors |= {name: tensor for name, tensor in held.items() if wanted.get(name) == shard}
        if missing := sorted(set(wanted) - set(tensors)):
            raise SourceError(
                "the index names a tensor its file lacks",
                field=missing[0],
                value=wanted[missing[0]],
                remedy="download the folder again",
            )
        return tensors

    def _shard(self, name: str) -> Mapping[str, SourceTensor]:
        if name not in self._folder:
            raise SourceError(
                "the folder lacks this file",
                field=name,
                remedy="download it, or save the model with transformers, which writes safetensors",
            )
        return read_safetensors(
            self._folder.file(name),
            complete=self._complete,
            wanted=lambda tensor: language_name(tensor) is not None,
        )


def _check_config(folder: Folder) -> None:
    if _CONFIG in folder:
        return
    files = sorted(file.name for file in folder.path.glob("*.gguf"))
    raise SourceError(
        "the folder is no Hugging Face checkpoint",
        field=_CONFIG,
        value=str(folder.path),
        remedy=f"give a file of it: {', '.join(files)}" if files else "download the whole folder",
    )


def _check_plain(config: Facts) -> None:
    if "quantization_config" in config:
        raise SourceError(
            "quantised safetensors are not supported",
            field="quantization_config",
            value=config.group("quantization_config").text("quant_method", "unknown"),
            remedy="prepare the unquantised checkpoint or a GGUF file",
        )


def _shard_name(name: str) -> str:
    if Path(name).name != name or not name.endswith(".safetensors"):
        raise SourceError(
            "must be a safetensors file of this folder",
            field=_INDEX,
            value=name,
            remedy="download the folder again",
        )
    return name
