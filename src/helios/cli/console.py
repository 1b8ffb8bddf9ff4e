"""What every command shares: consoles, JSON output, progress bars, and how an error ends it."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from rich.console import Console

from helios.cli.command import Option
from helios.errors import HeliosError

out = Console()
err = Console(stderr=True)

JsonFlag = Annotated[bool, Option(names=("--json",), help="Print JSON instead of tables.")]


def print_json(data: Any) -> None:
    """Write data to standard output as indented JSON, and nothing else."""
    json.dump(data, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


def print_error(error: HeliosError) -> None:
    """Write an error to standard error, with its remedy on a line of its own."""
    where = f"{error.field}: " if error.field else ""
    found = f" (got {error.value!r})" if error.value is not None else ""
    err.print("error:", style="bold red", end=" ")
    err.print(f"{where}{error.message}{found}", markup=False, highlight=False)
    if error.remedy:
        err.print("       " + error.remedy, style="dim", markup=False, highlight=False)


@contextmanager
def byte_progress(description: str, *, show: bool = True) -> Iterator[Callable[[int, int], None]]:
    """A progress bar over bytes; yields `update(done, total)`. Silent off a terminal."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, disable=not (show and err.is_terminal)) as bar:
        task = bar.add_task(description, total=None)

        def update(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield update


def nbytes_text(nbytes: int) -> str:
    """A byte count for people: `93.8 MiB`."""
    size = float(nbytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
