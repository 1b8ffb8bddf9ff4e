"""The scheduler: continuous batching over prepared programs. No clock, no tensors, no device.

`next` says what to run, `retire` takes what came of it, in the same order. A job's state is what
completions confirmed; what is in flight is kept apart, so that the next step can be planned while
the last one runs. Slots, pages and snapshot rows are let go only when no submission in flight
names them.
"""

from collections import deque
from collections.abc import Collection

from helios.contract.operation import Operation
from helios.contract.submission import Completion, Geometry, Lane, LaneMasks, Submission
from helios.errors import AdmissionError, DeviceError, RequestError
from helios.scheduler.cohort import Programs
from helios.scheduler.counters import Counters
from helios.scheduler.departure import Departures, Flight
from helios.scheduler.events import Event, FinishReason
from helios.scheduler.integrity import residency_problems, row_problems, slot_problems
from helios.scheduler.job import Job
from helios.scheduler.masks import next_mask
from helios.scheduler.outcomes import Outcomes
from helios.scheduler.planning import Plan, Planner
from helios.scheduler.policy import SchedulerPolicy, within
from helios.scheduler.preemption import victim_for_growth, victim_for_newcomer
from helios.scheduler.request import Request, check_fits, check_request, output_limit
from helios.scheduler.residency import Residency
from helios.scheduler.roster import Roster
from helios.scheduler.seating import Seating
from helios.scheduler.validation import lane_fault, offers_fault, step_fault
from helios.scheduler.waiting import WaitingLine, order_of

_DEFAULT_POLICY = SchedulerPolicy()


