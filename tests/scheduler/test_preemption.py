"""Shortage: who is preempted, what it gets back, and that nobody is preempted for nothing."""

import pytest
from scheduler_harness import Driver, OnlyMultiples, geometry, request

from helios.contract.operation import Operation
from helios.contract.submission import Sampling
from helios.errors import AdmissionError
from helios.scheduler.events import Finished
from helios.scheduler.job import Job, Phase
from helios.scheduler.policy import SchedulerPolicy
from helios.scheduler.preemption import victim_for_growth, victim_for_newcomer
from helios.scheduler.request import Request
from helios.scheduler.waiting import order_of


def prompt(number: int, length: int = 6) -> list[int]:
    return [(31 * number + 3 * i) % 97 for i in range(length)]


def short_of_pages(*requests: Request, pages: int = 17, **shape: object) -> Driver:
    driver = Driver(
        geometry(pages=pages, **shape),  # type: ignore[arg-type]
        SchedulerPolicy(turn_snapshots=False),
    )
    driver.admit(*requests)
    driver.run()
    return driver


def preempted(driver: Driver) -> list[int]:
    """Outputs that each resumed lane came back with."""
    return [
        len(lane.admission.output)
        for s in driver.submissions
        if s.operation is Operation.RESUME
        for lane in s.lanes
        if lane.admission
    ]


@pytest.mark.parametrize("use_cache", [True, False])
def test_preempted_requests_end_as_if_they_had_not_been(use_cache: bool) -> None:
    sampling = Sampling(seed=3, top_logprobs=2)
    asked = [request(i, prompt(i), 40, sampling=sampling, use_cache=use_cache) for i in range(3)]
    roomy = short_of_pages(*asked, pages=200)
    tight = short_of_pages(*asked)
    assert roomy.scheduler.counters.preemptions == 0
    assert tight.scheduler.counters.preemptions > 0
    for one in asked:
        tight.check(one)
        assert tight.end(one.id) == roomy.end(one.id), "reason and usage too"
        assert tight.logprobs(one.id) == roomy.logprobs(one.id)


def test_a_grammar_survives_preemption() -> None:
    asked = [request(i, prompt(i), 30, monitor=OnlyMultiples(), constrained=True) for i in range(3)]
    driver = short_of_pages(*asked)
    assert driver.scheduler.counters.preemptions > 0
    for one in asked:
        driver.check(one, OnlyMultiples())


def test_the_youngest_of_the_lowest_priority_gives_way() -> None:
    important = request(2, prompt(2), 40, priority=3)
    driver = short_of_pages(
        request(0, prompt(0), 40), request(1, prompt(1), 40), important, slots=3
    )
    resumed_prompts = {
        lane.admission.prompt
        for s in driver.submissions
        if s.operation is Operation.RESUME
        for lane in s.lanes
        if lane.admission
    }
    assert tuple(prompt(1)) in resumed_prompts
    assert important.prompt not in resumed_prompts


def test_a_newcomer_of_higher_priority_takes_pages_from_lower_ones() -> None:
    driver = Driver(geometry(pages=17), SchedulerPolicy(prefix_cache=False))
    driver.admit(*(request(i, prompt(i, 16), 20) for i in range(3)))
    for _ in range(8):
        driver.step()
    assert all(len(driver.tokens(i)) < 20 for i in range(3))
    urgent = request(9, prompt(9, 30), 3, priority=5)
    driver.admit(urgent)
    while not any(isinstance(event, Finished) for event in driver.events[9]):
        driver.step()
    assert driver.scheduler.counters.preemptions > 0
    assert driver.scheduler.waiting > 0, "those who made room are in line again"
    driver.run()
    for asked in [urgent, *(request(i, prompt(i, 16), 20) for i in range(3))]:
        driver.check(asked)


def test_equals_do_not_preempt_each_other_to_be_seated() -> None:
    driver = Driver(geometry(pages=17), SchedulerPolicy(prefix_cache=False))
    driver.admit(*(request(i, prompt(i, 17), 4) for i in range(6)))
    driver.run()
    assert driver.scheduler.counters.preemptions == 0


def test_no_thrash_each_resumption_makes_progress() -> None:
    driver = short_of_pages(*(request(i, prompt(i), 50) for i in range(4)), pages=15)
    assert driver.scheduler.counters.preemptions > 3
    by_prompt: dict[tuple[int, ...], list[int]] = {}
    for submission in driver.submissions:
        for lane in submission.lanes:
            if submission.operation is Operation.RESUME and lane.admission:
                key = tuple(lane.admission.prompt)
                by_prompt.setdefault(key, []).append(len(lane.admission.output))
    for outputs in by_prompt.values():
        assert outputs == sorted(set(outputs)), "more output at each return"


