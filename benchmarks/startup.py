"""Where the time of a start goes: `python -m benchmarks.startup`.

Starts `helios serve` on the prepared core again and again, and prints how long each phase took,
from exec to the end of a first completion.
"""

import argparse
import asyncio
import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from urllib.request import urlopen

from rich.console import Console
from rich.table import Table

from benchmarks import prepared
from benchmarks.client import HOST, Target, complete
from benchmarks.servers import FIRST_PROMPT, MOST_STREAMS, free_port
from benchmarks.spread import Spread, number, spread

LAUNCH = "interpreter, command line, listener"
FIRST = "first completion"
TOTAL = "exec to first completion"


class StartedServer:
    """A server that was started, and when it was told to be ready, in seconds from exec."""

    def __init__(self, threads: int) -> None:
        self.port = free_port()
        self.begun = time.perf_counter()
        self._process = subprocess.Popen(
            prepared.serve_command(self.port, threads),
            env={**os.environ, **prepared.ENVIRONMENT},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            said.append(line)
            if line.startswith("ready"):
                self.ready = time.perf_counter() - self.begun
                return
        self.close()
        raise SystemExit("the server does not start:\n" + "".join(said))

    def phases(self) -> dict[str, float]:
        """The phases that the server itself reports, in seconds, in order."""
        with urlopen(f"http://{HOST}:{self.port}/v1/helios/plan") as answer:
            found: dict[str, float] = {}
            for phase in json.load(answer)["phases"]:
                found[phase["name"]] = found.get(phase["name"], 0) + phase["seconds"]
            return found

    def close(self) -> None:
        """End the process and wait for it."""
        self._process.terminate()
        self._process.communicate()


def start(threads: int) -> dict[str, float]:
    """Seconds of every phase of one start."""
    with closing(StartedServer(threads)) as server:
        asyncio.run(complete(Target(server.port, "smollm2"), FIRST_PROMPT, 1))
        total = time.perf_counter() - server.begun
        return divided(server.phases(), server.ready, total)


def divided(phases: Mapping[str, float], ready: float, total: float) -> dict[str, float]:
    """All of a start: its own phases, what lies around them, and their sum."""
    launch = ready - sum(phases.values())
    return {LAUNCH: launch, **phases, FIRST: total - ready, TOTAL: total}


def collected(starts: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    """The spread of every phase in milliseconds."""
    return {name: spread([1e3 * start[name] for start in starts]) for name in starts[0]}


def table(found: Mapping[str, Spread]) -> Table:
    """Phases in order, and what share of the whole each takes."""
    shown = Table("phase")
    for column in ("ms", "lowest", "highest", "share"):
        shown.add_column(column, justify="right")
    for name, values in found.items():
        shown.add_row(
            name,
            *(number(value) for value in (values.median, values.low, values.high)),
            f"{values.median / found[TOTAL].median:.0%}",
            end_section=name == FIRST,
        )
    return shown


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--repeats", type=int, default=10, help="starts that count, after one more")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of the CPU")
    parser.add_argument("--json", action="store_true", help="print milliseconds as JSON")
    given = parser.parse_args()
    prepared.prepare(MOST_STREAMS)
    start(given.threads)  # reads files that the next ones find in memory
    found = collected([start(given.threads) for _ in range(given.repeats)])
    if given.json:
        print(json.dumps({name: asdict(values) for name, values in found.items()}, indent=2))
    else:
        Console(width=100).print(table(found))


if __name__ == "__main__":
    main()
