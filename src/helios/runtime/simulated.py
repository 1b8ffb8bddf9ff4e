"""A simulated device: executes submissions on a virtual clock, without tensors.

It keeps what a real device keeps (pages, state rows, continuation rows), but stores one number
per token: a digest of everything up to it. Every token it samples depends on the history that it
reads back through the page table, on the histograms and on the sampling parameters: a page that
is shared or restored wrongly, or written twice, changes the output. Equal seeds give equal runs.
It refuses submissions that break a real device's rules, and can be told to fail, lag or lie.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field

from msgspec.structs import replace

from helios.contract.operation import Operation
from helios.contract.submission import (
    Completion,
    Geometry,
    Lane,
    LaneAdmission,
    LaneCompletion,
    LaneMasks,
    Sampling,
    Submission,
    Variant,
)
from helios.errors import DeviceError
from helios.records import dataclass
from helios.runtime.simulated_numbers import (
    SCALE,
    WORD,
    choose,
    draw,
    histogram_digest,
    lie,
    mix,
)

Tamper = Callable[[Submission, Completion], Completion]

_SETUPS = (Operation.INITIALIZE, Operation.RESUME)


@dataclass(frozen=True, slots=True)
class Costs:
    """Virtual seconds. A step costs the sum of what its lanes do."""

    step: float = 1e-3
    prefill_token: float = 1e-4
    decode_row: float = 1e-4
    context_token: float = 1e-7


@dataclass(frozen=True, slots=True)
class Faults:
    """How often, per step, the device fails, reports what can't be true, or is late by `delay`."""

    errors: float = 0.0
    lies: float = 0.0
    delays: float = 0.0
    delay: float = 1.0


@dataclass(slots=True)
class _Step:
    """A step that was submitted; `completion` once it ran. `masks` are None until supplied."""

    submission: Submission
    variant: Variant
    done: float  # on the virtual clock
    masks: Sequence[LaneMasks] | None
    completion: Completion | None = None


@dataclass(slots=True)
class _Slot:
    """A request's state rows."""

    generation: int = 0
    endpoint: int = 0
    pending: int = -1
    outputs: int = 0
    admission: LaneAdmission = field(default_factory=lambda: LaneAdmission(Sampling(), ()))
    prompt_digest: int = 0
    output_digest: int = 0
    state: int = 0  # the digest of its history, where the geometry is recurrent
    table: dict[int, int] = field(default_factory=dict)
    tokens: list[int] = field(default_factory=list)  # what it has been told and has sampled
    poisoned: bool = False  # a step that named it failed


