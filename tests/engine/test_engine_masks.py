"""Grammar masks in the engine: computed while the device works, whatever the monitor does."""

import threading
from collections.abc import Callable, Sequence

import pytest
from test_engine import SHAPE

from helios.contract.submission import (
    Completion,
    Geometry,
    LaneMasks,
    Sampling,
    Submission,
)
from helios.engine.engine import Engine
from helios.engine.messages import Event, Failed, Finished, FinishReason, Generate, Tokens
from helios.runtime.simulated import SimulatedDevice

VOCABULARY = SHAPE.vocabulary


class Diary:
    """What happened, in order. The engine's device, and what monitors write into as well."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self._device = SimulatedDevice(SHAPE)

    @property
    def geometry(self) -> Geometry:
        return self._device.geometry

    def submit(self, submission: Submission) -> None:
        self._device.submit(submission)
        self.entries.append("submit masked" if submission.masked else "submit")

    def supply(self, sequence: int, masks: Sequence[LaneMasks]) -> None:
        self.entries.append("supply")
        self._device.supply(sequence, masks)

    def wait(self, timeout: float | None = None) -> Completion | None:
        self.entries.append("wait")
        return self._device.wait(timeout)

    def close(self) -> None:
        self.entries.append("close")
        self._device.close()


class Even:
    """A grammar of even tokens. `before` is called with the number of the mask, from 1 on."""

    def __init__(self, before: Callable[[int], None] = lambda _: None) -> None:
        self._before = before
        self._masks = 0

    def accept(self, token: int) -> bool:
        assert token % 2 == 0, "the mask was not obeyed"
        return False

    def mask(self) -> bytes | None:
        self._masks += 1
        self._before(self._masks)
        return b"\x55" * -(-VOCABULARY // 8)

    def masks_along(self, proposals: Sequence[int]) -> list[bytes | None]:
        raise NotImplementedError


class Listener:
    """A sink that remembers, and knows when its request has spoken and ended."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.spoke = threading.Event()
        self._ended = threading.Event()

    def __call__(self, events: Sequence[Event]) -> None:
        self.events.extend(events)
        if any(isinstance(event, Tokens) for event in events):
            self.spoke.set()
        if isinstance(events[-1], Finished | Failed):
            self._ended.set()

    def end(self) -> Finished | Failed:
        assert self._ended.wait(60), self.events
        last = self.events[-1]
        assert isinstance(last, Finished | Failed)
        return last

    @property
    def tokens(self) -> list[int]:
        return [t for event in self.events if isinstance(event, Tokens) for t in event.tokens]


def generate(number: int, *, max_tokens: int = 6, grammar: str | None = "even") -> Generate:
    return Generate(
        id=number,
        prompt=tuple(range(number, number + 6)),
        max_tokens=max_tokens,
        sampling=Sampling(temperature=0),
        grammar=grammar,
    )


def engine_of(diary: Diary, **monitors: Even) -> Engine:
    """An engine whose requests name their monitor as their grammar."""
    return Engine(
        diary, queue_capacity=8, monitor_factory=lambda request: monitors[request.grammar or ""]
    )


def test_every_mask_is_computed_while_its_step_runs() -> None:
    diary = Diary()
    engine = engine_of(diary, even=Even(lambda _: diary.entries.append("mask")))
    sink = Listener()
    engine.submit(generate(1), sink)
    assert isinstance(sink.end(), Finished)
    engine.close()
    assert len(sink.tokens) == 6
    masked = [i for i, entry in enumerate(diary.entries) if entry == "submit masked"]
    assert len(masked) == 6, "the first token, drawn by the prefill, included"
    for start in masked:
        assert diary.entries[start : start + 4] == ["submit masked", "mask", "supply", "wait"]
    assert diary.entries.count("mask") == 6


def test_tokens_are_told_when_the_next_step_is_on_its_way() -> None:
    diary = Diary()

    class Noting(Listener):
        def __call__(self, events: Sequence[Event]) -> None:
            diary.entries.append("told")
            super().__call__(events)

    engine = engine_of(diary, even=Even())
    sink = Noting()
    engine.submit(generate(1), sink)
    assert isinstance(sink.end(), Finished)
    engine.close()
    told = [i for i, entry in enumerate(diary.entries) if entry == "told"]
    for at in told[:-1]:
        assert diary.entries[at - 1] == "supply", diary.entries
    assert len(sink.tokens) == 6


def test_requests_without_a_grammar_are_never_supplied() -> None:
    diary = Diary()
    engine = engine_of(diary)
    sink = Listener()
    engine.submit(generate(1, grammar=None), sink)
    assert isinstance(sink.end(), Finished)
    engine.close()
    assert "supply" not in diary.entries


