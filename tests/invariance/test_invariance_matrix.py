"""The invariance matrix on the native runtime, with SmolLM2: how a request is served never shows.

Tokens and log-probabilities must be equal bit for bit across company, chunking, prefix reuse,
preemption, frames in flight and threads.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import pytest

from helios.contract.submission import Sampling
from helios.core.reader import Core
from helios.runtime.cpu.device import CpuRuntime
from helios.runtime.loader import LoadOptions, load_model
from helios.runtime.model import Model
from helios.scheduler.events import Event, Failed, Finished, Tokens
from helios.scheduler.policy import SchedulerPolicy
from helios.scheduler.request import Request
from helios.scheduler.scheduler import Scheduler

PAGE = 32
PROMPT = tuple(2000 + (37 * i) % 20000 for i in range(2 * PAGE + 7))
OUTPUTS = 8
CHUNKS = (0, 7, 16, 64)
# How many tokens of the prompt an earlier request shares; None switches the cache off.
CACHED = {
    "off": None,
    "cold": 0,
    "full": len(PROMPT),
    "partial": 40,
    "border - 1": 2 * PAGE - 1,
    "border": 2 * PAGE,
    "border + 1": 2 * PAGE + 1,
}
SAMPLINGS = {
    "greedy": Sampling(temperature=0.0, top_logprobs=3, presence_penalty=0.5),
    "seeded": Sampling(temperature=1.0, seed=11, top_p=0.95, top_logprobs=3),
}
Outcome = list[tuple[int, float, tuple[tuple[int, float], ...]]]


@dataclass
class Session:
    """One scheduler over a model, driven to the end step by step."""

    model: Model
    policy: SchedulerPolicy
    events: dict[int, list[Event]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.model.geometry, self.policy)

    def admit(self, request: Request) -> None:
        self.scheduler.admit(request)

    def step(self) -> None:
        while (submission := self.scheduler.next()) is not None:
            self.model.submit(submission)
        completion = self.model.wait(timeout=600)
        assert completion is not None
        for event in self.scheduler.retire(completion):
            self.events.setdefault(event.id, []).append(event)

    def run(self) -> None:
        while not self.scheduler.idle:
            self.step()
        assert self.scheduler.check_integrity() == []

    def preempt(self, number: int) -> None:
        (job,) = (j for j in self.scheduler.seated if j.request.id == number)
        self.scheduler._dismiss(job)
        while job in self.scheduler.seated:
            self.step()

    def outcome(self, number: int) -> Outcome:
        return [
            (token, logprob.logprob, logprob.top)
            for event in self.events.get(number, [])
            if isinstance(event, Tokens)
            for token, logprob in zip(event.tokens, event.logprobs, strict=True)
        ]


@pytest.fixture(scope="module", params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def model(smollm2_core: Core, threads: int) -> Iterator[Model]:
    options = LoadOptions(context=512, concurrency=8, pages=120, snapshots=16)
    with load_model(smollm2_core, CpuRuntime(threads), options).model as loaded:
        yield loaded


@pytest.fixture(scope="module")
def alone(smollm2_core: Core) -> dict[str, Outcome]:
    """What each sampling gives on one thread, with nothing else going on."""
    options = LoadOptions(context=512, concurrency=8, pages=120, snapshots=16)
    with load_model(smollm2_core, CpuRuntime(1), options).model as loaded:
        return {name: serve(loaded, name, False, 0, "off", False, 1) for name in SAMPLINGS}


def serve(
    model: Model, sampling: str, crowded: bool, chunk: int, cache: str, preempted: bool, frames: int
) -> Outcome:
    policy = SchedulerPolicy(chunk_tokens=chunk, frames=frames, prefix_cache=cache != "off")
    session = Session(model, policy)
    shared = CACHED[cache]
    if shared:
        session.admit(Request(99, (*PROMPT[:shared], 500, 501), 1, Sampling(temperature=0.0)))
        session.run()
    session.admit(Request(0, PROMPT, OUTPUTS, SAMPLINGS[sampling]))
    for number in range(1, 8) if crowded else ():
        prompt = tuple(700 + (113 * number + 29 * i) % 9000 for i in range(5 * number))
        session.admit(Request(number, prompt, 4, Sampling(temperature=0.7, seed=number)))
    for outputs in (1, 4) if preempted else ():
        while len(session.outcome(0)) < outputs:
            session.step()
        session.preempt(0)
    session.run()
    assert session.scheduler.counters.preemptions == 2 * preempted
    finished = session.events[0][-1]
    assert not any(isinstance(event, Failed) for event in session.events[0])
    assert isinstance(finished, Finished)
    assert finished.output_tokens == OUTPUTS
    if cache == "full":
        assert finished.reused_prompt_tokens >= len(PROMPT) - 1
    return session.outcome(0)


@pytest.mark.parametrize("frames", [1, 2])
@pytest.mark.parametrize("cache", CACHED)
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_the_matrix(
    model: Model, alone: dict[str, Outcome], sampling: str, cache: str, frames: int
) -> None:
    assert len(alone[sampling]) == OUTPUTS
    for crowded, chunk, preempted in product((False, True), CHUNKS, (False, True)):
        case = (crowded, chunk, cache, preempted, frames)
        assert serve(model, sampling, *case) == alone[sampling], case
