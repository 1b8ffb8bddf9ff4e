"""Outcomes: what completions, cancellations and failures do to jobs, and the events they cause."""

from helios.contract.operation import Operation
from helios.contract.submission import Lane, LaneCompletion
from helios.scheduler.counters import Counters
from helios.scheduler.events import (
    Event,
    Failed,
    FailureKind,
    Finished,
    FinishReason,
    PromptScores,
    TokenLogprob,
    Tokens,
)
from helios.scheduler.job import Job, Phase
from helios.scheduler.residency import Residency
from helios.scheduler.roster import Roster
from helios.scheduler.seating import Seating
from helios.scheduler.verdict import Stop, verdict
from helios.scheduler.waiting import WaitingLine


class Outcomes:
    """Moves jobs from phase to phase. `jobs` are those whose terminal event is not out yet."""

    def __init__(
        self,
        residency: Residency,
        roster: Roster,
        seating: Seating,
        line: WaitingLine,
        counters: Counters,
        *,
        turn_snapshots: bool,
    ) -> None:
        self.jobs: dict[int, Job] = {}
        self._residency = residency
        self._roster = roster
        self._seating = seating
        self._line = line
        self._counters = counters
        self._turn_snapshots = turn_snapshots

    # ---- ends --------------------------------------------------------------------------------

    def finish(self, job: Job, reason: FinishReason, stop: Stop, events: list[Event]) -> None:
        """End a job in good order."""
        events.append(
            Finished(
                job.request.id,
                reason,
                job.prompt_length,
                job.outputs,
                job.reused or 0,
                stop,
            )
        )
        self._counters.finished[reason] += 1
        job.keeps = reason in (FinishReason.EOS, FinishReason.LENGTH)
        job.closes = reason is FinishReason.EOS
        self._end(job)

    def fail(self, job: Job, message: str, events: list[Event]) -> None:
        """End a job in an error; nothing it did since is published."""
        if not job.finished:
            events.append(Failed(job.request.id, FailureKind.EXECUTION, message))
            self._counters.failed += 1
            self._end(job)
        job.broken = True
        job.keeps = job.closes = job.closing = False
        self._roster.drop(job)

    def settle(self, job: Job) -> None:
        """Let go of what a job holds, if it is over or leaving and nothing in flight names it."""
        if job.slot < 0 or job.inflight or job.closing:
            return
        if job.finished:
            if job.keeps:
                self._residency.publish(job, min(job.consumed, len(job.tokens)))
            if not self._close_turn(job):
                self._seating.vacate(job)
        elif job.leaving:
            self.preempt(job)

    def preempt(self, job: Job) -> None:
        """Send a job back to the line; what it computed stays cached as long as there is room."""
        self._residency.publish(job, job.consumed)
        self._seating.vacate(job)
        job.phase = Phase.WAITING
        job.leaving = False
        job.mark = job.outputs
        self._line.push(job)
        self._counters.preemptions += 1

    def _end(self, job: Job) -> None:
        job.finished = True
        del self.jobs[job.request.id]
        if job.phase is Phase.WAITING:
            self._line.forget()
        else:
            self._roster.drop(job)

    def _close_turn(self, job: Job) -> bool:
        """Let a finished turn consume its last token once more, to keep the page it ends in.

        A step that ran ahead may have consumed that token already, without a snapshot. Paged
        state may be rewound by one position; recurrent state may not. Where pages are all, the
        gain is part of a page, so that only an idle device spends a step on it.
        """
        end = len(job.tokens)
        closes, job.closes = job.closes, False
        if not (closes and self._turn_snapshots) or len(self._line):
            return False
        ran_ahead = job.consumed >= end
        alone = len(self._seating.seated) == 1
        if not self._residency.may_close(job, end, rewinds=ran_ahead, alone=alone):
            return False
        job.closing = True
        job.fill_to = end
        job.consumed = job.ahead = end - 1
        job.phase = Phase.SETUP if ran_ahead else Phase.FILL
        self._roster.seat(job)
        return True

    # ---- steps that came back ----------------------------------------------------------------

    def advance(
        self,
        job: Job,
        operation: Operation,
        lane: Lane,
        record: LaneCompletion,
        events: list[Event],
    ) -> None:
        """Take a lane's validated record."""
        job.consumed = record.endpoint
        if not lane.query_length:
            self._set_up(job, operation)
            return
        if not job.finished:
            if lane.targets:
                self._score(job, lane, record, events)
            if record.accepted:
                self._accept(job, record, events)
        self.keep_row(job, lane)
        if job.phase is Phase.FILL:
            self._filled(job, events)

    def keep_row(self, job: Job, lane: Lane) -> None:
        """Publish the snapshot that a lane wrote, or discard it with a job that keeps nothing."""
        row = lane.snapshot_destination
        if row < 0:
            return
        if job.broken or (job.finished and not (job.keeps or job.closing)):
            self._residency.rows.give(row)
        else:
            self._residency.publish_row(job, lane.endpoint + lane.query_length, row)

    def _set_up(self, job: Job, operation: Operation) -> None:
        if operation is Operation.RESTORE:
            self._residency.restored(job)
        if job.tail is not None:
            job.phase = Phase.RESTORE
        elif job.consumed < job.fill_to:
            job.phase = Phase.FILL
        else:
            job.phase = Phase.DECODE
            self._roster.filled(job)
        self._go_on(job)

    def _filled(self, job: Job, events: list[Event]) -> None:
        if not job.finished:
            self._residency.publish(job, job.consumed)
        if job.consumed < job.fill_to:
            return
        if job.closing:
            job.closing = False
        elif not job.finished:
            job.phase = Phase.DECODE
            if not job.limit:
                self.finish(job, FinishReason.LENGTH, None, events)
            elif job.sampled < job.limit:
                self._go_on(job)

    def _go_on(self, job: Job) -> None:
        if job.closing or not (job.finished or job.leaving):
            self._roster.enter(job)

    def _accept(self, job: Job, record: LaneCompletion, events: list[Event]) -> None:
        accepted: tuple[int, ...] = ()
        end = None
        for token in record.tokens:
            job.accept(token)
            accepted += (token,)
            try:
                end = verdict(job, token)
            except Exception as error:  # a monitor is foreign code: it may hurt its own request
                self.fail(job, f"the request's monitor failed: {error}", events)
                return
            if end is not None:
                break
        self._counters.sampled_tokens += len(accepted)
        most = job.request.sampling.top_logprobs
        logprobs = (
            (TokenLogprob(record.logprob, record.top[:most]),)
            if most >= 0 and record.logprob is not None
            else ()
        )
        events.append(Tokens(job.request.id, accepted, logprobs))
        if end is not None:
            self.finish(job, *end, events)

    def _score(self, job: Job, lane: Lane, record: LaneCompletion, events: list[Event]) -> None:
        """Report scores that were not reported before the job was preempted."""
        most = job.request.prompt_logprobs
        tops = record.score_tops or ((),) * lane.query_length
        scores = tuple(
            TokenLogprob(score, top[:most])
            for position, (target, score, top) in enumerate(
                zip(lane.targets, record.scores, tops, strict=True), lane.endpoint
            )
            if target >= 0 and position >= job.scored
        )
        job.scored = max(job.scored, lane.endpoint + lane.query_length)
        if scores:
            events.append(PromptScores(job.request.id, scores))