class SimulatedDevice:
    """A step executor whose time is `now`. `audit` re-reads whole histories at every step."""

    def __init__(
        self,
        geometry: Geometry,
        *,
        seed: int = 0,
        costs: Costs = Costs(),
        faults: Faults = Faults(),
        tamper: Tamper | None = None,
        audit: bool = False,
    ) -> None:
        self._geometry = geometry
        self._seed = seed
        self._costs = costs
        self._faults = faults
        self._tamper = tamper
        self._audit = audit
        self._variants = {variant.program: variant for variant in geometry.variants}
        self._slots = [_Slot() for _ in range(geometry.slots)]
        self._pages: list[list[int]] = [[] for _ in range(geometry.pages)]
        self._rows: list[tuple[list[int], int]] = [([], 0) for _ in range(geometry.snapshots)]
        self._outstanding: deque[_Step] = deque()
        self._free_at = 0.0
        self._sequence = 0
        self.now = 0.0
        self.closed = False

    @property
    def geometry(self) -> Geometry:
        """What was loaded."""
        return self._geometry

    def submit(self, submission: Submission) -> None:
        """Start a step. Raises `DeviceError` for one that breaks the rules."""
        variant = self._check(submission)
        self._sequence += 1
        self._free_at = max(self._free_at, self.now) + self._cost(submission)
        masks = None if submission.masked else ((),) * len(submission.lanes)
        self._outstanding.append(_Step(submission, variant, self._free_at, masks))
        self._go_on()

    def supply(self, sequence: int, masks: Sequence[LaneMasks]) -> None:
        """Let a step draw its tokens."""
        steps = [s for s in self._outstanding if s.submission.sequence == sequence]
        _require(bool(steps) and steps[0].masks is None, "no step waits for masks", sequence)
        lanes = steps[0].submission.lanes
        wanted = [lane.masked * (1 + len(lane.proposals)) for lane in lanes]
        _require([len(of_lane) for of_lane in masks] == wanted, "masks do not match", masks)
        steps[0].masks = masks
        self._go_on()

    def wait(self, timeout: float | None = None) -> Completion | None:
        """The oldest outstanding completion, advancing the clock to it or by `timeout`.

        Where the host waits instead of supplying masks, the step fails.
        """
        if not self._outstanding:
            return None
        step = self._outstanding[0]
        if timeout is not None and step.done > self.now + timeout:
            self.now += timeout
            return None
        if step.completion is None:
            step.completion = self._break(step.submission, "no masks were supplied")
        self._outstanding.popleft()
        self._go_on()
        self.now = max(self.now, step.done)
        return step.completion

    def close(self) -> None:
        """Forget what is outstanding."""
        self._outstanding.clear()
        self.closed = True

    # ---- rules -------------------------------------------------------------------------------

    def _check(self, submission: Submission) -> Variant:
        variant = self._variants.get(submission.program)
        lanes = submission.lanes
        tokens = sum(lane.query_length for lane in lanes)
        _require(variant is not None, "no such program", submission.program)
        assert variant is not None
        _require(
            variant.operation is submission.operation, "not its operation", submission.operation
        )
        _require(0 < len(lanes) <= variant.rows, "rows past capacity", len(lanes))
        setup = submission.operation in (*_SETUPS, Operation.RESTORE)
        _require(setup or tokens <= variant.tokens, "tokens past capacity", tokens)
        _require(len(self._outstanding) < self._geometry.frames, "every frame is in flight", None)
        frames = [step.submission.frame for step in self._outstanding]
        _require(submission.frame not in frames, "the frame is in flight", submission.frame)
        _require(submission.sequence == self._sequence, "out of sequence", submission.sequence)
        _require(len({lane.slot for lane in lanes}) == len(lanes), "a slot twice in a step", None)
        for lane in lanes:
            self._check_lane(submission.operation, lane)
        if submission.operation is Operation.MIXED:
            fills = [bool(lane.tokens) for lane in lanes]
            _require(fills == sorted(fills), "decoding lanes come first", fills)
        return variant

    def _check_lane(self, operation: Operation, lane: Lane) -> None:
        slot = self._slots[lane.slot]
        if operation in _SETUPS:
            _require(lane.admission is not None, "no admission", lane)
            _require(lane.query_length == 0 and not lane.new_pages, "nothing to consume yet", lane)
            reused = lane.generation != slot.generation
            steps = [step.submission for step in self._outstanding]
            busy = any(other.slot == lane.slot for step in steps for other in step.lanes)
            _require(not (reused and busy), "a slot was reused before its fence", lane)
            return
        _require(lane.generation == slot.generation, "the slot was never initialized", lane)
        if operation is Operation.RESTORE:
            _require(lane.restore_source >= 0, "nothing to restore", lane)
            return
        _require(lane.query_length > 0, "nothing to consume", lane)
        if operation is Operation.DECODE:
            _require(lane.sample and not lane.tokens, "decoding supplies its own token", lane)
        if lane.tokens:
            _require(len(lane.tokens) == lane.query_length, "tokens do not match", lane)
        elif not slot.poisoned:
            _require(slot.pending >= 0, "no token is pending", lane)
        scored = operation is Operation.SCORED_PREFILL
        _require(len(lane.targets) == scored * lane.query_length, "targets do not match", lane)

    # ---- execution ---------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Run steps in order, up to one that waits for masks."""
        for step in self._outstanding:
            if step.masks is None and step.completion is None:
                return
            if step.completion is None:
                step.completion = self._complete(step)

    def _complete(self, step: _Step) -> Completion:
        submission, masks = step.submission, step.masks or ()
        if self._strikes(self._faults.errors, 1, submission.sequence):
            completion = self._break(submission, "a fault was injected")
        else:
            lanes = tuple(
                self._run(submission.operation, lane, step.variant, of_lane)
                for lane, of_lane in zip(submission.lanes, masks, strict=True)
            )
            completion = Completion(submission.sequence, submission.frame, lanes)
        if self._strikes(self._faults.lies, 2, submission.sequence):
            completion = lie(completion, mix(self._seed, submission.sequence), self._geometry)
        if self._tamper is not None:
            completion = self._tamper(submission, completion)
        return completion

    def _run(
        self, operation: Operation, lane: Lane, variant: Variant, masks: LaneMasks
    ) -> LaneCompletion:
        slot = self._slots[lane.slot]
        if operation in _SETUPS:
            self._set_up(slot, lane)
            return self._record(lane, variant)
        slot.table.update(lane.new_pages)
        if slot.poisoned:
            return replace(self._record(lane, variant), accepted=0)
        _require(slot.endpoint == lane.endpoint, f"the endpoint is {slot.endpoint}", lane)
        if operation is Operation.RESTORE:
            self._restore(slot, lane)
            return self._record(lane, variant)
        if self._audit:
            self._audit_history(slot)
        scores = self._consume(slot, lane)
        if lane.snapshot_destination >= 0:
            page = slot.table.get(slot.endpoint // self._geometry.page_tokens)
            payload = [] if page is None else list(self._pages[page])
            self._rows[lane.snapshot_destination] = (payload, slot.state)
        return self._sample(slot, lane, masks, self._record(lane, variant, scores))

    def _set_up(self, slot: _Slot, lane: Lane) -> None:
        admission = lane.admission
        assert admission is not None, "checked"
        if lane.generation != slot.generation:
            slot.table = {}
        slot.generation = lane.generation
        slot.poisoned = False
        slot.endpoint = lane.endpoint
        slot.pending = admission.pending_token
        slot.outputs = len(admission.output)
        slot.admission = admission
        slot.prompt_digest = histogram_digest(admission.prompt)
        slot.output_digest = histogram_digest(admission.output)
        slot.tokens = [*admission.prompt, *admission.output]
        slot.state = 0

    def _restore(self, slot: _Slot, lane: Lane) -> None:
        payload, slot.state = self._rows[lane.restore_source]
        page = slot.table.get(lane.endpoint // self._geometry.page_tokens)
        if page is not None:
            self._pages[page] = list(payload)

    def _consume(self, slot: _Slot, lane: Lane) -> tuple[float, ...]:
        tokens = lane.tokens or (slot.pending,)
        scores = []
        history = self._history(slot)
        for offset, token in enumerate(tokens):
            history = mix(history, token)
            self._write(slot, slot.endpoint, history)
            slot.endpoint += 1
            if lane.targets:
                scores.append(-(mix(history, lane.targets[offset]) % SCALE) / SCALE)
        slot.state = history
        return tuple(scores)

    def _sample(
        self, slot: _Slot, lane: Lane, masks: LaneMasks, record: LaneCompletion
    ) -> LaneCompletion:
        if not lane.sample:
            return record
        sampling = slot.admission.sampling
        number = draw(
            sampling, slot.endpoint, self._history(slot), slot.prompt_digest, slot.output_digest
        )
        ends = slot.admission.eos_tokens if slot.outputs >= sampling.min_output else ()
        token = choose(number, self._geometry.vocabulary, masks[0] if masks else None, ends)
        slot.pending = token
        slot.tokens.append(token)
        slot.outputs += 1
        slot.output_digest = (slot.output_digest + mix(token)) & WORD
        logprob = -(number % SCALE) / SCALE
        top = tuple(((token + i) % self._geometry.vocabulary, logprob - i) for i in range(3))
        return replace(record, accepted=1, tokens=(token,), logprob=logprob, top=top)

    def _record(
        self, lane: Lane, variant: Variant, scores: tuple[float, ...] = ()
    ) -> LaneCompletion:
        endpoint = lane.endpoint + lane.query_length
        lag = variant.cursor_lag
        return LaneCompletion(
            slot=lane.slot,
            generation=lane.generation,
            endpoint=endpoint,
            accepted=0,
            tokens=(),
            cursor=-1 if lag < 0 else max(endpoint - lag, 0),
            scores=scores,
            score_tops=tuple(((0, score),) for score in scores),
        )

    def _history(self, slot: _Slot) -> int:
        """The digest of everything the slot has consumed, as its pages or state keep it."""
        if not slot.endpoint:
            return 0
        return slot.state if self._geometry.recurrent else self._read(slot, slot.endpoint - 1)

    def _read(self, slot: _Slot, position: int) -> int:
        index, offset = divmod(position, self._geometry.page_tokens)
        _require(index in slot.table, "a position without a page is read", position)
        page = self._pages[slot.table[index]]
        _require(offset < len(page), "a position is read that was never written", position)
        return page[offset]

    def _write(self, slot: _Slot, position: int, value: int) -> None:
        index, offset = divmod(position, self._geometry.page_tokens)
        _require(index in slot.table, "a position without a page is written", position)
        page = self._pages[slot.table[index]]
        del page[offset:]
        _require(len(page) == offset, "a position is written before the one under it", position)
        page.append(value)

    def _audit_history(self, slot: _Slot) -> None:
        """Every position holds the digest of the tokens up to it, as far as they are known."""
        if self._geometry.recurrent:
            return
        history = 0
        for position, token in enumerate(slot.tokens[: slot.endpoint]):
            history = mix(history, token)
            _require(self._read(slot, position) == history, "a history was overwritten", position)

    # ---- misfortune --------------------------------------------------------------------------

    def _strikes(self, rate: float, kind: int, sequence: int) -> bool:
        return rate > 0 and mix(self._seed, kind, sequence) % SCALE < rate * SCALE

    def _break(self, submission: Submission, message: str) -> Completion:
        """A step that failed half way: what it may have written is garbage."""
        for lane in submission.lanes:
            slot = self._slots[lane.slot]
            slot.poisoned = True
            slot.table.update(lane.new_pages)
            index, offset = divmod(lane.endpoint, self._geometry.page_tokens)
            if lane.query_length and index in slot.table:
                del self._pages[slot.table[index]][offset:]
        error = DeviceError(message, field="step", value=submission.sequence)
        return Completion(submission.sequence, submission.frame, error=error)

    def _cost(self, submission: Submission) -> float:
        costs = self._costs
        total = costs.step
        if self._strikes(self._faults.delays, 3, submission.sequence):
            total += self._faults.delay
        for lane in submission.lanes:
            total += costs.context_token * lane.endpoint
            if lane.query_length:
                total += costs.prefill_token * len(lane.tokens) or costs.decode_row
        return total


def _require(condition: bool, message: str, value: object) -> None:
    if not condition:
        raise DeviceError(message, field="submission", value=value)
