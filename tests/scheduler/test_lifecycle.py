"""Ends before their time: cancellation, failed steps, lying records, and who waits for what."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from scheduler_harness import Driver, geometry, request

from helios.contract.operation import Operation
from helios.contract.submission import Completion, Geometry, LaneCompletion, Submission
from helios.errors import DeviceError, RequestError
from helios.runtime.simulated import SimulatedDevice
from helios.scheduler.events import Failed, FailureKind, Finished, FinishReason, Tokens
from helios.scheduler.policy import SchedulerPolicy
from helios.scheduler.waiting import HEAD_START

LaneLie = Callable[[LaneCompletion], LaneCompletion]


def test_cancelling_keeps_slot_and_pages_until_the_last_fence() -> None:
    driver = Driver(geometry())
    driver.admit(request(1, range(6), 30))
    for _ in range(6):
        driver.step()
    while driver.submit():
        pass
    assert driver.scheduler.outstanding == 2
    held = driver.scheduler.residency.pool.free
    driver.cancel(1)
    assert isinstance(driver.end(1), Finished), "its output ends at once"
    for _ in range(2):
        assert (driver.scheduler.active, driver.scheduler.residency.pool.free) == (1, held)
        assert not driver.submit()
        driver.complete()
    assert driver.scheduler.idle
    assert driver.end(1) == Finished(1, FinishReason.CANCELLED, 6, len(driver.tokens(1)))


def test_cancelling_twice_or_nobody_is_harmless() -> None:
    driver = Driver(geometry())
    driver.admit(request(1, range(6), 30))
    driver.cancel(1)
    driver.cancel(1)
    driver.cancel(77)
    driver.run()
    assert len(driver.events[1]) == 1


def test_a_cancelled_turn_is_not_kept() -> None:
    driver = Driver(geometry())
    driver.admit(request(1, range(8), 40))
    for _ in range(14):
        driver.step()
    driver.cancel(1)
    driver.run()
    assert driver.scheduler.residency.tree.pages == 2, "the prompt's pages alone"


def test_ten_thousand_cancels_in_the_line_leave_nothing() -> None:
    driver = Driver(geometry(slots=1))
    driver.admit(*(request(i, range(6), 5) for i in range(10_000)))
    for number in range(9_999):
        driver.cancel(number)
    assert driver.scheduler.waiting == 1
    driver.run()
    driver.check(request(9_999, range(6), 5))
    assert all(len(driver.events[i]) == 1 for i in range(9_999))


# ---- the order of the line -------------------------------------------------------------------


def finish_order(driver: Driver) -> list[int]:
    order: list[int] = []
    while driver.step():
        ended = {n for n, events in driver.events.items() if isinstance(events[-1], Finished)}
        order.extend(sorted(ended - set(order)))
    return order


def test_the_line_is_first_come_first_served() -> None:
    driver = Driver(geometry(slots=1))
    driver.admit(*(request(i, range(6), 2) for i in range(5)))
    assert finish_order(driver) == [0, 1, 2, 3, 4]


def test_higher_priority_goes_first() -> None:
    driver = Driver(geometry(slots=1))
    driver.admit(*(request(i, range(6), 2, priority=p) for i, p in enumerate([0, -1, 5, 0, 9])))
    assert finish_order(driver) == [4, 2, 0, 3, 1]


def test_priority_is_a_head_start_and_no_more() -> None:
    driver = Driver(geometry(slots=1))
    patient = request(0, range(6), 2)
    driver.admit(request(1, range(6), 2, priority=1), patient)
    number = 2
    while not driver.events[0] and number < HEAD_START:
        driver.admit(request(number, range(6), 2, priority=1))
        number += 1
        while driver.scheduler.waiting > 1:
            driver.step()
    assert driver.events[0], "an endless stream does not starve it"
    assert len(driver.submissions) < HEAD_START + 20


# ---- failures --------------------------------------------------------------------------------


def tampered(shape: Geometry, when: Operation, slot: int, lie: LaneLie) -> SimulatedDevice:
    """A device that lies once about one slot, in the first step of an operation."""
    lied = False

    def tamper(submission: Submission, completion: Completion) -> Completion:
        nonlocal lied
        index = next((i for i, x in enumerate(submission.lanes) if x.slot == slot), None)
        if lied or submission.operation is not when or index is None:
            return completion
        lied = True
        lanes = list(completion.lanes)
        lanes[index] = lie(lanes[index])
        return replace(completion, lanes=tuple(lanes))

    return SimulatedDevice(shape, tamper=tamper)


LIES: dict[str, tuple[LaneLie, str]] = {
    "generation": (lambda r: replace(r, generation=9), "generation 9"),
    "slot": (lambda r: replace(r, slot=3), "slot 3"),
    "endpoint": (lambda r: replace(r, endpoint=r.endpoint + 1), "endpoint"),
    "accepted": (lambda r: replace(r, accepted=0, tokens=()), "0 tokens accepted where 1"),
    "tokens": (lambda r: replace(r, tokens=()), "1 accepted tokens, 0 reported"),
    "too many": (lambda r: replace(r, accepted=2, tokens=(1, 2)), "2 tokens accepted"),
    "vocabulary": (lambda r: replace(r, tokens=(97,)), "token 97 is outside the vocabulary"),
    "negative": (lambda r: replace(r, tokens=(-1,)), "token -1 is outside the vocabulary"),
    "cursor": (lambda r: replace(r, cursor=4), "draft cursor 4"),
    "model": (lambda r: replace(r, model=0), "reserved model field is 0"),
    "offers": (lambda r: replace(r, offered=1), "1 drafts offered"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_fails_its_request_alone_and_marks_the_model(name: str) -> None:
    lie, reason = LIES[name]
    shape = geometry(slots=2, tokens=32)
    driver = Driver(shape, device=tampered(shape, Operation.DECODE, 0, lie))
    driver.admit(request(1, range(6), 8), request(2, range(9), 8))
    driver.run()
    driver.check(request(2, range(9), 8))
    end = driver.end(1)
    assert isinstance(end, Failed)
    assert end.kind is FailureKind.EXECUTION
    assert reason in end.message
    assert driver.scheduler.fault is not None
    assert reason in driver.scheduler.fault
    assert driver.scheduler.counters.rejected_records == 1
    assert len(driver.tokens(1)) == 1, "nothing of the lie went out"


@pytest.mark.parametrize(
    ("alter", "reason"),
    [
        (lambda c: replace(c, sequence=c.sequence + 1), "where 1 was next"),
        (lambda c: replace(c, frame=1 - c.frame), "completed in frame 0"),
        (lambda c: replace(c, lanes=c.lanes[:-1]), "1 lanes completed of 2"),
    ],
)
def test_a_record_of_another_step_fails_the_whole_step(
    alter: Callable[[Completion], Completion], reason: str
) -> None:
    shape = geometry(tokens=32)
    device = SimulatedDevice(shape, tamper=lambda s, c: alter(c) if s.sequence == 1 else c)
    driver = Driver(shape, device=device)
    driver.admit(request(1, range(6), 8), request(2, range(9), 8))
    driver.run()
    for number in (1, 2):
        end = driver.end(number)
        assert isinstance(end, Failed)
        assert reason in end.message


def test_a_failed_step_hurts_nobody_outside_it() -> None:
    shape = geometry()

    def tamper(submission: Submission, completion: Completion) -> Completion:
        if submission.operation is Operation.PREFILL:
            return Completion(completion.sequence, completion.frame, error=DeviceError("broken"))
        return completion

    driver = Driver(shape, SchedulerPolicy(chunk_tokens=16), SimulatedDevice(shape, tamper=tamper))
    driver.admit(request(1, range(12), 6))
    while driver.scheduler.counters.failed_steps == 0:
        driver.step()
    end = driver.end(1)
    assert isinstance(end, Failed)
    assert "broken" in end.message
    assert driver.scheduler.fault is not None
    assert driver.scheduler.residency.tree.pages == 0, "what it wrote is not cached"
    assert driver.scheduler.idle


def test_nothing_in_flight_can_complete() -> None:
    driver = Driver(geometry())
    with pytest.raises(DeviceError, match="never submitted"):
        driver.scheduler.retire(Completion(0, 0))


def test_a_lost_device_ends_everyone_once() -> None:
    driver = Driver(geometry(slots=2))
    driver.admit(*(request(i, range(6), 20) for i in range(5)))
    for _ in range(5):
        driver.step()
    while driver.submit():
        pass
    driver.take(driver.scheduler.abandon("it is gone"))
    assert all(isinstance(driver.end(i), Failed) for i in range(5))
    assert driver.scheduler.idle
    assert driver.scheduler.check_integrity() == []


def test_an_id_in_use_is_refused() -> None:
    driver = Driver(geometry())
    driver.admit(request(1, range(6), 2))
    with pytest.raises(RequestError, match="in use"):
        driver.admit(request(1, range(3), 2))
    driver.run()
    assert len([e for e in driver.events[1] if isinstance(e, Tokens)]) == 2


def test_memory_does_not_grow_over_many_requests() -> None:
    driver = Driver(
        geometry(pages=30, slots=3), device=SimulatedDevice(geometry(pages=30, slots=3))
    )
    scheduler = driver.scheduler
    for number in range(2_000):
        scheduler.admit(
            request(
                number, [(number * 7 + i) % 97 for i in range(9)], 3, cache_salt=str(number % 50)
            )
        )
        while (submission := scheduler.next()) is not None:
            driver.device.submit(submission)
            completion = driver.device.wait()
            assert completion is not None
            scheduler.retire(completion)
    assert scheduler.idle
    residency = scheduler.residency
    assert residency.tree.pages <= 30
    assert len(residency.tree.roots()) <= 30 + residency.rows.total
    assert not scheduler._outcomes.jobs
    assert len(scheduler._line._heap) <= 64
