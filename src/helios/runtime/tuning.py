"""Tuning at start-up: producers fill the buffers that serving graphs read, once, in bounded time.

What a choice means is between a device's tuning operation and its kernels. Here it only counts
that every buffer a graph depends on is complete before the graph can be used.
"""

import time
from collections.abc import Collection, Iterable

import numpy as np

from helios.compile.composition import CompiledModel
from helios.compile.report import TuningReport
from helios.contract.prepared import PreparedGraph
from helios.errors import DeviceError
from helios.runtime.device import StepRunner
from helios.runtime.storage import Storage

TUNING_SECONDS = 0.02
"""What all tuning programs of a model may try things for, together."""

_OPEN = -1


def fill_tuned(
    compiled: CompiledModel, storage: Storage, runner: StepRunner, seconds: float
) -> TuningReport:
    """Run every producer that a graph depends on, in order of name; others are left alone.

    Each gets an equal part of the time that is left. Raises `DeviceError` where a producer leaves
    a choice open.
    """
    contract = compiled.contract
    required = sorted({b.producer for graph in contract.graphs for b in graph.tuned})
    deadline = time.perf_counter() + seconds
    trials = 0
    choices: dict[str, tuple[int, ...]] = {}
    for index, producer in enumerate(required):
        outputs = contract.tuning[producer].outputs
        for name in outputs:
            storage.persistent[name].fill(_OPEN)
        left = max(0.0, deadline - time.perf_counter()) if seconds > 0 else 0.0
        trials += runner.tune(producer, left / (len(required) - index))
        for name in outputs:
            choices[name] = _complete(producer, name, storage)
    return TuningReport(trials, choices)


def require_tuned(graphs: Iterable[PreparedGraph], filled: Collection[str]) -> None:
    """Raise `DeviceError` unless every tuned buffer of the graphs is among those filled."""
    for graph in graphs:
        for binding in graph.tuned:
            if binding.buffer not in filled:
                raise DeviceError(
                    "depends on a buffer that no tuning program has filled",
                    field=f"graphs.{graph.program}.tuned_bindings.{binding.buffer}",
                    value=binding.producer,
                    remedy="run its producer first",
                )


def _complete(producer: str, name: str, storage: Storage) -> tuple[int, ...]:
    values = tuple(int(v) for v in np.ravel(storage.persistent[name]))
    if min(values) < 0:
        raise DeviceError(
            "a tuning program left choices open",
            field=f"{producer}.{name}",
            value=values,
            remedy="prepare the model again, or report a fault of this device",
        )
    return values
