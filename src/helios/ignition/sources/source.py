"""What every checkpoint offers, whatever its file format."""

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from helios.contract.kinds import WeightStorage
from helios.errors import SourceError
from helios.ignition.sources.facts import Facts
from helios.records import dataclass


class Dialect(StrEnum):
    """Whose words a checkpoint uses for configuration keys and tensor names."""

    GGUF = "gguf"
    HUGGINGFACE = "huggingface"


@dataclass(frozen=True, slots=True)
class SourceTensor:
    """One stored tensor: `shape` is logical, outermost dimension first."""

    name: str
    storage: WeightStorage
    shape: tuple[int, ...]
    nbytes: int
    load: Callable[[], memoryview] = field(repr=False, compare=False)

    def data(self) -> memoryview:
        """The stored bytes, exactly `nbytes` of them, mapped on demand; read only."""
        return self.load()


def computed_tensor(name: str, values: npt.NDArray[np.float32]) -> SourceTensor:
    """A float32 tensor that a recipe computed from configuration or from small tensors."""
    stored = np.ascontiguousarray(values, dtype="<f4")
    data = memoryview(stored.tobytes())
    return SourceTensor(name, WeightStorage.F32, stored.shape, len(data), lambda: data)


def float_values(tensor: SourceTensor) -> npt.NDArray[np.float32]:
    """The numbers of a tensor stored as floats; raises `SourceError` for a quantised one."""
    raw = np.frombuffer(tensor.data(), np.uint8)
    match tensor.storage:
        case WeightStorage.F32:
            values = raw.view("<f4")
        case WeightStorage.F16:
            values = raw.view("<f2")
        case WeightStorage.BF16:
            values = (raw.view("<u2").astype("<u4") << 16).view("<f4")
        case _:
            raise SourceError(
                "must be stored as floats",
                field=tensor.name,
                value=tensor.storage.name,
                remedy="convert the checkpoint again",
            )
    return values.astype(np.float32).reshape(tensor.shape)


@dataclass(frozen=True, slots=True)
class GgmlVocabulary:
    """A tokenizer as GGUF metadata states it; `types` are the ggml token types."""

    model: str
    pre: str
    tokens: tuple[str, ...]
    types: tuple[int, ...]
    scores: tuple[float, ...]
    merges: tuple[str, ...]
    bos: int | None
    eos: tuple[int, ...]
    unknown: int | None
    padding: int | None
    add_bos: bool | None
    add_space_prefix: bool


@dataclass(frozen=True, slots=True)
class TokenizerFile:
    """A tokenizer as a Hugging Face folder states it: `tokenizer.json` and its special tokens."""

    json: bytes
    bos: str | None
    eos: str | None
    padding: str | None
    unknown: str | None
    eos_ids: tuple[int, ...]
    add_bos: bool | None


@dataclass(frozen=True, slots=True)
class SamplingDefaults:
    """The publisher's recommended sampling; None leaves a setting to the server."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None


@dataclass(frozen=True, slots=True)
class License:
    """The licence a checkpoint declares: an identifier, a name, where to find it, its text.

    Identifiers are what publishers write: SPDX where they use it, else words of their own.
    """

    identifier: str = ""
    name: str = ""
    link: str = ""
    text: str = ""


class Source(Protocol):
    """A checkpoint. Opening reads metadata only; tensors are mapped when asked for."""

    @property
    def path(self) -> Path:
        """Where it lies."""

    @property
    def dialect(self) -> Dialect:
        """Whose words it uses."""

    @property
    def architecture(self) -> str:
        """The architecture as the checkpoint names it."""

    @property
    def name(self) -> str:
        """A human name of the model."""

    @property
    def config(self) -> Facts:
        """The architecture's configuration."""

    @property
    def tensors(self) -> Mapping[str, SourceTensor]:
        """Every stored tensor by name."""

    @property
    def tokenizer(self) -> GgmlVocabulary | TokenizerFile:
        """What the tokenizer is made from."""

    @property
    def chat_template(self) -> str | None:
        """The chat template, if there is one."""

    @property
    def license(self) -> License:
        """The declared licence."""

    @property
    def sampling(self) -> SamplingDefaults:
        """The recommended sampling."""

    def sha256(self) -> bytes:
        """The digest of everything the source consists of."""
