"""Departure: a plan becomes a submission, and its jobs go ahead of what is confirmed."""

from helios.contract.operation import Operation
from helios.contract.submission import Lane, Submission
from helios.records import dataclass
from helios.scheduler.counters import Counters
from helios.scheduler.job import Job
from helios.scheduler.lanes import decode_lane, fill_lane, setup_lane
from helios.scheduler.planning import Part, Plan
from helios.scheduler.residency import Residency
from helios.scheduler.roster import Roster


@dataclass(frozen=True, slots=True)
class Flight:
    """A submission that the device has, with the plan it came from."""

    submission: Submission
    plan: Plan


class Departures:
    """Writes lanes. A job leaves its group with the last lane that it may have for now."""

    def __init__(
        self, page_tokens: int, residency: Residency, roster: Roster, counters: Counters
    ) -> None:
        self._page_tokens = page_tokens
        self._residency = residency
        self._roster = roster
        self._counters = counters

    def depart(self, plan: Plan, sequence: int, frame: int) -> Flight:
        """Turn a plan into the submission of that number."""
        operation = plan.variant.operation
        rotates = plan.decodes < len(self._roster.decode)
        decodes = [self._decode(part.job, rotates) for part in plan.parts[: plan.decodes]]
        others = [self._start(part, operation) for part in plan.parts[plan.decodes :]]
        for part in plan.parts:
            part.job.inflight += 1
        self._counters.steps[operation] += 1
        lanes = (*decodes, *others)
        return Flight(Submission(sequence, frame, operation, plan.variant.program, lanes), plan)

    def _decode(self, job: Job, rotates: bool) -> Lane:
        last = job.sampled + 1 >= job.limit
        row = self._residency.reserve_row(job, job.ahead + 1) if last else -1
        lane = decode_lane(job, self._page_tokens, row)
        job.ahead += 1
        job.sampled += 1
        if last:
            self._roster.leave(job)
        elif rotates:
            self._roster.decode.move_to_end(job)
        return lane

    def _start(self, part: Part, operation: Operation) -> Lane:
        if part.length:
            return self._fill(part, operation is Operation.SCORED_PREFILL)
        self._roster.leave(part.job)
        return setup_lane(part.job, operation, self._page_tokens)

    def _fill(self, part: Part, scored: bool) -> Lane:
        job, length, sample = part
        end = job.ahead + length
        row = self._residency.reserve_row(job, end) if job.worth_keeping(end) else -1
        lane = fill_lane(job, length, sample, self._page_tokens, row, scored)
        job.ahead = end
        job.sampled += sample
        self._counters.prefilled_tokens += length
        if end == job.fill_to:
            self._roster.drop(job)
        return lane
