"""What start-up did, phase by phase: kept when it succeeds and when it fails."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any

from helios.compile.accuracy import TensorError
from helios.compile.canonical import frozen, plain
from helios.compile.plan import Limits, Plan
from helios.errors import HeliosError
from helios.records import dataclass

PROCESS_NBYTES = 160 << 20
"""What a serving process takes beside its plan: interpreter, libraries, tokenizer, and requests'
own objects. Measured with SmolLM2: 105 MB at the end of full load."""


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """What was asked for, what was chosen, and the peaks of the two start-up workloads.

    It is attached to a compiled model only if all of it is true of the retained plan.
    """

    budget_nbytes: int
    budget_origin: str
    explicit: Mapping[str, int] = field(hash=False)
    selected: Limits
    prefill_peak_nbytes: int
    decode_peak_nbytes: int
    total_nbytes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "explicit", frozen(self.explicit))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return dict(plain(self))


@dataclass(frozen=True, slots=True)
class TuningReport:
    """What tuning programs tried in all, and the choices in every buffer that they filled."""

    trials: int = 0
    choices: Mapping[str, tuple[int, ...]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "choices", frozen(self.choices))


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
        self.memory: MemoryReport | None = None
        self.committed_nbytes: int | None = None
        self.errors: Mapping[str, TensorError] = {}
        self.tuning = TuningReport()
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

    def memory_dict(self) -> dict[str, int | None]:
        """Planned, committed and measured bytes, apart; measured now."""
        return {
            "budget": None if self.memory is None else self.memory.budget_nbytes,
            "planned": None if self.plan is None else self.plan.total_nbytes,
            "committed": self.committed_nbytes,
            "measured": resident_nbytes(),
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "phases": [{"name": p.name, "seconds": round(p.seconds, 6)} for p in self.phases],
            "memory": self.memory_dict(),
            "fit": None if self.memory is None else self.memory.to_dict(),
            "plan": None if self.plan is None else summary(self.plan),
            "approximations": plain(self.errors),
            "tuning": plain(self.tuning),
            "failure": plain(self.failure),
        }

    def write(self, path: Path) -> None:
        """Write the report as JSON, whether start-up succeeded or not."""
        path.write_text(json.dumps(self.to_dict(), indent=2) + "\n")


def summary(plan: Plan) -> dict[str, Any]:
    """A plan in a few lines: identity, limits and the memory table."""
    return {
        "id": plan.id,
        "device": plain(plan.device),
        "limits": plain(plan.limits),
        "sections": {section.name: section.nbytes for section in plan.sections if section.nbytes},
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
