"""What every device runtime is to the rest of Helios."""

from collections.abc import Callable, Mapping
from typing import Protocol

from helios.compile.accuracy import TensorError
from helios.compile.capabilities import DeviceDescriptor
from helios.compile.composition import CompiledModel, RuntimeComposition
from helios.runtime.packing import PackedStep
from helios.runtime.storage import Storage

Progress = Callable[[int, int], None]

STAGING_NBYTES = 1 << 20
"""Enough for a materializer beside the stored and the finished tensor, however large they are."""


class WeightData(Protocol):
    """A stored tensor's bytes, verified by whoever hands them out."""

    @property
    def data(self) -> memoryview:
        """The stored bytes."""


class WeightSource(Protocol):
    """Where stored tensors come from: a core."""

    def weight(self, name: str) -> WeightData:
        """The tensor of that name."""


class StepRunner(Protocol):
    """A plan that is loaded and ready to run.

    `allocated_nbytes` counts what `load` allocated beside the storage and keeps: materialised
    weights and provider data. `errors` tells what approximate materializers did, by weight.
    """

    @property
    def allocated_nbytes(self) -> int:
        """Bytes allocated beside the storage."""

    @property
    def errors(self) -> Mapping[str, TensorError]:
        """The error made in each approximated weight."""

    def run(self, step: PackedStep) -> None:
        """Run one packed step to its end. Called from one thread, one step at a time."""

    def hold(self, frame: int) -> None:
        """Late input of a frame is yet to come: a step waits where it first reads any, for
        `LATE_SECONDS` at most, and then fails with `DeviceError`."""

    def release(self, frame: int) -> None:
        """Late input of a frame has been written. Harmless where nothing is held."""

    def tune(self, program: str, budget: float) -> int:
        """Run a tuning program to its end, before any step, trying things for about `budget`
        seconds; returns the number of trials. Every choice is written, without budget too."""

    def close(self) -> None:
        """Free the device's resources; no step is running."""


class DeviceRuntime(Protocol):
    """A device: what it is, how to compile for it, and how to load a compiled model."""

    @property
    def descriptor(self) -> DeviceDescriptor:
        """What the device is."""

    def composition(self) -> RuntimeComposition:
        """The composition of this runtime with its own catalog."""

    def load(
        self,
        compiled: CompiledModel,
        storage: Storage,
        weights: WeightSource,
        progress: Progress | None = None,
    ) -> StepRunner:
        """Materialise weights and bind programs to the storage."""
