"""`helios diff-runs`: where two captured runs differ, and from which step on."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

from rich.table import Table

from helios.cli.command import Argument, Option
from helios.cli.console import JsonFlag, out, print_json
from helios.runtime.capture import ValueDifference, compare_dumps
from helios.runtime.dump import read_dump


def diff_runs(
    left: Annotated[Path, Argument(help="A dump of `helios run --capture`.")],
    right: Annotated[Path, Argument(help="Another one.")],
    tolerance: Annotated[
        float, Option(min=0.0, help="Relative L2 difference up to which values agree.")
    ] = 1e-3,
    as_json: JsonFlag = False,
) -> None:
    """Compare two runs value by value; exit 1 if any diverges."""
    a, b = read_dump(left), read_dump(right)
    found = compare_dumps(a, b, tolerance)
    if as_json:
        print_json([_plain(difference) for difference in found])
    else:
        for name, dump in ((left, a), (right, b)):
            told = dump.metadata
            where = f"{told.get('device', '?')}, plan {told.get('plan', '?')[:16]}"
            out.print(f"{name}: {where}", highlight=False)
        out.print(_table(found), highlight=False)
    if any(difference.first_step is not None for difference in found):
        sys.exit(1)


def _plain(difference: ValueDifference) -> dict[str, Any]:
    """JSON has no infinity: what can't be compared is null."""
    facts = asdict(difference)
    return {k: None if isinstance(v, float) and not isfinite(v) else v for k, v in facts.items()}


def _table(found: Sequence[ValueDifference]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("value", "shape", "max abs", "relative L2", "diverges at step"):
        table.add_column(name, justify="left" if name in ("value", "shape") else "right")
    for difference in found:
        first = difference.first_step
        table.add_row(
            difference.name,
            difference.shape,
            f"{difference.maximum:.3g}",
            f"{difference.relative_l2:.3g}",
            "-" if first is None else str(first),
            style="" if first is None else "red",
        )
    return table
