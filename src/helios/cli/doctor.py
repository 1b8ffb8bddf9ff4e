"""`helios doctor`: what this machine has, what Helios makes of it, and what is wrong."""

import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from rich.markup import escape
from rich.table import Table

import helios
from helios.cli.command import Option
from helios.cli.console import JsonFlag, nbytes_text, out, print_json
from helios.cli.models import cache_folder
from helios.compile.budget import available_nbytes
from helios.core.trust import TrustStore, helios_home
from helios.errors import HeliosError
from helios.records import dataclass

_ROOM_NBYTES = 512 << 20  # below this hardly any model fits
_MARKS = {"good": "green", "note": "yellow", "bad": "red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about one thing. `state` is good, note, or bad, which has a remedy."""

    subject: str
    found: str
    state: str = "good"
    remedy: str = ""


def doctor(
    measure: Annotated[
        bool,
        Option(names=("--measure",), help="Measure the processor's limits, for some seconds."),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Say what this machine has and what is wrong; exit 1 if something is."""
    findings = list(examined(measure))
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings]})
    else:
        out.print(_table(findings))
    if any(finding.state == "bad" for finding in findings):
        sys.exit(1)


def examined(measure: bool) -> Iterator[Finding]:
    """All findings. Whatever can't be examined is one that says so."""
    yield Finding("helios", f"{helios.__version__} on Python {platform.python_version()}")
    checks: list[tuple[str, Callable[[], Iterator[Finding]]]] = [
        ("cpu runtime", _runtime),
        ("instructions", _instructions),
        ("memory", _memory),
        ("keys", _keys),
        ("cache", _cache),
    ]
    if measure:
        checks.append(("limits", _limits))
    for subject, check in checks:
        try:
            yield from check()
        except HeliosError as error:
            where = f"{error.field}: " if error.field else ""
            remedy = error.remedy or _REMEDIES[subject]
            yield Finding(subject, where + error.message, "bad", remedy)
        except (OSError, ImportError) as error:
            yield Finding(subject, str(error), "bad", _REMEDIES[subject])


_REMEDIES = {
    "cpu runtime": "install Helios again; `--device reference` runs without it, slowly",
    "instructions": "unset HELIOS_ISA, or set it to one that this processor runs",
    "memory": "give --memory in bytes when serving",
    "keys": "set HELIOS_HOME to a folder of your own",
    "cache": "set HELIOS_CACHE to a folder of your own",
    "limits": "leave out --measure",
}


def _runtime() -> Iterator[Finding]:
    from helios import _native
    from helios.runtime.cpu.numerics import DEFAULT_NUMERICS

    built = _native.build_info()
    sanitizer = built["sanitizer"]
    yield Finding(
        "cpu runtime",
        f"built by compiler {built['compiler']}"
        + (f" with the {sanitizer} sanitizer" if sanitizer else ""),
        "note" if sanitizer else "good",
    )
    usable, present = _native.usable_processors(), os.cpu_count() or 1
    few = f"; affinity or a control group keeps {present - usable} from us"
    yield Finding(
        "processors",
        f"{usable} of {present}" + (few if usable < present else ""),
        "note" if usable < present else "good",
    )
    yield Finding("numerics", f"{DEFAULT_NUMERICS}, unless --numerics says otherwise")


def _instructions() -> Iterator[Finding]:
    from helios import _native

    known, used = _native.build_info()["isas"], _native.isa()
    why = " (HELIOS_ISA asks for it)" if os.environ.get("HELIOS_ISA") else ""
    state = "good" if used == known[0] else "note"
    found = f"{used}{why}; this processor runs {', '.join(known)}"
    yield Finding("instructions", found, state)


def _memory() -> Iterator[Finding]:
    room = available_nbytes()
    yield Finding(
        "memory",
        f"{nbytes_text(room)} available",
        "good" if room >= _ROOM_NBYTES else "bad",
        "" if room >= _ROOM_NBYTES else "end other programs, or raise the control group's limit",
    )


def _keys() -> Iterator[Finding]:
    home = helios_home()
    yield from _writable("keys", home)
    names = TrustStore().namespaces()
    said = ", ".join(names) if names else "nobody yet; the first `helios serve SOURCE` makes a key"
    yield Finding("trusts", said)


def _cache() -> Iterator[Finding]:
    folder = cache_folder()
    yield from _writable("cache", folder)
    if folder.is_dir():
        cores = [path for path in folder.iterdir() if path.suffix == ".core"]
        held = sum(path.stat().st_size for path in cores)
        count = "1 core" if len(cores) == 1 else f"{len(cores)} cores"
        yield Finding("prepared", f"{count}, {nbytes_text(held)}")


def _writable(subject: str, folder: Path) -> Iterator[Finding]:
    """The folder itself if it exists, else the nearest above it that does."""
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
        yield Finding(subject, str(folder) + ("" if folder.exists() else ", not made yet"))
    else:
        yield Finding(subject, f"{nearest} can't be written to", "bad", _REMEDIES[subject])


def _limits() -> Iterator[Finding]:
    from helios import _native

    found = _native.Executor(_native.usable_processors()).ceilings()
    yield Finding(
        "limits",
        f"{found['read_bytes']:.0f} GB/s read, {2 * found['float_macs']:.0f} GFLOP/s, "
        f"{found['integer_macs']:.0f} G byte multiply-accumulates/s",
    )


def _table(findings: list[Finding]) -> Table:
    table = Table(show_header=False, box=None, pad_edge=False)
    for finding in findings:
        color = _MARKS[finding.state]
        remedy = f"\n[dim]{escape(finding.remedy)}[/dim]" if finding.remedy else ""
        mark = f"[{color}]{finding.state}[/{color}]"
        table.add_row(mark, finding.subject, escape(finding.found) + remedy)
    return table