def test_a_preempted_request_finds_what_it_left() -> None:
    driver = short_of_pages(*(request(i, prompt(i), 40) for i in range(2)))
    resumed = [
        lane for s in driver.submissions if s.operation is Operation.RESUME for lane in s.lanes
    ]
    assert resumed
    assert all(lane.endpoint > 0 for lane in resumed), "it goes on from its own cached pages"


def test_requests_that_could_never_fit_are_refused_with_the_numbers() -> None:
    driver = Driver(geometry(pages=10))
    with pytest.raises(AdmissionError) as refusal:
        driver.admit(request(1, prompt(1), 50))
    assert "need 14 pages of 4 tokens; the pool has 10" in str(refusal.value)
    assert "within 40 tokens" in refusal.value.remedy
    driver.admit(request(2, prompt(2), 35))
    driver.run()
    driver.check(request(2, prompt(2), 35))
    assert driver.scheduler.counters.refused == 1


def test_without_resumption_all_that_a_request_may_need_is_reserved() -> None:
    asked = [request(i, prompt(i), 40) for i in range(3)]
    driver = short_of_pages(*asked, without=[Operation.RESUME])
    assert driver.scheduler.counters.preemptions == 0
    for one in asked:
        driver.check(one)
    most = max(len({x.slot for x in s.lanes}) for s in driver.submissions)
    assert most == 1, "two of them would not fit"


def test_a_head_of_line_that_waited_for_spare_pages_is_seated_when_all_are_gone() -> None:
    """The room that it must leave for others is counted when it is looked at, not before."""
    driver = Driver(geometry(pages=17, tokens=64, without=[Operation.RESUME]))
    driver.admit(*(request(i, prompt(i), 4) for i in range(2)))
    large = request(2, prompt(2, 20), 44)
    driver.admit(large)
    driver.run()
    driver.check(large)


def test_a_preempted_request_is_spared_until_it_has_progressed() -> None:
    driver = Driver(geometry())
    driver.admit(request(1, prompt(1), 20))
    while len(driver.tokens(1)) < 4:
        driver.step()
    driver.preempt(1)
    while driver.complete():
        pass
    (job,) = driver.scheduler._outcomes.jobs.values()
    assert job.phase is Phase.WAITING
    assert not job.progressed
    before = job.outputs
    while len(driver.tokens(1)) == before:
        driver.step()
    assert job.progressed
    driver.run()


# ---- the choice itself -----------------------------------------------------------------------


def seated(arrival: int, priority: int = 0, outputs: int = 5, mark: int | None = None) -> Job:
    job = Job(request(arrival, (1, 2), 20, priority=priority), order_of(priority, 0, arrival), 20)
    job.tokens.extend(range(outputs))
    job.mark = mark
    job.pages = [0, 1, 2]
    return job


def test_the_last_in_line_leaves_unless_it_was_preempted_and_made_no_progress() -> None:
    first, second, third = seated(1), seated(2), seated(3)
    assert victim_for_growth(first, [third, first, second]) is third
    third.mark = 5
    assert victim_for_growth(first, [first, second, third]) is second
    second.mark = 5
    assert victim_for_growth(first, [first, second, third]) is None, "they will progress"
    third.accept(1)
    assert victim_for_growth(first, [first, second, third]) is third


def test_the_last_in_line_leaves_for_itself_when_it_is_short() -> None:
    first, last = seated(1), seated(2)
    assert victim_for_growth(last, [first, last]) is last


def test_nobody_leaves_while_pages_are_coming_back() -> None:
    first, second, third = seated(1), seated(2), seated(3)
    third.finished = True
    assert victim_for_growth(first, [first, second, third]) is None
    third.finished, third.leaving = False, True
    assert victim_for_growth(first, [first, second, third]) is None
    assert victim_for_newcomer(seated(4, priority=9), 1, [first, second, third]) is None


def test_a_newcomer_displaces_only_lower_priorities_that_are_due_after_it() -> None:
    low, equal = seated(1, priority=-1), seated(2, priority=2)
    newcomer = seated(3, priority=2)
    assert victim_for_newcomer(newcomer, 3, [low, equal]) is low
    assert victim_for_newcomer(newcomer, 3, [equal]) is None
    assert victim_for_newcomer(newcomer, 4, [low, equal]) is None, "it would leave for nothing"
    low.order = order_of(-1, -10_000, 1)
    assert victim_for_newcomer(newcomer, 3, [low, equal]) is None, "it has waited long enough"
    low.order, low.mark = order_of(-1, 0, 1), 5
    assert victim_for_newcomer(newcomer, 3, [low]) is None
