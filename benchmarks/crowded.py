"""What busy neighbours cost: `python -m benchmarks.crowded`.

Measures the native runtime with as many threads as there are processors, alone and beside just as
many processes that never rest. The system then gives each side half of the machine. A runtime whose
threads wait for each other keeps far less than half; one that hands work on keeps about half.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from benchmarks import prepared
from benchmarks.native_rates import decode_rate, prefill_rate
from benchmarks.servers import MOST_STREAMS
from benchmarks.spread import Spread, number, paired_ratio, spread, text
from helios.runtime.loader import LoadedModel

PROMPT, GENERATED = 512, 64
FAIR = 0.5
_RESTLESS = "while True: pass"


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """Processes that keep one processor busy each."""
    made = [subprocess.Popen([sys.executable, "-c", _RESTLESS]) for _ in range(count)]
    try:
        yield
    finally:
        for process in made:
            process.kill()
        for process in made:
            process.wait()


def rates(loaded: LoadedModel) -> dict[str, float]:
    """Tokens per second."""
    return {
        f"prefill of {PROMPT} tokens": prefill_rate(loaded, PROMPT),
        f"decode of {GENERATED} tokens": decode_rate(loaded, GENERATED),
    }


def compared(
    alone: Sequence[Mapping[str, float]], crowded: Sequence[Mapping[str, float]]
) -> dict[str, dict[str, Spread]]:
    """Each rate alone and crowded, and the share that is kept, repeat by repeat."""
    found = {}
    for name in alone[0]:
        quiet, busy = [run[name] for run in alone], [run[name] for run in crowded]
        kept = paired_ratio(busy, quiet)
        found[name] = {"alone": spread(quiet), "crowded": spread(busy), "kept": kept}
    return found


def table(found: Mapping[str, Mapping[str, Spread]]) -> Table:
    """One row for each rate."""
    shown = Table("tokens/s")
    for column in ("alone", "crowded", "kept", "fair"):
        shown.add_column(column, justify="right")
    for name, row in found.items():
        shown.add_row(name, *(text(row[c]) for c in ("alone", "crowded", "kept")), number(FAIR))
    return shown


def main() -> None:
    """Measure and print."""
    processors = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crowded", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=processors, help="of the runtime")
    parser.add_argument("--neighbours", type=int, default=processors, help="restless processes")
    parser.add_argument("--json", action="store_true", help="print tokens per second as JSON")
    given = parser.parse_args()
    prepared.prepare(MOST_STREAMS)
    alone, crowded = [], []
    with prepared.loaded_core("", given.threads) as loaded:
        rates(loaded)
        for _ in range(given.repeats):
            alone.append(rates(loaded))
            with neighbours(given.neighbours):
                crowded.append(rates(loaded))
    found = compared(alone, crowded)
    if given.json:
        plain = {name: {k: asdict(v) for k, v in row.items()} for name, row in found.items()}
        print(json.dumps(plain, indent=2))
    else:
        Console(width=100).print(table(found))


if __name__ == "__main__":
    main()
