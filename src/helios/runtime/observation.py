"""Observation mode: a device held against the reference, operation by operation.

Both are loaded with every value retained. After each submission to the observed device the same
goes to the reference, which computes each operation from the observed operands, so that a result
is judged by its own operation's tolerance and errors do not add up.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from helios.compile.options import CompileOptions
from helios.compile.retention import EVERYTHING
from helios.contract.submission import Completion, Geometry, LaneMasks, Submission
from helios.errors import ConfigurationError, DeviceError
from helios.program.ir import Op
from helios.program.ops import OPS
from helios.records import dataclass
from helios.runtime.capture import Checkpoint, checkpoints, read_checkpoint
from helios.runtime.loader import LoadedModel
from helios.runtime.packing import PackedStep
from helios.runtime.reference.device import ReferenceRunner
from helios.runtime.single import SingleRequest, StepResult
from helios.runtime.storage import Array

OBSERVED = CompileOptions(retained=EVERYTHING)
"""What to compile with, so that every operation's output is kept."""


@dataclass(frozen=True, slots=True)
class OperationError:
    """How far one result is from the reference's, per unit of the largest absolute result."""

    program: str
    index: int
    kind: str
    value: str
    error: float
    tolerance: float

    @property
    def holds(self) -> bool:
        """Whether the operation's tolerance covers the error."""
        return self.error <= self.tolerance


class Observation:
    """An executor that submits to both models and compares what every operation made."""

    def __init__(self, observed: LoadedModel, reference: LoadedModel) -> None:
        runner = reference.runner
        if not isinstance(runner, ReferenceRunner):
            raise ConfigurationError(
                "the second model must run on the reference device", field="reference"
            )
        for loaded in (observed, reference):
            if loaded.plan.retained != EVERYTHING:
                raise ConfigurationError(
                    "the model was not compiled for observation",
                    field="retained",
                    value=loaded.plan.retained,
                    remedy="load it with `observation.OBSERVED`",
                )
        self._observed, self._reference = observed, reference
        points = checkpoints(observed.compiled)
        self._points = {
            program.name: _by_value(program.ops, points[program.name])
            for program in observed.compiled.programs
        }
        self._ops = {program.name: program.ops for program in observed.compiled.programs}
        self._submission: Submission | None = None
        self._masks: Sequence[LaneMasks] = ()
        self.errors: list[OperationError] = []
        runner.observer = self._compare

    @property
    def geometry(self) -> Geometry:
        """The observed model's."""
        return self._observed.model.geometry

    def submit(self, submission: Submission) -> None:
        """Start the step on the observed device."""
        self._observed.model.submit(submission)
        self._submission = submission

    def supply(self, sequence: int, masks: Sequence[LaneMasks]) -> None:
        """Supply the observed device, and the reference when its turn comes."""
        self._observed.model.supply(sequence, masks)
        self._masks = masks

    def wait(self, timeout: float | None = None) -> Completion | None:
        """The observed completion; the reference ran the step too when this returns."""
        done = self._observed.model.wait(timeout)
        if done is None or done.error is not None or self._submission is None:
            return done
        self._reference.model.submit(self._submission)
        if self._submission.masked:
            self._reference.model.supply(self._submission.sequence, self._masks)
        again = self._reference.model.wait(timeout)
        if again is None:
            raise DeviceError("the reference stands still", field=self._submission.program)
        return done if again.error is None else again

    def close(self) -> None:
        """Close both models."""
        self._observed.model.close()
        self._reference.model.close()

    def run(self, prompt: Sequence[int], steps: int, chunk: int = 0) -> Iterator[StepResult]:
        """Generate greedily on both."""
        return SingleRequest(self).generate(prompt, steps, chunk=chunk)

    def _compare(self, program: str, index: int, value: str, made: Array) -> None:
        """Judge one result, then let the reference go on from the observed one."""
        op = self._ops[program][index]
        point = self._points[program][value]
        step = PackedStep(program, 0, _lengths(point, made), ())
        seen = read_checkpoint(point, self._observed.storage, step)
        tolerance = OPS[op.kind].tolerance
        error = relative_error(seen, made)
        self.errors.append(OperationError(program, index, op.kind, value, error, tolerance))
        made[...] = seen


def relative_error(seen: Array, expected: Array) -> float:
    """The largest difference per unit of the largest finite expected value; equal infinities do
    not differ, other differences at infinity are infinite."""
    x, y = seen.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        difference = np.where(x == y, 0.0, np.abs(x - y))
    largest = float(difference.max(initial=0.0))
    scale = float(np.abs(np.where(np.isfinite(y), y, 0.0)).max(initial=0.0))
    if np.isnan(difference).any():
        return float("inf")
    return largest / scale if scale else largest


def _by_value(ops: Sequence[Op], points: Sequence[Checkpoint]) -> dict[str, Checkpoint]:
    names = [result.name for op in ops for result in op.results]
    return dict(zip(names, points, strict=True))


def _lengths(point: Checkpoint, made: Array) -> dict[str, int]:
    pairs = zip(point.type.shape, made.shape, strict=True)
    return {dim: length for dim, length in pairs if isinstance(dim, str)}
