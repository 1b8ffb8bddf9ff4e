"""Host cost of scheduling: the real scheduler, a simulated device, many concurrent requests.

Prints the processor time of `next` and `retire` per scheduled token, how it grows from 100 to
10,000 concurrent requests, and what a decoding step costs at short and at long contexts. Run it
as `python -m benchmarks.scheduler_scale`.
"""

import argparse
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from time import thread_time_ns

from rich.console import Console
from rich.table import Table

from helios.contract.operation import Operation
from helios.contract.submission import Geometry, Sampling, Variant
from helios.runtime.simulated import SimulatedDevice
from helios.scheduler.request import Request
from helios.scheduler.scheduler import Scheduler

ROWS = 256
STEP_TOKENS = 2048
PAGE_TOKENS = 16
VOCABULARY = 32_000


@dataclass(slots=True)
class Measured:
    """Host time and what it was spent on."""

    nanoseconds: int = 0
    steps: int = 0
    tokens: int = 0
    preemptions: int = 0

    @property
    def per_token(self) -> float:
        """Microseconds per scheduled token."""
        return self.nanoseconds / 1000 / max(self.tokens, 1)

    @property
    def per_step(self) -> float:
        """Microseconds per step."""
        return self.nanoseconds / 1000 / max(self.steps, 1)


def geometry(slots: int, pages: int, context: int = 16_384) -> Geometry:
    """A device with room for `slots` requests at once."""
    rows = min(slots, ROWS)
    sizes = {
        Operation.INITIALIZE: (rows, rows),
        Operation.RESUME: (rows, rows),
        Operation.RESTORE: (rows, rows),
        Operation.PREFILL: (rows, STEP_TOKENS),
        Operation.DECODE: (rows, rows),
        Operation.MIXED: (rows, STEP_TOKENS),
    }
    return Geometry(
        context_tokens=context,
        page_tokens=PAGE_TOKENS,
        pages=pages,
        slots=slots,
        snapshots=256,
        vocabulary=VOCABULARY,
        input_vocabulary=VOCABULARY,
        variants=tuple(Variant(o.name, o, r, t) for o, (r, t) in sizes.items()),
    )


def prompts(count: int, length: int) -> Iterator[tuple[int, ...]]:
    """Prompts that share their first half."""
    shared = tuple(range(length // 2))
    for number in range(count):
        rest = (number * 7 + position * 13 for position in range(length - length // 2))
        yield shared + tuple(token % VOCABULARY for token in rest)


def serve(scheduler: Scheduler, device: SimulatedDevice) -> Measured:
    """Run until idle, timing the scheduler alone."""
    measured = Measured()
    while not scheduler.idle:
        while True:
            start = thread_time_ns()
            submission = scheduler.next()
            measured.nanoseconds += thread_time_ns() - start
            if submission is None:
                break
            measured.steps += 1
            measured.tokens += sum(lane.query_length for lane in submission.lanes)
            device.submit(submission)
        completion = device.wait()
        assert completion is not None, "the scheduler stalled"
        start = thread_time_ns()
        scheduler.retire(completion)
        measured.nanoseconds += thread_time_ns() - start
    measured.preemptions = scheduler.counters.preemptions
    assert scheduler.check_integrity() == []
    return measured


def crowd(requests: int, slots: int, pages: int, prompt: int, output: int) -> Measured:
    """All requests arrive at once and are served to their ends."""
    shape = geometry(slots, pages)
    scheduler, device = Scheduler(shape), SimulatedDevice(shape)
    for number, tokens in enumerate(prompts(requests, prompt)):
        scheduler.admit(Request(number, tokens, output, Sampling(temperature=0, seed=number)))
    return serve(scheduler, device)


def decoding(context: int, rows: int, steps: int) -> Measured:
    """Decode `rows` requests for some steps at one context length, prefill left out."""
    shape = geometry(rows, rows * (context + 2 * steps) // PAGE_TOKENS + 2 * rows)
    scheduler, device = Scheduler(shape), SimulatedDevice(shape)
    for number in range(rows):
        tokens = tuple((number + position) % VOCABULARY for position in range(context))
        scheduler.admit(Request(number, tokens, 2 * steps, Sampling(temperature=0)))
    measured = Measured()
    while measured.steps < steps:
        start = thread_time_ns()
        submission = scheduler.next()
        spent = thread_time_ns() - start
        if submission is not None:
            device.submit(submission)
            if submission.operation is not Operation.DECODE or len(submission.lanes) < rows:
                continue
            measured.steps += 1
            measured.tokens += rows
            measured.nanoseconds += spent
            continue
        completion = device.wait()
        assert completion is not None, "the scheduler stalled"
        start = thread_time_ns()
        scheduler.retire(completion)
        measured.nanoseconds += (thread_time_ns() - start) * (measured.steps > 0)
    return measured


def crowd_table(repeats: int) -> Table:
    """Cost per token against the number of concurrent requests."""
    table = Table(title="host cost per scheduled token (goal: at most 20 µs)")
    for column in ("requests", "slots", "pages", "in/out", "steps", "tokens", "preempted"):
        table.add_column(column, justify="right")
    table.add_column("µs/token", justify="right")
    table.add_column("µs/step", justify="right")
    cases = [
        (100, 100, 4_000, 64, 32),
        (1_000, 1_000, 40_000, 64, 32),
        (10_000, 10_000, 400_000, 64, 32),
        (10_000, 256, 10_000, 64, 32),
        (1_000, 256, 1_200, 32, 256),
    ]
    for requests, slots, pages, prompt, output in cases:
        runs = [crowd(requests, slots, pages, prompt, output) for _ in range(repeats)]
        best = min(runs, key=lambda run: run.nanoseconds)
        table.add_row(
            f"{requests:,}",
            f"{slots:,}",
            f"{pages:,}",
            f"{prompt}/{output}",
            f"{best.steps:,}",
            f"{best.tokens:,}",
            f"{best.preemptions:,}",
            f"{best.per_token:.2f}",
            f"{best.per_step:.0f}",
        )
    return table


def context_table(repeats: int) -> Table:
    """Cost per decoding step against the context."""
    table = Table(title="host cost per decoding step of 32 rows")
    for column in ("context", "µs/step", "µs/token"):
        table.add_column(column, justify="right")
    for context in (64, 1_024, 8_000):
        runs = [decoding(context, 32, 400) for _ in range(repeats)]
        best = min(runs, key=lambda run: run.nanoseconds)
        table.add_row(f"{context:,}", f"{best.per_step:.1f}", f"{best.per_token:.2f}")
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="runs per row; the best counts")
    repeats = parser.parse_args().repeats
    gc.freeze()
    console = Console(width=100)
    console.print(crowd_table(repeats))
    console.print(context_table(repeats))


if __name__ == "__main__":
    main()
