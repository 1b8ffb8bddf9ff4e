"""What a recipe gives: facts about a model and one forward pass over packed tokens."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from helios.errors import SourceError
from helios.ignition.sources.source import SamplingDefaults, SourceTensor, float_values
from helios.program.builder import ProgramBuilder
from helios.program.ir import Buffer, Ref, Value
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class LayerHistory:
    """What one layer keeps of every token: `heads` keys and values of `dim` elements each.

    `window` counts the positions the layer still looks at; 0 is all of them.
    """

    heads: int
    dim: int
    window: int = 0


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What preparation has to know of a model besides its forward pass."""

    architecture: str
    name: str
    vocabulary: int
    context: int
    histories: tuple[LayerHistory, ...]
    defaults: SamplingDefaults


@dataclass(frozen=True, slots=True)
class Batch:
    """The packed tokens of a submission, as every operation presents them to a forward pass."""

    tokens: Ref  # i32[T]
    rows: Value  # i32[T], the lane of each token
    positions: Value  # i32[T]
    slots: Buffer  # i32[B], the request slot of each lane
    page_table: Buffer  # i32[R, M]


@dataclass(frozen=True, slots=True)
class Planes:
    """The cache planes of one layer, [N, page_tokens, heads, dim] each."""

    keys: Buffer
    values: Buffer


class Recipe(Protocol):
    """One model's computation.

    `tensors` maps the weight names that the programs use to what the source stores for them, with
    logical shapes already checked.
    """

    @property
    def facts(self) -> ModelFacts:
        """Facts that preparation turns into the contract."""

    @property
    def tensors(self) -> Mapping[str, SourceTensor]:
        """Every weight of the programs."""

    def forward(self, builder: ProgramBuilder, batch: Batch, planes: Sequence[Planes]) -> Value:
        """Write the layers; returns hidden states f32[T, E] before the final norm."""

    def head(self, builder: ProgramBuilder, hidden: Value) -> Value:
        """Write final norm and output projection of f32[A, E]; returns logits f32[A, V]."""


class TensorSet:
    """A source's tensors, taken one by one under the names the programs use.

    Every stored tensor must be taken or be known as one that carries no parameter: a checkpoint
    with parameters that a recipe does not compute with is another model.
    """

    def __init__(self, stored: Mapping[str, SourceTensor]) -> None:
        self._stored = stored
        self._untaken = set(stored)
        self.taken: dict[str, SourceTensor] = {}

    def __contains__(self, stored_name: str) -> bool:
        return stored_name in self._stored

    def take(self, name: str, stored_name: str, shape: tuple[int, ...]) -> None:
        """Use a stored tensor as weight `name`; it must have that logical shape."""
        self.taken[name] = self._checked(stored_name, shape)

    def values(self, stored_name: str, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
        """The numbers of a small stored tensor of floats, for a recipe to compute with."""
        return float_values(self._checked(stored_name, shape))

    def add(self, name: str, tensor: SourceTensor) -> None:
        """Use a computed tensor as weight `name`."""
        self.taken[name] = tensor

    def ignore(self, *suffixes: str) -> None:
        """Stored tensors with these endings carry nothing that is not computed anyway."""
        self._untaken = {name for name in self._untaken if not name.endswith(suffixes)}

    def close(self) -> Mapping[str, SourceTensor]:
        """All weights; refuses a checkpoint with tensors that no one took."""
        if self._untaken:
            raise SourceError(
                f"{len(self._untaken)} tensors that this architecture does not use",
                field=min(self._untaken),
                remedy="the checkpoint needs another recipe",
            )
        return self.taken

    def _checked(self, stored_name: str, shape: tuple[int, ...]) -> SourceTensor:
        if stored_name not in self._stored:
            raise SourceError(
                "the checkpoint lacks this tensor",
                field=stored_name,
                remedy="use a complete checkpoint",
            )
        self._untaken.discard(stored_name)
        tensor = self._stored[stored_name]
        if tensor.shape != shape:
            raise SourceError(
                f"wrong shape, the configuration asks for {list(shape)}",
                field=stored_name,
                value=list(tensor.shape),
                remedy="use a checkpoint whose tensors match its configuration",
            )
        return tensor