def test_several_constrained_requests_share_a_step() -> None:
    diary = Diary()
    order: list[str] = []
    hold = threading.Event()

    def first(_: int) -> None:
        order.append("first")
        assert hold.wait(60)

    engine = engine_of(
        diary,
        first=Even(first),
        second=Even(lambda number: order.append("second")),
    )
    sinks = [Listener(), Listener(), Listener()]
    engine.submit(generate(1, grammar="first", max_tokens=12), sinks[0])
    engine.submit(generate(2, grammar="second", max_tokens=12), sinks[1])
    engine.submit(generate(3, grammar=None, max_tokens=12), sinks[2])
    hold.set()
    assert all(isinstance(sink.end(), Finished) for sink in sinks)
    assert "first second" in " ".join(order)
    assert engine.stats()["constrained_max_inflight"] == 1
    engine.close()
    assert all(token % 2 == 0 for sink in sinks[:2] for token in sink.tokens)


class Linger:
    """Makes the computing of one mask last until the test lets it end."""

    def __init__(self, at: int) -> None:
        self._at = at
        self.entered = threading.Event()
        self.hold = threading.Event()

    def __call__(self, number: int) -> None:
        if number == self._at:
            self.entered.set()
            assert self.hold.wait(60)


@pytest.mark.parametrize("masks_before", [1, 3])
def test_a_monitor_that_raises_ends_its_own_request_only(masks_before: int) -> None:
    def stumble(number: int) -> None:
        if number == masks_before:
            raise ValueError("the grammar lost its way")

    diary = Diary()
    engine = engine_of(diary, even=Even(), broken=Even(stumble))
    bad, good, plain = Listener(), Listener(), Listener()
    engine.submit(generate(1, grammar="broken"), bad)
    engine.submit(generate(2), good)
    engine.submit(generate(3, grammar=None), plain)
    end = bad.end()
    assert isinstance(end, Failed)
    assert "the grammar lost its way" in end.message
    assert len(bad.tokens) == masks_before - 1, "what the unmasked step drew is discarded"
    assert isinstance(good.end(), Finished)
    assert isinstance(plain.end(), Finished)
    assert len(good.tokens) == len(plain.tokens) == 6
    assert engine.healthy
    again = Listener()
    engine.submit(generate(4), again)
    assert isinstance(again.end(), Finished)
    engine.close()


def test_a_slow_monitor_is_waited_for() -> None:
    linger = Linger(3)
    diary = Diary()
    engine = engine_of(diary, even=Even(linger))
    slow, plain = Listener(), Listener()
    engine.submit(generate(1), slow)
    assert linger.entered.wait(60)
    engine.submit(generate(2, grammar=None), plain)
    assert diary.entries[-1] == "submit masked", "the step is on its way meanwhile"
    linger.hold.set()
    assert isinstance(slow.end(), Finished)
    assert isinstance(plain.end(), Finished)
    assert len(slow.tokens) == 6
    engine.close()


def test_a_request_cancelled_while_its_mask_is_computed_says_no_more() -> None:
    linger = Linger(3)
    diary = Diary()
    engine = engine_of(diary, even=Even(linger))
    sink, other = Listener(), Listener()
    engine.submit(generate(1, max_tokens=40), sink)
    assert linger.entered.wait(60)
    engine.cancel(1)
    linger.hold.set()
    end = sink.end()
    assert isinstance(end, Finished)
    assert end.reason is FinishReason.CANCELLED
    engine.submit(generate(2, grammar=None), other)
    assert isinstance(other.end(), Finished)
    assert engine.healthy
    engine.close()


def test_closing_while_a_mask_is_computed_ends_everything() -> None:
    linger = Linger(2)
    diary = Diary()
    engine = engine_of(diary, even=Even(linger))
    sink = Listener()
    engine.submit(generate(1, max_tokens=40), sink)
    assert linger.entered.wait(60)
    closer = threading.Thread(target=engine.close)
    closer.start()
    linger.hold.set()
    closer.join(60)
    assert not closer.is_alive()
    end = sink.end()
    assert isinstance(end, Finished)
    assert end.reason is FinishReason.CANCELLED
    assert diary.entries[-1] == "close"


def test_a_device_that_takes_no_masks_is_lost_with_an_answer_to_all() -> None:
    class Deaf(Diary):
        def supply(self, sequence: int, masks: Sequence[LaneMasks]) -> None:
            raise RuntimeError("the line is dead")

    diary = Deaf()
    engine = engine_of(diary, even=Even())
    sink = Listener()
    engine.submit(generate(1), sink)
    end = sink.end()
    assert isinstance(end, Failed)
    assert "the line is dead" in end.message
    assert not engine.healthy
    engine.close()
    assert diary.entries[-1] == "close"
