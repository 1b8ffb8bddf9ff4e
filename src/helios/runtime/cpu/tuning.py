"""What the steps of a tuning program need to know when they run, beside their own operands."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from helios.program.ir import Op, Program, Weight
from helios.runtime.cpu.lowering import Step
from helios.runtime.cpu.placement import PackedWeight


def measured(
    steps: Sequence[Step],
    tuning: Program,
    programs: Iterable[Program],
    packed: Mapping[str, PackedWeight],
    seconds: float,
    trials: NDArray[np.int64],
) -> list[Step]:
    """The steps with every weight of their class, an equal part of the time, and a place in
    `trials` to count in.

    A single weight would stay in the processor's caches from trial to trial, where serving finds
    the weights of one layer after the other outside of them.
    """
    alike = _classes(programs, packed)
    share = int(seconds * 1e9) // max(len(steps), 1)
    found = []
    for index, ((kind, params), op) in enumerate(zip(steps, tuning.ops, strict=True)):
        exemplar, choices = op.operands
        assert isinstance(exemplar, Weight)
        assert choices is not None
        own = packed[exemplar.name]
        others = [
            weight
            for weight in alike.get(choices.name, {}).values()
            if (weight.layout, weight.rows, weight.columns) == (own.layout, own.rows, own.columns)
        ]
        more = {
            "weights": list(dict.fromkeys(w.address for w in (own, *others))),
            "budget": share,
            "trials": int(trials[index:].ctypes.data),
        }
        found.append((kind, params | more))
    return found


def _classes(
    programs: Iterable[Program], packed: Mapping[str, PackedWeight]
) -> Mapping[str, dict[str, PackedWeight]]:
    """The weights of all products that read each buffer of choices."""
    found: dict[str, dict[str, PackedWeight]] = {}
    for op in _tuned_products(programs):
        weight, choices = op.operands[1], op.operands[3]
        if weight is not None and choices is not None:
            found.setdefault(choices.name, {})[weight.name] = packed[weight.name]
    return found


def _tuned_products(programs: Iterable[Program]) -> Iterator[Op]:
    for program in programs:
        for op in program.ops:
            if op.kind == "linear" and len(op.operands) > 3:
                yield op