class Scheduler:
    """Decides steps for one loaded model. One thread calls it.

    `fault` says what the device did wrong first: a step that failed or a record that lied. The
    requests concerned have failed; whether to serve on is for the caller to say.
    """

    def __init__(self, geometry: Geometry, policy: SchedulerPolicy = _DEFAULT_POLICY) -> None:
        self.geometry = geometry
        self.counters = Counters()
        self.fault: str | None = None
        self._frames = within("frames", policy.frames, geometry.frames)
        self.slots = within("max_active", policy.max_active, geometry.slots)
        programs = Programs(geometry.variants)
        self._residency = Residency(
            geometry,
            restores=programs.has(Operation.RESTORE),
            prefix_cache=policy.prefix_cache,
        )
        self._roster = Roster()
        self._line = WaitingLine()
        self._planner = Planner(programs, self._roster, self._residency, geometry, policy)
        self._seating = Seating(
            geometry,
            self.slots,
            programs,
            self._residency,
            self._roster,
            self._line,
            self.counters,
            backlog=self._planner.fill_capacity,
        )
        self._outcomes = Outcomes(
            self._residency,
            self._roster,
            self._seating,
            self._line,
            self.counters,
            turn_snapshots=policy.turn_snapshots,
        )
        self._departures = Departures(
            geometry.page_tokens, self._residency, self._roster, self.counters
        )
        self._flights: deque[Flight] = deque()
        self._barrier = False
        self._newcomer: Job | None = None
        self._sequence = 0
        self._arrivals = 0

    # ---- requests ----------------------------------------------------------------------------

    def admit(self, request: Request) -> None:
        """Take a request into the line.

        Raises `RequestError` for one that is wrong in itself, `AdmissionError` for one that
        could never run here.
        """
        check_request(request, self.geometry)
        if request.id in self._outcomes.jobs:
            raise RequestError("the id is in use", field="id", value=request.id)
        try:
            check_fits(request, self.geometry)
        except AdmissionError:
            self.counters.refused += 1
            raise
        order = order_of(request.priority, self._sequence, self._arrivals)
        job = Job(request, order, output_limit(request, self.geometry))
        self._arrivals += 1
        self._outcomes.jobs[request.id] = job
        self._line.push(job)
        self.counters.admitted += 1
        self.counters.prompt_tokens += job.prompt_length

    def cancel(self, request_id: int) -> list[Event]:
        """End a request now. What it holds goes after its last fence. Unknown ids are ignored."""
        events: list[Event] = []
        job = self._outcomes.jobs.get(request_id)
        if job is not None:
            self._outcomes.finish(job, FinishReason.CANCELLED, None, events)
            self._outcomes.settle(job)
        return events

    def abandon(self, message: str) -> list[Event]:
        """The device is lost, and with it everything in flight: every request fails."""
        events: list[Event] = []
        self.fault = self.fault or message
        for flight in self._flights:
            for part, lane in zip(flight.plan.parts, flight.submission.lanes, strict=True):
                self._discard(part.job, lane, message, events)
        self._flights.clear()
        self._barrier = False
        for job in [*self._outcomes.jobs.values(), *self._seating.seated]:
            self._outcomes.fail(job, message, events)
            self._outcomes.settle(job)
        return events

    # ---- steps -------------------------------------------------------------------------------

    def next(self) -> Submission | None:
        """The next step, or None: frames are full, the host must see a token, or nobody is ready.

        The caller must submit what it gets, or retire a completion with an error in its place.
        For a `masked` submission it then asks for `masks` and supplies them.
        """
        if len(self._flights) >= self._frames or self._barrier:
            return None
        self._newcomer = self._seating.fill()
        plan = self._planner.plan()
        while plan is None and self._make_room():
            plan = self._planner.plan()
        if plan is None or (self._flights and plan.monitored):
            return None
        submission = self._depart(plan)
        self._make_room()
        return submission

    def masks(self) -> tuple[list[LaneMasks], list[Event]]:
        """The masks that the step submitted last waits for, in lane order, and the end of those
        whose monitor has none: their lanes go through unmasked, and what they draw is discarded.

        To be called once after a `masked` submission, while the device works on it.
        """
        flight = self._flights[-1]
        masks: list[LaneMasks] = []
        events: list[Event] = []
        for part, lane in zip(flight.plan.parts, flight.submission.lanes, strict=True):
            masks.append((self._mask(part.job, events),) if lane.masked else ())
        return masks, events

    def retire(self, completion: Completion) -> list[Event]:
        """Take the completion of the oldest step in flight; returns what it means to requests.

        A record that can't be true, or an error, fails the requests that it concerns.
        Raises `DeviceError` when nothing is in flight.
        """
        if not self._flights:
            raise DeviceError(
                "a step completed that was never submitted", value=completion.sequence
            )
        flight = self._flights.popleft()
        self._barrier = False
        fault = step_fault(flight.submission, completion)
        fault = fault or offers_fault(flight.plan.variant, completion)
        if fault is not None or completion.error is not None:
            return self._fail_step(flight, fault or str(completion.error), lied=fault is not None)
        return self._retire_lanes(flight, completion)

    @property
    def outstanding(self) -> int:
        """How many steps are in flight."""
        return len(self._flights)

    @property
    def waiting(self) -> int:
        """How many requests are in the line."""
        return len(self._line)

    @property
    def active(self) -> int:
        """How many requests hold a slot, finished ones before their fence included."""
        return len(self._seating.seated)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do and nothing to wait for."""
        return not (self._flights or self.waiting or self.active)

    @property
    def seated(self) -> Collection[Job]:
        """The jobs that hold a slot; to look at, not to change."""
        return self._seating.seated

    @property
    def residency(self) -> Residency:
        """Who owns which page; to look at, not to change."""
        return self._residency

    def check_integrity(self) -> list[str]:
        """Prove that every page, slot and snapshot row is accounted for; what is wrong, if not."""
        seated = self._seating.seated
        rows = [
            lane.snapshot_destination
            for flight in self._flights
            for lane in flight.submission.lanes
            if lane.snapshot_destination >= 0
        ]
        return [
            *residency_problems(self._residency, seated),
            *row_problems(self._residency, rows, seated),
            *slot_problems(self.slots, self._seating.free_slots(), seated),
        ]

    # ---- inside ------------------------------------------------------------------------------

    def _make_room(self) -> bool:
        """Choose who leaves where pages ran short; true if that freed pages at once."""
        seated = self._seating.seated
        victim = None
        if self._planner.short is not None:
            victim = victim_for_growth(self._planner.short, seated)
        elif self._newcomer is not None and self._seating.resumes:
            victim = victim_for_newcomer(self._newcomer, self._seating.lacking, seated)
        return victim is not None and self._dismiss(victim)

    def _dismiss(self, job: Job) -> bool:
        """Preempt a job at its fence; true if that was now."""
        job.leaving = True
        self._roster.drop(job)
        self._outcomes.settle(job)
        return not job.leaving

    def _depart(self, plan: Plan) -> Submission:
        flight = self._departures.depart(plan, self._sequence, self._sequence % self._frames)
        self._sequence += 1
        self._planner.departed(plan)
        counters = self.counters
        counters.overlapped_steps += bool(self._flights)
        self._flights.append(flight)
        if plan.monitored:
            self._barrier = True
            counters.constrained_max_inflight = max(
                counters.constrained_max_inflight, len(self._flights)
            )
        return flight.submission

    def _mask(self, job: Job, events: list[Event]) -> bytes | None:
        monitor = job.request.monitor
        if job.finished or monitor is None:
            return None
        try:
            return next_mask(monitor, self.geometry.vocabulary)
        except Exception as error:  # a monitor is foreign code: it may hurt its own request
            self._outcomes.fail(job, f"the request's monitor failed: {error}", events)
            return None

    def _retire_lanes(self, flight: Flight, completion: Completion) -> list[Event]:
        events: list[Event] = []
        variant = flight.plan.variant
        lanes = flight.submission.lanes
        outcomes = self._outcomes
        scored = variant.operation is Operation.SCORED_PREFILL
        self._count_mixed(flight)
        for part, lane, record in zip(flight.plan.parts, lanes, completion.lanes, strict=True):
            job = part.job
            if job.broken:
                self._discard(job, lane, "", events)
                continue
            logprobs = job.request.sampling.top_logprobs >= 0
            fault = lane_fault(variant, lane, record, self.geometry.vocabulary, scored, logprobs)
            if fault is not None:
                self._reject(fault)
                self._discard(job, lane, f"the device's record can't be true: {fault}", events)
                continue
            job.inflight -= 1
            outcomes.advance(job, variant.operation, lane, record, events)
            if not job.inflight and (job.finished or job.leaving):
                outcomes.settle(job)
        return events

    def _fail_step(self, flight: Flight, message: str, *, lied: bool) -> list[Event]:
        events: list[Event] = []
        if lied:
            self._reject(message)
        else:
            self.counters.failed_steps += 1
            self.fault = self.fault or message
        for part, lane in zip(flight.plan.parts, flight.submission.lanes, strict=True):
            self._discard(part.job, lane, f"a step failed: {message}", events)
        return events

    def _discard(self, job: Job, lane: Lane, message: str, events: list[Event]) -> None:
        """A lane came to nothing: its job fails, its fence has passed."""
        job.inflight -= 1
        self._outcomes.fail(job, message, events)
        self._outcomes.keep_row(job, lane)
        self._outcomes.settle(job)

    def _reject(self, fault: str) -> None:
        self.counters.rejected_records += 1
        self.fault = self.fault or fault

    def _count_mixed(self, flight: Flight) -> None:
        if not flight.plan.decodes:
            return
        kinds = {part.job.request.constrained for part in flight.plan.parts if part.sample}
        self.counters.mixed_grammar_decode_steps += len(kinds) == 2
