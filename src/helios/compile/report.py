"""What start-up did, phase by phase: kept when it succeeds and when it fails."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helios.compile.plan import Plan
from helios.errors import HeliosError


@dataclass(frozen=True, slots=True)
class Phase:
    """A finished part of start-up."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Failure:
    """What ended a start-up: the phase it happened in and the error's own words."""

    phase: str
    kind: str
    message: str
    field: str
    value: str
    remedy: str


class StartupReport:
    """Grows while a model is loaded; `to_dict` is what the server shows and `--report` writes.

    Planned bytes are the plan's, committed bytes those that the runtime allocated, and measured
    bytes the resident set of this process now.
    """

    def __init__(self) -> None:
        self.phases: list[Phase] = []
        self.plan: Plan | None = None
        self.budget_nbytes: int | None = None
        self.committed_nbytes: int | None = None
        self.failure: Failure | None = None

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase; an error in it is recorded and passes on."""
        start = time.perf_counter()
        try:
            yield
        except Exception as error:
            if self.failure is None:
                self.failure = _failure(name, error)
            raise
        finally:
            self.phases.append(Phase(name, time.perf_counter() - start))

    @property
    def seconds(self) -> float:
        """Time of all phases together."""
        return sum(phase.seconds for phase in self.phases)

    @property
    def planned_nbytes(self) -> int | None:
        """Bytes that the plan counted."""
        return None if self.plan is None else self.plan.total_nbytes

    def to_dict(self) -> dict[str, Any]:
        """Plain data; memory is measured when this is called."""
        return {
            "phases": [{"name": p.name, "seconds": round(p.seconds, 6)} for p in self.phases],
            "memory": {
                "budget": self.budget_nbytes,
                "planned": self.planned_nbytes,
                "committed": self.committed_nbytes,
                "measured": resident_nbytes(),
            },
            "plan": None if self.plan is None else summary(self.plan),
            "failure": None if self.failure is None else _failure_dict(self.failure),
        }


def summary(plan: Plan) -> dict[str, Any]:
    """A plan in a few lines: identity, limits and the memory table."""
    limits = plan.limits
    return {
        "id": plan.id,
        "device": {
            "kind": plan.device.kind,
            "isa": plan.device.isa,
            "numerics": plan.device.numerics,
        },
        "limits": {
            "context": limits.context,
            "sequences": limits.sequences,
            "batch_tokens": limits.batch_tokens,
            "pages": limits.pages,
            "snapshots": limits.snapshots,
        },
        "sections": [{"name": s.name, "nbytes": s.nbytes} for s in plan.sections],
        "total": plan.total_nbytes,
    }


def resident_nbytes(status: Path = Path("/proc/self/status")) -> int | None:
    """Resident bytes of this process, or None where the system does not say."""
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:")), None)


def _failure(phase: str, error: Exception) -> Failure:
    if isinstance(error, HeliosError):
        value = "" if error.value is None else str(error.value)
        return Failure(phase, type(error).__name__, error.message, error.field, value, error.remedy)
    return Failure(phase, type(error).__name__, str(error), "", "", "")


def _failure_dict(failure: Failure) -> Mapping[str, str]:
    return {
        "phase": failure.phase,
        "kind": failure.kind,
        "message": failure.message,
        "field": failure.field,
        "value": failure.value,
        "remedy": failure.remedy,
    }
