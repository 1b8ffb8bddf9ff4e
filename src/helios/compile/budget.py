"""How much memory a model may use: what was asked for, or a fraction of what is free now.

Free is what the system says a new program can have without swapping, less whatever the control
groups (versions 1 and 2) that this process lives in leave of their own limits.
"""

import math
from collections.abc import Iterator
from pathlib import Path

from helios.errors import ConfigurationError
from helios.records import dataclass

DEFAULT_FRACTION = 0.8

_UNITS = {
    "": 1,
    **{f"{p}{s}": 1024**n for n, p in enumerate("kmgt", 1) for s in ("", "i", "ib")},
    **{f"{p}b": 1000**n for n, p in enumerate("kmgt", 1)},
    "b": 1,
}


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes that a plan may use, and the words that say where the number comes from."""

    nbytes: int
    origin: str


def parse_memory(text: str) -> int | float:
    """`8GiB`, `500MB`, `4096` as bytes; `0.5` and `50%` as a fraction.

    A bare K, M, G or T counts in powers of 1024. Raises `ConfigurationError` for anything else.
    """
    word = text.strip().lower()
    number = word.rstrip("abcdefghijklmnopqrstuvwxyz% ")
    unit = word[len(number) :].strip()
    try:
        amount = float(number)
    except ValueError:
        amount = math.nan
    if not math.isfinite(amount) or amount <= 0 or unit not in (*_UNITS, "%"):
        raise ConfigurationError(
            "is no amount of memory",
            field="--memory",
            value=text,
            remedy="write bytes as 8GiB or 500MB, or a fraction as 0.5 or 50%",
        )
    if unit == "%" or (not unit and amount <= 1):
        return _fraction(amount / 100 if unit else amount, text)
    return int(amount * _UNITS[unit])


def _fraction(amount: float, text: str) -> float:
    if amount > 1:
        raise ConfigurationError(
            "a fraction of memory can't be above one",
            field="--memory",
            value=text,
            remedy="write at most 1.0 or 100%",
        )
    return amount


def size_text(nbytes: int) -> str:
    """A size in words: 1.50 GiB."""
    amount, unit = float(nbytes), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(amount) < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{nbytes} bytes" if unit == "bytes" else f"{amount:.2f} {unit}"


def budget(memory: int | float | None, available: int | None = None) -> Budget:
    """The budget for a request: bytes as they are, a fraction of what is available."""
    if isinstance(memory, int):
        return Budget(memory, "--memory")
    fraction = DEFAULT_FRACTION if memory is None else memory
    free = available_nbytes() if available is None else available
    return Budget(int(free * fraction), f"{fraction:.0%} of the memory that is available")


def available_nbytes(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes a new program can use now, counting other processes and control-group limits."""
    return min(_system_available(proc), *_group_rooms(proc, groups))


def _system_available(proc: Path) -> int:
    for line in proc.joinpath("meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    raise ConfigurationError(
        "the system does not say how much memory is available",
        field=str(proc / "meminfo"),
        remedy="give --memory in bytes",
    )


def _group_rooms(proc: Path, groups: Path) -> Iterator[int]:
    """What each control group above this process leaves of its limit."""
    yield 1 << 62
    membership = proc / "self" / "cgroup"
    if not membership.exists():
        return
    for line in membership.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _rooms_above(groups, path, "memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            yield from _rooms_above(
                groups / "memory",
                path,
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_inactive_file",
            )


def _rooms_above(root: Path, path: str, limit: str, usage: str, reclaimable: str) -> Iterator[int]:
    """From the group itself up to the root: each limit binds. Inside a container the path may
    lie above the mounted root, which then is the group itself."""
    parts = [p for p in path.split("/") if p and p != ".."]
    for depth in range(len(parts), -1, -1):
        group = root.joinpath(*parts[:depth])
        most, used = _number(group / limit), _number(group / usage)
        if most is not None and used is not None:
            yield max(0, most - used + _statistic(group / "memory.stat", reclaimable))


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None  # "max" is no limit


def _statistic(path: Path, name: str) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(name + " ")), 0)
