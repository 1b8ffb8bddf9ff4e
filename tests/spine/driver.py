"""Driving a loaded model by hand, step by step, without a scheduler."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from helios.contract.operation import Operation
from helios.contract.submission import (
    Completion,
    Lane,
    LaneAdmission,
    LaneCompletion,
    Sampling,
    Submission,
)
from helios.core.reader import Core
from helios.program.ir import Role
from helios.runtime.loader import LoadOptions, load_model
from helios.runtime.model import Model
from helios.runtime.reference.device import ReferenceRunner, ReferenceRuntime

GREEDY = Sampling(temperature=0.0, top_logprobs=5)


@dataclass
class Row:
    """A request as the driver keeps it. `consumed` counts tokens in its history."""

    slot: int
    generation: int
    prompt: list[int]
    output: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    consumed: int = 0
    pages: int = 0


class Driver:
    """Submits steps to a model and checks the plain facts of every completion."""

    def __init__(self, core: Core, **options: int) -> None:
        defaults = {"context": 2048, "concurrency": 8, "pages": 160, "snapshots": 4}
        loaded = load_model(core, ReferenceRuntime(), LoadOptions(**(defaults | options)))
        self.model: Model = loaded.model
        self.plan = loaded.plan
        self.contract = loaded.contract
        self._programs = {p.name: p for p in core.programs()}
        self._sequence = 0
        self._generation = 0
        self._free_pages = list(range(self.plan.limits.pages))
        self.logits: list[np.ndarray] = []
        runner = self.model._runner
        assert isinstance(runner, ReferenceRunner)
        runner.observer = self._observe

    def admit(self, slot: int, prompt: Sequence[int], sampling: Sampling = GREEDY) -> Row:
        """INITIALIZE one slot."""
        self._generation += 1
        row = Row(slot, self._generation, list(prompt))
        lane = Lane(slot, row.generation, 0, admission=LaneAdmission(sampling, row.prompt))
        self.step(Operation.INITIALIZE, [lane])
        return row

    def prefill(self, row: Row, chunk: int) -> None:
        """Consume the whole prompt in chunks, sampling after the last."""
        while row.consumed < len(row.prompt):
            self.take(Operation.PREFILL, [self.prompt_lane(row, chunk)], [row])

    def decode(self, rows: Sequence[Row], count: int) -> None:
        """`count` decode steps of all rows together."""
        for _ in range(count):
            self.take(Operation.DECODE, [self.decode_lane(row) for row in rows], rows)

    def prompt_lane(self, row: Row, chunk: int) -> Lane:
        """The next chunk of a prompt."""
        tokens = row.prompt[row.consumed : row.consumed + chunk]
        last = row.consumed + len(tokens) == len(row.prompt)
        return self._lane(row, len(tokens), tokens, sample=last)

    def decode_lane(self, row: Row) -> Lane:
        """One token, which the device itself holds."""
        return self._lane(row, 1, (), sample=True)

    def take(self, operation: Operation, lanes: list[Lane], rows: Sequence[Row]) -> Completion:
        """Run a step and book its results."""
        completion = self.step(operation, lanes)
        for row, lane, record in zip(rows, lanes, completion.lanes, strict=True):
            self._book(row, lane, record)
        return completion

    def step(self, operation: Operation, lanes: list[Lane]) -> Completion:
        """Submit and wait."""
        program = self.contract.graphs_of(operation)[0].program
        sequence, self._sequence = self._sequence, self._sequence + 1
        self.model.submit(Submission(sequence, sequence % 2, operation, program, tuple(lanes)))
        completion = self.model.wait(timeout=600)
        assert completion is not None
        if completion.error is not None:
            raise completion.error
        assert completion.sequence == sequence
        return completion

    def _lane(self, row: Row, length: int, tokens: Sequence[int], *, sample: bool) -> Lane:
        page_tokens = self.contract.cache.page_tokens
        needed = -(-(row.consumed + length) // page_tokens)
        fresh = tuple((i, self._free_pages.pop()) for i in range(row.pages, needed))
        row.pages = needed
        return Lane(
            row.slot, row.generation, row.consumed, length, tuple(tokens), sample, new_pages=fresh
        )

    def _book(self, row: Row, lane: Lane, record: LaneCompletion) -> None:
        row.consumed += lane.query_length
        assert (record.slot, record.generation) == (row.slot, row.generation)
        assert record.endpoint == row.consumed
        assert record.accepted == len(record.tokens) == int(lane.sample)
        row.output.extend(record.tokens)
        if record.logprob is not None:
            row.logprobs.append(record.logprob)

    def _observe(self, program: str, index: int, name: str, array: np.ndarray) -> None:
        results = self._programs[program].ops[index].results
        if any(r.name == name and r.role is Role.LOGITS for r in results):
            self.logits.append(array.copy())


def with_snapshot(lane: Lane, destination: int) -> Lane:
    """The lane, saving its partial page into a continuation row."""
    return replace(lane, snapshot_destination=destination)
