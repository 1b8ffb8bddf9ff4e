"""Random arrivals, cancels, faults and shortages: nothing leaks, and all ends are right.

The driver holds every step against the invariants; here the outcomes are compared with what each
request gets when it is alone.
"""

from collections import Counter
from collections.abc import Callable
from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from scheduler_harness import (
    Driver,
    OnlyMultiples,
    StopAfter,
    digest_of,
    expected,
    geometry,
    request,
)

from helios.contract.operation import Operation
from helios.contract.submission import Sampling
from helios.runtime.simulated import Faults, SimulatedDevice
from helios.scheduler.events import Failed, Finished, FinishReason
from helios.scheduler.policy import SchedulerPolicy
from helios.scheduler.request import HostMonitor, Request

MakeMonitor = Callable[[], HostMonitor] | None

STEMS = [tuple((7 * stem + 3 * i) % 97 for i in range(30)) for stem in range(3)]

shapes = st.builds(
    geometry,
    pages=st.sampled_from([60, 26, 20, 17]),
    slots=st.integers(1, 6),
    snapshots=st.sampled_from([8, 3, 1, 0]),
    rows=st.sampled_from([1, 2, 4, 8]),
    tokens=st.sampled_from([8, 16, 24]),
    without=st.sampled_from(
        [(), (), (), (Operation.MIXED,), (Operation.RESUME,), (Operation.RESTORE,)]
    ),
    recurrent=st.sampled_from([False, False, False, True]),
)
policies = st.builds(
    SchedulerPolicy,
    step_tokens=st.sampled_from([0, 1, 2, 5, 8]),
    chunk_tokens=st.sampled_from([0, 1, 3, 7]),
    frames=st.sampled_from([0, 0, 1]),
    prefix_cache=st.sampled_from([True, True, True, False]),
    turn_snapshots=st.booleans(),
)
samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 1.0]),
    seed=st.integers(0, 3),
    min_output=st.sampled_from([0, 0, 3]),
    top_logprobs=st.sampled_from([-1, 2]),
)
monitors = st.sampled_from([None, None, None, None, OnlyMultiples, lambda: StopAfter(3)])


@st.composite
def requests(draw: st.DrawFn) -> tuple[dict[str, object], MakeMonitor]:
    """The options of a request, and what makes its monitor."""
    stem = draw(st.sampled_from(STEMS))
    prompt = stem[: draw(st.sampled_from([30, 17, 13, 9, 8, 7, 4, 1]))] + tuple(
        draw(st.lists(st.integers(0, 96), max_size=5))
    )
    scored = draw(st.sampled_from([-1, -1, -1, 0, 2]))
    make = draw(monitors)
    masks = make is OnlyMultiples
    options: dict[str, object] = {
        "prompt": prompt,
        "max_tokens": draw(st.integers(0 if scored >= 0 else 1, 28)),
        "sampling": draw(samplings),
        "eos_tokens": () if masks else draw(st.sampled_from([(), (5,), (5, 6)])),
        "stop_tokens": draw(st.sampled_from([(), (), (7, 8, 9, 10)])),
        "stop_sequences": draw(st.sampled_from([(), (), ((3,), (4, 4))])),
        "constrained": masks,
        "prompt_logprobs": scored,
        "priority": draw(st.sampled_from([0, 0, 0, 1, 5, -3])),
        "use_cache": draw(st.sampled_from([True, True, True, False])),
        "cache_salt": draw(st.sampled_from(["", "", "tenant"])),
        "boundaries": draw(st.sampled_from([(), (), (1,), (len(prompt),)])),
    }
    return options, make


class SchedulerMachine(RuleBasedStateMachine):
    """The state machine; `seen` counts what happened over all of its runs."""

    seen: ClassVar[Counter[str]] = Counter()

    @initialize(
        shape=shapes,
        policy=policies,
        faults=st.sampled_from([Faults(), Faults(), Faults(errors=0.02, lies=0.02)]),
        seed=st.integers(0, 99),
    )
    def start(self, shape: object, policy: SchedulerPolicy, faults: Faults, seed: int) -> None:
        device = SimulatedDevice(shape, seed=seed, faults=faults, audit=True)  # type: ignore[arg-type]
        self.faulty = faults.errors > 0
        self.driver = Driver(device.geometry, policy, device)
        self.asked: dict[int, tuple[Request, MakeMonitor]] = {}
        self.cancelled: set[int] = set()

    @rule(batch=st.lists(requests(), min_size=1, max_size=5))
    def admit(self, batch: list[tuple[dict[str, object], MakeMonitor]]) -> None:
        for options, make in batch:
            number = len(self.asked)
            monitor = make() if make else None
            asked = request(number, monitor=monitor, **options)  # type: ignore[arg-type]
            self.asked[number] = asked, make
            self.driver.admit(asked)

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.asked)))
        self.cancelled.add(number)
        self.driver.cancel(number)

    @rule(count=st.integers(1, 4))
    def submit(self, count: int) -> None:
        for _ in range(count):
            self.driver.submit()

    @rule(count=st.integers(1, 12))
    def step(self, count: int) -> None:
        for _ in range(count):
            self.driver.step()

    @rule()
    def complete(self) -> None:
        self.driver.complete()

    def teardown(self) -> None:
        if not hasattr(self, "driver"):
            return
        self.driver.run()
        for number in self.asked:
            self.check(number)
        assert self.driver.scheduler.counters.constrained_max_inflight <= 1
        self.count()

    def count(self) -> None:
        seen, counters = SchedulerMachine.seen, self.driver.scheduler.counters
        seen["requests"] += len(self.asked)
        seen["steps"] += len(self.driver.submissions)
        seen["preemptions"] += counters.preemptions
        seen["prefix hits"] += counters.prefix_hits
        seen["restores"] += counters.steps[Operation.RESTORE]
        seen["resumptions"] += counters.steps[Operation.RESUME]
        seen["grammar beside free"] += counters.mixed_grammar_decode_steps
        seen["lies"] += counters.rejected_records
        seen["failed steps"] += counters.failed_steps
        seen["evictions"] += self.driver.scheduler.residency.pages_evicted

    def check(self, number: int) -> None:
        asked, make = self.asked[number]
        end = self.driver.end(number)
        tokens, _ = expected(asked, self.driver.shape, make() if make else None)
        if isinstance(end, Failed):
            assert self.faulty, end
        elif isinstance(end, Finished) and end.reason is FinishReason.CANCELLED:
            assert number in self.cancelled
        else:
            self.driver.check(asked, make() if make else None)
            self.check_scores(asked)
        got = self.driver.tokens(number)
        assert got == tokens[: len(got)], "what came out before the end is right too"

    def check_scores(self, asked: Request) -> None:
        if asked.prompt_logprobs >= 0:
            right = [
                digest_of(asked.prompt[:end], asked.prompt[end])
                for end in range(1, len(asked.prompt))
            ]
            assert self.driver.scores(asked.id) == right


def test_random_lives() -> None:
    run_state_machine_as_test(
        SchedulerMachine,
        settings=settings(
            max_examples=80,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
    seen = SchedulerMachine.seen
    assert seen["requests"] >= 1000
    assert seen["steps"] >= 5000
    assert min(seen.values()) >= 20, f"too little was tried: {seen}"
