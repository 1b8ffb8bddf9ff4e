"""Seats: slots with their generations, and the way from the waiting line into one."""

from collections.abc import Collection

from helios.contract.operation import Operation
from helios.contract.submission import Geometry
from helios.scheduler.cohort import Programs
from helios.scheduler.counters import Counters
from helios.scheduler.job import Job, Phase
from helios.scheduler.residency import Residency
from helios.scheduler.roster import Roster
from helios.scheduler.waiting import WaitingLine

SPARE_SHARE = 8
"""A newcomer leaves one page for each seated job, but no more than one part in so many."""


class Seating:
    """Seats jobs in the order of the line, not before the device can start on their prompts.

    Seating late costs nothing, as prefill is first come first served anyway, and lets a job find
    the pages that those before it have published meanwhile.
    """

    def __init__(
        self,
        geometry: Geometry,
        slots: int,
        programs: Programs,
        residency: Residency,
        roster: Roster,
        line: WaitingLine,
        counters: Counters,
        backlog: int,
    ) -> None:
        self._residency = residency
        self._roster = roster
        self._line = line
        self._counters = counters
        self._backlog = backlog
        self._most_spare = max(geometry.pages // SPARE_SHARE, 1)
        self._resumes = programs.has(Operation.RESUME)
        self._free = list(range(slots - 1, -1, -1))
        self._generations = [0] * slots
        self._seated: dict[int, Job] = {}
        self._blocked: Job | None = None
        self._blocked_need = 0

    @property
    def resumes(self) -> bool:
        """Whether a job that has output can be seated again, so that it may be preempted."""
        return self._resumes

    @property
    def seated(self) -> Collection[Job]:
        """Jobs that hold a slot."""
        return self._seated.values()

    @property
    def lacking(self) -> int:
        """How many more pages must be available for the job that was last found to lack some."""
        return self._blocked_need + self._spare() - self._residency.available

    def free_slots(self) -> list[int]:
        """The slots that nobody holds."""
        return list(self._free)

    def fill(self) -> Job | None:
        """Seat who can be seated; returns the job at the head of the line if it lacks pages."""
        while self._free and (job := self._line.peek()) is not None:
            if self._roster.backlog() >= self._backlog:
                return None
            if job is self._blocked and self.lacking > 0:
                return job
            if not self._seat(job):
                return job
            self._line.pop()
        return None

    def vacate(self, job: Job) -> None:
        """Take a job's slot and pages; nothing in flight names them."""
        self._residency.release(job)
        del self._seated[job.slot]
        self._free.append(job.slot)
        job.slot = -1

    def _seat(self, job: Job) -> bool:
        resumed = job.outputs > 0
        job.fill_to = len(job.tokens) - resumed
        missing = self._residency.seat(job, self._tokens_to_back(job, resumed), self._spare())
        if missing:
            self._blocked, self._blocked_need = job, missing
            return False
        self._blocked = None
        self._count(job)
        job.slot = self._free.pop()
        self._generations[job.slot] += 1
        job.generation = self._generations[job.slot]
        job.sampled = job.outputs
        job.phase = Phase.SETUP
        self._seated[job.slot] = job
        self._roster.seat(job)
        return True

    def _spare(self) -> int:
        return min(len(self._seated), self._most_spare)

    def _tokens_to_back(self, job: Job, resumed: bool) -> int:
        """Enough to draw the next token whatever happens; all where a job can't come back."""
        return job.fill_to + resumed if self._resumes else job.most_consumed

    def _count(self, job: Job) -> None:
        counters = self._counters
        if job.reused is not None:
            counters.readmissions += 1
            return
        job.reused = job.ahead
        counters.prefix_lookups += 1
        counters.prefix_hits += job.ahead > 0
        counters.cached_tokens += job.ahead
