"""The engine on a simulated device: threads, queues, failures, and the end of every request."""

import dataclasses
import threading
from collections.abc import Sequence
from itertools import count

import pytest
from msgspec.structs import replace

from helios.contract.operation import Operation
from helios.contract.submission import (
    Completion,
    Geometry,
    LaneMasks,
    Sampling,
    Submission,
    Variant,
)
from helios.engine.engine import Engine
from helios.engine.ingress import QueueFull
from helios.engine.messages import (
    Event,
    Failed,
    FailureKind,
    Finished,
    FinishReason,
    Generate,
    Tokens,
)
from helios.errors import DeviceError, RequestError
from helios.runtime.simulated import Faults, SimulatedDevice

SHAPE = Geometry(
    context_tokens=64,
    page_tokens=4,
    pages=32,
    slots=4,
    snapshots=4,
    vocabulary=97,
    input_vocabulary=97,
    variants=tuple(
        Variant(operation.name.lower(), operation, 4, 4 if operation is Operation.DECODE else 16)
        for operation in (
            Operation.INITIALIZE,
            Operation.RESUME,
            Operation.RESTORE,
            Operation.PREFILL,
            Operation.SCORED_PREFILL,
            Operation.DECODE,
            Operation.MIXED,
        )
    ),
)


class Gated:
    """A device that completes a step only when the test lets it."""

    def __init__(self, device: SimulatedDevice) -> None:
        self.device = device
        self.gate = threading.Semaphore(0)
        self.submitted = threading.Event()

    @property
    def geometry(self) -> Geometry:
        return self.device.geometry

    def submit(self, submission: Submission) -> None:
        self.device.submit(submission)
        self.submitted.set()

    def supply(self, sequence: int, masks: Sequence[LaneMasks]) -> None:
        self.device.supply(sequence, masks)

    def wait(self, timeout: float | None = None) -> Completion | None:
        self.gate.acquire()
        return self.device.wait(timeout)

    def close(self) -> None:
        self.device.close()

    def open(self) -> None:
        self.gate.release(100_000)


class Listener:
    """A sink that remembers, and knows when all it waits for have ended."""

    def __init__(self, requests: int = 1) -> None:
        self.events: list[Event] = []
        self.calls = 0
        self._left = requests
        self._done = threading.Event()

    def __call__(self, events: Sequence[Event]) -> None:
        self.calls += 1
        self.events.extend(events)
        self._left -= sum(isinstance(event, Finished | Failed) for event in events)
        if self._left <= 0:
            self._done.set()

    def wait(self) -> list[Event]:
        assert self._done.wait(20), "no terminal event"
        return self.events

    def ends(self) -> list[Finished | Failed]:
        return [event for event in self.wait() if isinstance(event, Finished | Failed)]


def generate(number: int, **options: object) -> Generate:
    defaults: dict[str, object] = {
        "prompt": (1, 2, 3, 4, 5),
        "max_tokens": 6,
        "sampling": Sampling(temperature=0),
    }
    return Generate(id=number, **{**defaults, **options})  # type: ignore[arg-type]


def test_a_request_streams_its_tokens_and_ends_once() -> None:
    engine = Engine(SimulatedDevice(SHAPE), queue_capacity=4)
    listener = Listener()
    engine.submit(generate(1), listener)
    *tokens, end = listener.wait()
    engine.close()
    assert end == Finished(1, FinishReason.LENGTH, 5, 6)
    assert [type(event) for event in tokens] == [Tokens] * 6
    assert listener.calls == 6, "the last token and the end come together"


def test_requests_that_share_a_sink_share_its_calls() -> None:
    device = Gated(SimulatedDevice(SHAPE))
    engine = Engine(device, queue_capacity=8)
    listener = Listener(4)
    for number in range(4):
        engine.submit(generate(number), listener)
    device.open()
    assert len(listener.ends()) == 4
    engine.close()
    assert listener.calls < len(listener.events) / 2


def test_a_full_queue_refuses_and_loses_nothing() -> None:
    device = Gated(SimulatedDevice(SHAPE))
    engine = Engine(device, queue_capacity=2, max_active=1)
    listener = Listener(100)
    engine.submit(generate(0), listener)
    assert device.submitted.wait(20)
    accepted = 1
    while accepted < 100:
        try:
            engine.submit(generate(accepted), listener)
        except QueueFull:
            break
        accepted += 1
    assert engine.stats()["queue_rejections_total"] == 1
    listener._left = accepted
    device.open()
    assert {end.id for end in listener.ends()} == set(range(accepted))
    engine.close()


