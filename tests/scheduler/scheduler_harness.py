"""A scheduler and a simulated device driven to the end, with every invariant checked on the way."""

from collections import defaultdict
from collections.abc import Sequence

from helios.contract.operation import Operation
from helios.contract.submission import Completion, Geometry, Sampling, Submission, Variant
from helios.runtime.simulated import SimulatedDevice
from helios.runtime.simulated_numbers import choose, draw, histogram_digest, mix
from helios.scheduler.events import (
    Event,
    Failed,
    Finished,
    FinishReason,
    PromptScores,
    Tokens,
)
from helios.scheduler.policy import SchedulerPolicy
from helios.scheduler.request import HostMonitor, Request, output_limit
from helios.scheduler.scheduler import Scheduler


def variants(rows: int, tokens: int, *, without: Sequence[Operation] = ()) -> tuple[Variant, ...]:
    """A catalog with two sizes of the operations that generate."""
    shapes = {
        Operation.INITIALIZE: [(rows, rows)],
        Operation.RESUME: [(rows, rows)],
        Operation.RESTORE: [(rows, rows)],
        Operation.PREFILL: [(max(rows // 2, 1), max(tokens // 2, 1)), (rows, tokens)],
        Operation.SCORED_PREFILL: [(rows, tokens)],
        Operation.DECODE: [(max(rows // 2, 1), max(rows // 2, 1)), (rows, rows)],
        Operation.MIXED: [(rows, tokens)],
    }
    return tuple(
        Variant(f"{operation.name.lower()}_{r}x{t}", operation, r, t)
        for operation, sizes in shapes.items()
        if operation not in without
        for r, t in sorted(set(sizes))
    )


def geometry(
    *,
    context: int = 64,
    page_tokens: int = 4,
    pages: int = 48,
    slots: int = 4,
    snapshots: int = 6,
    rows: int = 4,
    tokens: int = 16,
    without: Sequence[Operation] = (),
    recurrent: bool = False,
    frames: int = 2,
) -> Geometry:
    return Geometry(
        context_tokens=context,
        page_tokens=page_tokens,
        pages=pages,
        slots=slots,
        snapshots=snapshots,
        vocabulary=97,
        input_vocabulary=100,
        variants=variants(rows, tokens, without=without),
        frames=frames,
        recurrent=recurrent,
    )


class StopAfter:
    """A monitor that stops after so many tokens and never masks."""

    def __init__(self, tokens: int) -> None:
        self.left = tokens

    def accept(self, token: int) -> bool:
        self.left -= 1
        return self.left == 0

    def mask(self) -> bytes | None:
        return None

    def masks_along(self, proposals: Sequence[int]) -> list[bytes | None]:
        return [None] * (len(proposals) + 1)


class OnlyMultiples:
    """A grammar: the n-th token is a multiple of n + 2."""

    def __init__(self, vocabulary: int = 97) -> None:
        self.vocabulary = vocabulary
        self.factor = 2

    def accept(self, token: int) -> bool:
        assert token % self.factor == 0, "the mask was not obeyed"
        self.factor += 1
        return False

    def mask(self) -> bytes | None:
        bits = bytearray(-(-self.vocabulary // 8))
        for token in range(0, self.vocabulary, self.factor):
            bits[token >> 3] |= 1 << (token & 7)
        return bytes(bits)

    def masks_along(self, proposals: Sequence[int]) -> list[bytes | None]:
        raise NotImplementedError


def request(
    number: int,
    prompt: Sequence[int],
    max_tokens: int = 8,
    *,
    sampling: Sampling | None = None,
    monitor: HostMonitor | None = None,
    **options: object,
) -> Request:
    return Request(
        id=number,
        prompt=tuple(prompt),
        max_tokens=max_tokens,
        sampling=sampling or Sampling(temperature=0),
        monitor=monitor,
        **options,  # type: ignore[arg-type]
    )


def digest_of(tokens: Sequence[int], target: int) -> float:
    """The score that the device gives a prompt token after those before it."""
    history = 0
    for token in tokens:
        history = mix(history, token)
    return -(mix(history, target) % (1 << 20)) / (1 << 20)


def expected(
    asked: Request, shape: Geometry, monitor: HostMonitor | None = None
) -> tuple[tuple[int, ...], FinishReason]:
    """What a request gets when it is alone in the world, one token at a time."""
    tokens = list(asked.prompt)
    history = 0
    for token in tokens:
        history = mix(history, token)
    outputs: list[int] = []
    while len(outputs) < output_limit(asked, shape):
        ends = asked.eos_tokens if len(outputs) >= asked.sampling.min_output else ()
        number = draw(
            asked.sampling,
            len(tokens),
            history,
            histogram_digest(asked.prompt),
            histogram_digest(outputs),
        )
        token = choose(number, shape.vocabulary, monitor.mask() if monitor else None, ends)
        outputs.append(token)
        tokens.append(token)
        history = mix(history, token)
        late = len(outputs) >= asked.sampling.min_output
        if token in asked.eos_tokens:
            return tuple(outputs), FinishReason.EOS
        if late and token in asked.stop_tokens:
            return tuple(outputs), FinishReason.STOP
        if late and any(tuple(outputs[-len(s) :]) == s for s in asked.stop_sequences):
            return tuple(outputs), FinishReason.STOP
        if monitor and monitor.accept(token):
            return tuple(outputs), FinishReason.STOP
    return tuple(outputs), FinishReason.LENGTH


class Driver:
    """Runs steps and keeps every event. Each step is held against the invariants."""

    def __init__(
        self,
        shape: Geometry,
        policy: SchedulerPolicy | None = None,
        device: SimulatedDevice | None = None,
    ) -> None:
        self.shape = shape
        self.scheduler = Scheduler(shape, policy or SchedulerPolicy())
        self.device = device or SimulatedDevice(shape, audit=True)
        self.events: dict[int, list[Event]] = defaultdict(list)
        self.submissions: list[Submission] = []
        self.in_flight_after: list[int] = []

    def admit(self, *requests: Request) -> None:
        for asked in requests:
            self.scheduler.admit(asked)

    def cancel(self, number: int) -> None:
        self.take(self.scheduler.cancel(number))

    def preempt(self, number: int) -> None:
        """Preempt a request as if pages ran short."""
        self.scheduler._dismiss(self.scheduler._outcomes.jobs[number])

    def submit(self) -> bool:
        """Submit one step, if there is one."""
        submission = self.scheduler.next()
        if submission is None:
            return False
        self.check_writes(submission)
        self.device.submit(submission)
        if submission.masked:
            masks, events = self.scheduler.masks()
            self.take(events)
            self.device.supply(submission.sequence, masks)
        self.submissions.append(submission)
        self.in_flight_after.append(self.scheduler.outstanding)
        return True

    def complete(self) -> bool:
        """Retire the oldest step, if there is one."""
        completion = self.device.wait()
        if completion is None:
            return False
        self.retire(completion)
        return True

    def retire(self, completion: Completion) -> None:
        self.take(self.scheduler.retire(completion))
        assert self.scheduler.check_integrity() == []

    def step(self) -> bool:
        """Fill the frames, then retire one step. False when nothing is left to do."""
        while self.submit():
            pass
        return self.complete()

    def run(self, steps: int = 10_000) -> None:
        """Run until idle; more steps than allowed mean a deadlock or a livelock."""
        for _ in range(steps):
            if not self.step():
                break
        assert self.scheduler.idle, "requests are left, and nothing runs"
        assert self.scheduler.check_integrity() == []

    def take(self, events: Sequence[Event]) -> None:
        for event in events:
            seen = self.events[event.id]
            assert not any(isinstance(e, Finished | Failed) for e in seen), "spoke after its end"
            seen.append(event)

    def check_writes(self, submission: Submission) -> None:
        """No lane writes to a page that is shared, and every position has its page."""
        shared = {node.page for node in self.scheduler.residency.tree.nodes()}
        seated = {job.slot: job for job in self.scheduler.seated}
        size = self.shape.page_tokens
        for lane in submission.lanes:
            job = seated[lane.slot]
            for position in range(lane.endpoint, lane.endpoint + lane.query_length):
                assert job.pages[position // size] not in shared
            if lane.restore_source >= 0:
                assert job.pages[lane.endpoint // size] not in shared

    # ---- what came of it ---------------------------------------------------------------------

    def tokens(self, number: int) -> tuple[int, ...]:
        return tuple(t for e in self.events[number] if isinstance(e, Tokens) for t in e.tokens)

    def logprobs(self, number: int) -> list[float]:
        return [p.logprob for e in self.events[number] if isinstance(e, Tokens) for p in e.logprobs]

    def scores(self, number: int) -> list[float]:
        return [
            s.logprob for e in self.events[number] if isinstance(e, PromptScores) for s in e.scores
        ]

    def end(self, number: int) -> Finished | Failed:
        last = self.events[number][-1]
        assert isinstance(last, Finished | Failed)
        return last

    def operations(self) -> list[Operation]:
        return [submission.operation for submission in self.submissions]

    def check(self, asked: Request, monitor: HostMonitor | None = None) -> None:
        """The request ended as it would have alone."""
        tokens, reason = expected(asked, self.shape, monitor)
        end = self.end(asked.id)
        assert isinstance(end, Finished), end
        assert (self.tokens(asked.id), end.reason) == (tokens, reason)
        assert (end.prompt_tokens, end.output_tokens) == (len(asked.prompt), len(tokens))
