"""Checkpoint capture: copies of the values that a plan retains, step by step.

Retained values keep their places in the arena to the end of a step, on every host device, so they
are read from there after the step ran and before the next one is submitted.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from helios.compile.composition import CompiledModel
from helios.compile.retention import shown_names
from helios.contract.tensor import TensorType
from helios.errors import ConfigurationError
from helios.program.extents import SAMPLED, TOKENS
from helios.records import dataclass
from helios.runtime.dump import Dump
from helios.runtime.packing import PackedStep
from helios.runtime.storage import NUMPY_TYPES, Array, Storage

_ORDER = "values"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A retained value of one program: how it is shown, where it lies, what it is."""

    name: str
    offset: int
    type: TensorType


def checkpoints(compiled: CompiledModel) -> Mapping[str, tuple[Checkpoint, ...]]:
    """The retained values of every program, in order of definition."""
    found: dict[str, tuple[Checkpoint, ...]] = {}
    for program, plan in zip(compiled.programs, compiled.plan.programs, strict=True):
        offsets = {p.name: p.offset for p in plan.placements}
        shown = shown_names(program)
        found[program.name] = tuple(
            Checkpoint(shown[result.name], offsets[result.name], result.type)
            for op in program.ops
            for result in op.results
            if result.name in set(plan.retained)
        )
    return found


def read_checkpoint(point: Checkpoint, storage: Storage, step: PackedStep) -> Array:
    """A view of a retained value as the step left it."""
    shape = point.type.resolve(step.lengths)
    dtype = np.dtype(NUMPY_TYPES[point.type.dtype.text])
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return storage.arena[point.offset : point.offset + nbytes].view(dtype).reshape(shape)


@dataclass
class Recorder:
    """Collects checkpoints of chosen steps. `watch` each submission, `end_step` after each step.

    A step may take several submissions (a prompt in chunks): packed tokens are put one after the
    other, of anything else the last submission's value counts.
    """

    compiled: CompiledModel
    storage: Storage
    wanted: range
    step: int = 0
    arrays: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._points = checkpoints(self.compiled)
        self._parts: dict[str, list[Array]] = {}
        self._order: dict[str, None] = {}

    def watch(self, step: PackedStep) -> None:
        """Copy what a submission retained."""
        if self.step not in self.wanted:
            return
        for point in self._points[step.program]:
            rows = point.type.shape[0] if point.type.shape else 0
            if rows == SAMPLED and not step.lengths[SAMPLED]:
                continue
            parts = self._parts.setdefault(point.name, [])
            if rows != TOKENS:
                parts.clear()
            parts.append(read_checkpoint(point, self.storage, step).copy())
            self._order[point.name] = None

    def end_step(self) -> None:
        """Close a step, whether it was wanted or not."""
        for name, parts in self._parts.items():
            self.arrays[key_of(self.step, name)] = np.concatenate(parts)
        self._parts.clear()
        self.step += 1

    def dump(self, metadata: Mapping[str, str]) -> Dump:
        """Everything collected, with the order in which values are computed."""
        told = {
            "plan": self.compiled.plan.id,
            "device": str(self.compiled.plan.device),
            _ORDER: json.dumps(list(self._order)),
            **metadata,
        }
        return Dump(self.arrays, told)


def key_of(step: int, name: str) -> str:
    """The name of a value at a step in a dump."""
    return f"step.{step}/{name}"


def split_key(key: str) -> tuple[int, str]:
    """The inverse of `key_of`; `ConfigurationError` for a key that is none."""
    head, _, name = key.partition("/")
    word, _, number = head.partition(".")
    if word != "step" or not number.isdecimal() or not name:
        raise ConfigurationError(
            "is not a captured value",
            field="dump",
            value=key,
            remedy="compare dumps that `helios run --capture` wrote",
        )
    return int(number), name


def parse_steps(text: str) -> range:
    """`0:4` for steps 0 to 3, `2` for one, `3:` for all from there on; empty for all."""
    first, colon, last = text.partition(":")
    try:
        start = int(first) if first else 0
        stop = (int(last) if last else 1 << 30) if colon or not text else start + 1
    except ValueError:
        start, stop = 0, -1
    if start < 0 or stop <= start:
        raise ConfigurationError(
            "names no steps", field="--steps", value=text, remedy="write FIRST:LAST, such as 0:4"
        )
    return range(start, stop)


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """How one value differs between two runs, over all steps that both have.

    `first_step` is the first whose relative L2 difference exceeds the tolerance, None if none
    does. `shape` is that of the first step, with both where they differ.
    """

    name: str
    shape: str
    maximum: float
    relative_l2: float
    first_step: int | None


def compare_dumps(left: Dump, right: Dump, tolerance: float) -> Sequence[ValueDifference]:
    """Every value that either run has, in the order in which they are computed."""
    steps: dict[str, list[int]] = {name: [] for dump in (left, right) for name in _order(dump)}
    for key in sorted({*left.arrays, *right.arrays}, key=split_key):
        step, name = split_key(key)
        steps.setdefault(name, []).append(step)
    return [
        _compare_value(left, right, name, found, tolerance)
        for name, found in steps.items()
        if found
    ]


def _order(dump: Dump) -> Sequence[str]:
    """The names that a dump lists; a dump of another tool may list none."""
    try:
        names = json.loads(dump.metadata.get(_ORDER, "[]"))
    except ValueError:
        return ()
    return [str(name) for name in names] if isinstance(names, list) else ()


def _compare_value(
    left: Dump, right: Dump, name: str, steps: Sequence[int], tolerance: float
) -> ValueDifference:
    maximum = relative = 0.0
    first: int | None = None
    shape = ""
    for step in steps:
        a, b = left.arrays.get(key_of(step, name)), right.arrays.get(key_of(step, name))
        shape = shape or _shapes(a, b)
        largest, share = _distance(a, b)
        maximum, relative = max(maximum, largest), max(relative, share)
        if first is None and not share <= tolerance:
            first = step
    return ValueDifference(name, shape, maximum, relative, first)


def _shapes(a: Array | None, b: Array | None) -> str:
    shapes = dict.fromkeys("missing" if x is None else str(list(x.shape)) for x in (a, b))
    return " and ".join(shapes)


def _distance(a: Array | None, b: Array | None) -> tuple[float, float]:
    """Largest absolute and relative L2 difference; infinite where the two can't be compared.

    Places where both hold the same infinity do not differ.
    """
    if a is None or b is None or a.shape != b.shape:
        return float("inf"), float("inf")
    x, y = a.astype(np.float64), b.astype(np.float64)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, x - y)
    if not np.isfinite(difference).all():
        return float("inf"), float("inf")
    scale = float(np.linalg.norm(np.where(np.isfinite(x), x, 0.0)))
    norm = float(np.linalg.norm(difference))
    relative = norm / scale if scale else (float("inf") if norm else 0.0)
    return float(np.abs(difference).max(initial=0.0)), relative