def test_cancelling_ends_a_queued_a_waiting_and_a_running_request() -> None:
    device = Gated(SimulatedDevice(SHAPE))
    engine = Engine(device, queue_capacity=2, max_active=1)
    listener = Listener(3)
    engine.submit(generate(0, max_tokens=30), listener)
    assert device.submitted.wait(20)
    engine.submit(generate(1), listener)
    engine.submit(generate(2), listener)
    for number in (2, 1, 0, 0, 99):
        engine.cancel(number)
    device.open()
    ends = listener.ends()
    engine.close()
    assert sorted(end.id for end in ends) == [0, 1, 2]
    assert all(isinstance(e, Finished) and e.reason is FinishReason.CANCELLED for e in ends)


def test_ten_thousand_cancels_lose_nothing() -> None:
    engine = Engine(SimulatedDevice(SHAPE), queue_capacity=10_000)
    listener = Listener(10_000)
    for number in range(10_000):
        engine.submit(generate(number), listener)
        engine.cancel(number)
    assert {end.id for end in listener.ends()} == set(range(10_000))
    engine.close()
    assert engine.stats()["pages_free"] + engine.stats()["pages_cached"] == SHAPE.pages


def test_ids_in_use_and_wrong_requests_are_refused_at_once() -> None:
    device = Gated(SimulatedDevice(SHAPE))
    engine = Engine(device, queue_capacity=4)
    listener = Listener()
    engine.submit(generate(1), listener)
    with pytest.raises(RequestError, match="in use"):
        engine.submit(generate(1), listener)
    with pytest.raises(RequestError, match="at least one token"):
        engine.submit(generate(2, prompt=()), listener)
    with pytest.raises(RequestError, match="priority"):
        engine.submit(generate(2, priority=1000), listener)
    with pytest.raises(RequestError, match="monitor factory"):
        engine.submit(generate(2, stop_strings=("x",)), listener)
    device.open()
    assert [end.id for end in listener.ends()] == [1]
    engine.close()


def test_a_request_that_never_fits_gets_its_own_kind_of_failure() -> None:
    shape = dataclasses.replace(SHAPE, pages=4)
    engine = Engine(SimulatedDevice(shape), queue_capacity=4)
    listener = Listener()
    engine.submit(generate(1, max_tokens=50), listener)
    (end,) = listener.ends()
    assert isinstance(end, Failed)
    assert end.kind is FailureKind.ADMISSION
    assert "need 14 pages of 4 tokens; the pool has 4" in end.message
    assert engine.healthy
    engine.close()


def test_a_failed_step_fails_its_requests_and_the_engine_takes_no_more() -> None:
    engine = Engine(SimulatedDevice(SHAPE, faults=Faults(errors=1.0)), queue_capacity=4)
    listener = Listener()
    engine.submit(generate(1), listener)
    (end,) = listener.ends()
    assert isinstance(end, Failed)
    assert end.kind is FailureKind.EXECUTION
    assert not engine.healthy
    with pytest.raises(DeviceError, match="fault was injected"):
        engine.submit(generate(2), listener)
    engine.close()


def test_a_lying_record_reaches_no_client_and_marks_the_model() -> None:
    def tamper(submission: Submission, completion: Completion) -> Completion:
        if submission.operation is not Operation.PREFILL:
            return completion
        first, *others = completion.lanes
        return replace(completion, lanes=(replace(first, tokens=(97,)), *others))

    engine = Engine(SimulatedDevice(SHAPE, tamper=tamper), queue_capacity=4)
    listener = Listener()
    engine.submit(generate(1), listener)
    events = listener.wait()
    engine.close()
    assert [type(event) for event in events] == [Failed]
    assert engine.stats()["rejected_records_total"] == 1
    assert engine.fault is not None
    assert "outside the vocabulary" in engine.fault


class Lost(SimulatedDevice):
    """A device that is gone after a few steps."""

    def wait(self, timeout: float | None = None) -> Completion | None:
        if self._sequence > 4:
            raise DeviceError("the device fell off the bus")
        return super().wait(timeout)


def test_a_lost_device_answers_everyone() -> None:
    engine = Engine(Lost(SHAPE), queue_capacity=16)
    listener = Listener(10)
    submitted = 0
    try:
        for number in range(10):
            engine.submit(generate(number, max_tokens=20), listener)
            submitted += 1
    except DeviceError:
        pass
    listener._left = submitted - sum(isinstance(e, Finished | Failed) for e in listener.events)
    listener([])
    ends = listener.ends()
    assert len(ends) == submitted
    assert all(isinstance(end, Failed) and "fell off" in end.message for end in ends)
    engine.close()
    assert not engine.healthy


