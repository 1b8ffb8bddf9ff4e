"""The invariance matrix on the simulated device: how a request is served never shows in it."""

from itertools import product

import pytest
from scheduler_harness import Driver, geometry, request

from helios.contract.submission import Sampling
from helios.scheduler.policy import SchedulerPolicy
from helios.scheduler.request import Request

PAGE = 4
PROMPT = [(5 * i) % 97 for i in range(3 * PAGE + 2)]
CACHED = {
    "off": None,
    "cold": 0,
    "full": len(PROMPT),
    "partial": 6,
    "border - 1": 2 * PAGE - 1,
    "border": 2 * PAGE,
    "border + 1": 2 * PAGE + 1,
}


def asked_for(seeded: bool) -> Request:
    sampling = Sampling(temperature=float(seeded), seed=11, top_logprobs=3, presence_penalty=0.5)
    return request(0, PROMPT, 24, sampling=sampling)


def outcome(
    seeded: bool, crowded: bool, chunk: int, cache: str, preempted: bool, frames: int
) -> tuple[tuple[int, ...], list[float]]:
    shape = geometry(pages=200, slots=8, rows=8, tokens=64)
    policy = SchedulerPolicy(chunk_tokens=chunk, frames=frames, prefix_cache=cache != "off")
    driver = Driver(shape, policy)
    if CACHED[cache]:
        driver.admit(request(99, [*PROMPT[: CACHED[cache]], 96, 95], 1))
        driver.run()
    asked = asked_for(seeded)
    others = [request(i, [(17 * i + j) % 97 for j in range(3 + i)], 20) for i in range(1, 8)]
    driver.admit(asked, *(others if crowded else ()))
    for outputs in (1, 9) if preempted else ():
        while len(driver.tokens(0)) < outputs:
            driver.step()
        driver.preempt(0)
    driver.run()
    assert driver.scheduler.counters.preemptions == 2 * preempted
    driver.check(asked)
    return driver.tokens(0), driver.logprobs(0)


@pytest.mark.parametrize("seeded", [False, True])
def test_the_matrix(seeded: bool) -> None:
    alone = outcome(seeded, False, 0, "off", False, 1)
    assert len(alone[0]) == len(alone[1]) == 24
    for crowded, chunk, cache, preempted, frames in product(
        (False, True), (0, 7, 16, 64), CACHED, (False, True), (1, 2)
    ):
        case = (crowded, chunk, cache, preempted, frames)
        assert outcome(seeded, *case) == alone, case
