"""What the machine is, and how busy it is with work that is not ours."""

import os
import platform
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

_FLAGS = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "amx_int8", "asimddp", "i8mm")


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts that figures depend on. `busy` is the share of all processors in use before a run."""

    processor: str
    processors: int
    instructions: str
    memory_gb: float
    kernel: str
    helios: str
    busy: float


def machine() -> Machine:
    """Look; takes three seconds."""
    return Machine(
        processor=_field(Path("/proc/cpuinfo"), "model name") or platform.machine(),
        processors=len(os.sched_getaffinity(0)),
        instructions=" ".join(f for f in _FLAGS if f in _flags()),
        memory_gb=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        kernel=platform.release(),
        helios=_commit(),
        busy=round(busy_share(3.0), 3),
    )


def busy_share(seconds: float) -> float:
    """The share of processor time that was used, or stolen by other machines, meanwhile."""
    first = _processor_times()
    time.sleep(seconds)
    return share_used(first, _processor_times())


def share_used(before: list[int], after: list[int]) -> float:
    """1 - idle/total between two `cpu` lines of /proc/stat; waiting for disks counts as idle."""
    passed = [b - a for a, b in zip(before, after, strict=True)]
    idle = passed[3] + passed[4]
    return 1 - idle / max(sum(passed[:8]), 1)


def _processor_times() -> list[int]:
    return [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]


def _field(path: Path, name: str) -> str:
    lines = path.read_text().splitlines()
    return next((ln.partition(":")[2].strip() for ln in lines if ln.startswith(name)), "")


def _flags() -> set[str]:
    info = Path("/proc/cpuinfo")
    return set((_field(info, "flags") or _field(info, "Features")).split())


def _commit() -> str:
    """The commit that was measured, `+` if the tree differs from it."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent)
    return done.stdout.strip() or "unknown"