class Refusing(SimulatedDevice):
    """A device that can't start one step, the fourth."""

    def submit(self, submission: Submission) -> None:
        if submission.sequence == 3:
            self._sequence += 1
            for lane in submission.lanes:
                self._slots[lane.slot].poisoned = True
            raise DeviceError("no room in the frame")
        super().submit(submission)


def test_a_step_that_cannot_start_fails_in_its_turn() -> None:
    engine = Engine(Refusing(SHAPE), queue_capacity=4)
    listener = Listener()
    engine.submit(generate(1, max_tokens=20), listener)
    *tokens, end = listener.wait()
    engine.close()
    assert isinstance(end, Failed)
    assert "no room in the frame" in end.message
    assert len(tokens) == 2, "what ran before it was delivered"


def test_a_sink_that_raises_hurts_only_its_own_request() -> None:
    def broken(events: Sequence[Event]) -> None:
        raise ValueError("reader is gone")

    device = Gated(SimulatedDevice(SHAPE))
    engine = Engine(device, queue_capacity=4)
    listener = Listener()
    engine.submit(generate(1, max_tokens=30), broken)
    engine.submit(generate(2), listener)
    device.open()
    (end,) = listener.ends()
    engine.close()
    assert isinstance(end, Finished)
    assert engine.healthy is False, "closed"
    assert engine.fault is None
    assert engine.stats()["requests_cancelled_total"] == 1


def test_only_observed_requests_read_the_clock() -> None:
    ticks = count(1000)
    device = Gated(SimulatedDevice(SHAPE))
    engine = Engine(device, queue_capacity=4, clock=lambda: next(ticks))
    plain, observed = Listener(), Listener()
    engine.submit(generate(1, max_tokens=2), plain)
    device.open()
    plain.wait()
    assert all(not e.timestamps_ns for e in plain.events if isinstance(e, Tokens))
    before = next(ticks)
    engine.submit(generate(2, max_tokens=3, timestamps=True), observed)
    observed.wait()
    engine.close()
    stamps = [s for e in observed.events if isinstance(e, Tokens) for s in e.timestamps_ns]
    assert len(stamps) == 3
    assert stamps == sorted(stamps)
    assert stamps[0] > before
    assert before < 1010, "idle checks aside, nobody read the clock"


def test_closing_drains_then_cancels() -> None:
    device = Gated(SimulatedDevice(SHAPE))
    engine = Engine(device, queue_capacity=8, max_active=1)
    listener = Listener(3)
    for number in range(3):
        engine.submit(generate(number, max_tokens=30), listener)
    assert device.submitted.wait(20)
    closer = threading.Thread(target=engine.close, args=(0.01,))
    closer.start()
    device.open()
    closer.join(20)
    assert not closer.is_alive()
    with pytest.raises(DeviceError, match="closed"):
        engine.submit(generate(50), listener)
    assert sorted(end.id for end in listener.ends()) == [0, 1, 2]
    assert device.device.closed


def test_stats_account_for_every_request() -> None:
    engine = Engine(SimulatedDevice(SHAPE), queue_capacity=16)
    listener = Listener(3)
    engine.submit(generate(1), listener)
    engine.submit(generate(2), listener)
    engine.submit(generate(3, max_tokens=4, prompt=(1, 2, 3)), listener)
    listener.wait()
    engine.close()
    stats = engine.stats()
    assert stats["requests_admitted_total"] == stats["requests_length_total"] == 3
    assert stats["sampled_tokens_total"] == 16
    assert stats["prompt_tokens_total"] == 13
    assert stats["active_requests"] == stats["queued_requests"] == stats["frames_in_flight"] == 0
    assert stats["integrity_checks_total"] >= 1
    assert stats["integrity_problems"] == 0
    assert stats["pages_free"] + stats["pages_cached"] == stats["pages"] == 32
    assert stats["decode_steps_total"] > 0
    assert stats["constrained_max_inflight"] == 0
    assert all(isinstance(value, int) for value in stats.values())


def test_monitors_come_from_the_factory_and_may_fail_alone() -> None:
    class Broken:
        def accept(self, token: int) -> bool:
            raise ValueError("grammar lost its way")

        def mask(self) -> bytes | None:
            return None

        def masks_along(self, proposals: Sequence[int]) -> list[bytes | None]:
            return [None] * (len(proposals) + 1)

    engine = Engine(SimulatedDevice(SHAPE), queue_capacity=4, monitor_factory=lambda _: Broken())
    bad, good = Listener(), Listener()
    engine.submit(generate(1, grammar="g"), bad)
    engine.submit(generate(2), good)
    (end,) = bad.ends()
    assert isinstance(end, Failed)
    assert "grammar lost its way" in end.message
    assert isinstance(good.ends()[0], Finished)
    assert engine.healthy
    engine.close()
