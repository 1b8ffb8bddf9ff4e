"""Planning: who takes part in the next step, with how many tokens, in which program.

A plan changes nothing but page reservations: every lane's positions are backed by pages before
the lane exists. Cost grows with the lanes planned, not with those who wait or with context.
"""

from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from helios.contract.operation import Operation
from helios.contract.submission import Geometry, Variant
from helios.scheduler.cohort import Programs
from helios.scheduler.job import Job
from helios.scheduler.policy import SchedulerPolicy
from helios.scheduler.residency import Residency
from helios.scheduler.roster import Group, Roster

FILL_SHARE = 4
"""Of `step_tokens`, at least one part in so many is prefill's, so that decoders never stall it."""

_GENERATION = (Operation.PREFILL, Operation.MIXED, Operation.DECODE)


class Part(NamedTuple):
    """One job's part of a step."""

    job: Job
    length: int
    sample: bool


@dataclass(slots=True)
class Plan:
    """A step to be: decoding parts come first."""

    variant: Variant
    parts: list[Part]
    decodes: int = 0

    @property
    def monitored(self) -> bool:
        """Whether the host must see a token of this step before anything else runs."""
        return any(part.sample and part.job.request.monitor for part in self.parts)


class Planner:
    """Chooses the next step. `short` is the first job that found no page while planning."""

    def __init__(
        self,
        programs: Programs,
        roster: Roster,
        residency: Residency,
        geometry: Geometry,
        policy: SchedulerPolicy,
    ) -> None:
        self._programs = programs
        self._roster = roster
        self._residency = residency
        self._page_tokens = geometry.page_tokens
        self._chunk = policy.chunk_tokens or geometry.context_tokens
        self._step_tokens = policy.step_tokens or geometry.context_tokens
        self._mixes = self._can_mix()
        self._generated_last = self._filled_last = False
        self.short: Job | None = None

    @property
    def fill_capacity(self) -> int:
        """The most tokens that one step prefills."""
        return self._programs.roomiest(Operation.PREFILL, 1).tokens

    def plan(self) -> Plan | None:
        """The next step, or None while nobody is ready.

        Generation has every second step at least: setting up and scoring get one between two
        of its. Where programs can't mix, prefilling and decoding take turns in the same way.
        """
        self.short = None
        if not self._generated_last and (plan := self._generation()) is not None:
            return plan
        return self._setup() or self._scoring() or self._generation()

    def departed(self, plan: Plan) -> None:
        """The plan became a submission; whose turn is next follows from it."""
        operation = plan.variant.operation
        self._generated_last = operation in _GENERATION
        if self._generated_last:
            self._filled_last = operation is Operation.PREFILL

    # ---- steps of one kind -------------------------------------------------------------------

    def _setup(self) -> Plan | None:
        for operation, group in self._roster.setups():
            if group:
                widest = self._programs.widest(operation)
                parts = [Part(job, 0, False) for job in islice(group, widest.rows)]
                return Plan(self._programs.fitting(operation, len(parts), 0), parts)
        return None

    def _scoring(self) -> Plan | None:
        return self._filling(Operation.SCORED_PREFILL, self._roster.score)

    def _filling(self, operation: Operation, group: Group) -> Plan | None:
        if not group:
            return None
        room = self._programs.roomiest(operation, 1)
        tokens = min(room.tokens, self._step_tokens) if self._roster.decode else room.tokens
        parts = self._fills(group, room.rows, tokens)
        return self._plan(operation, parts) if parts else None

    def _generation(self) -> Plan | None:
        fill, decode = self._roster.fill, self._roster.decode
        if fill and decode and self._mixes:
            return self._mixed()
        if fill and not (decode and self._filled_last):
            return self._filling(Operation.PREFILL, fill)
        return self._decoding() or self._filling(Operation.PREFILL, fill)

    def _decoding(self) -> Plan | None:
        widest = self._programs.widest(Operation.DECODE)
        parts = self._decodes(min(widest.rows, widest.tokens))
        return self._plan(Operation.DECODE, parts, len(parts)) if parts else None

    def _mixed(self) -> Plan | None:
        room = self._programs.roomiest(Operation.MIXED, len(self._roster.decode) + 1)
        total = min(room.tokens, self._step_tokens)
        least_fill = max(total // FILL_SHARE, 1)
        parts = self._decodes(min(room.rows - 1, total - least_fill))
        decodes = len(parts)
        fills = self._fills(self._roster.fill, room.rows - decodes, total - decodes)
        if not decodes:
            return self._filling(Operation.PREFILL, self._roster.fill)
        if not fills:
            return self._decoding()
        return self._plan(Operation.MIXED, parts + fills, decodes)

    # ---- parts -------------------------------------------------------------------------------

    def _decodes(self, rows: int) -> list[Part]:
        parts: list[Part] = []
        size = self._page_tokens
        for job in self._roster.decode:
            if len(parts) >= rows:
                break
            if job.ahead < len(job.pages) * size or self._residency.grow(job):
                parts.append(Part(job, 1, True))
            elif self.short is None:
                self.short = job
        return parts

    def _fills(self, group: Group, rows: int, tokens: int) -> list[Part]:
        parts: list[Part] = []
        for job in group:
            if len(parts) >= rows or tokens <= 0:
                break
            length = min(job.fill_to - job.ahead, tokens, self._chunk)
            length = self._to_boundary(job, length)
            ends = job.ahead + length == job.fill_to
            parts.append(Part(job, length, ends and job.samples))
            tokens -= length
        return parts

    def _to_boundary(self, job: Job, length: int) -> int:
        """Cut a chunk where the request declared that a snapshot is worth having."""
        if not job.boundaries:
            return length
        inside = [b - job.ahead for b in job.boundaries if job.ahead < b < job.ahead + length]
        return min(inside, default=length)

    def _can_mix(self) -> bool:
        if not self._programs.has(Operation.MIXED):
            return False
        room = self._programs.roomiest(Operation.MIXED, 2)
        return room.rows > 1 and min(room.tokens, self._step_tokens) > 1

    def _plan(self, operation: Operation, parts: list[Part], decodes: int = 0) -> Plan:
        tokens = sum(part.length for part in parts)
        return Plan(self._programs.fitting(operation, len(parts), tokens), parts, decodes)
