"""What is read back of a step: each lane gets the row that was drawn for it, and no other."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from helios.contract.kinds import CompletionField
from helios.contract.operation import Operation
from helios.contract.submission import Lane, LaneCompletion, Submission
from helios.runtime.completions import CompletionReader

SAMPLED = (
    CompletionField.TOKENS,
    CompletionField.ACCEPTED,
    CompletionField.LOGPROB,
    CompletionField.TOP_TOKENS,
    CompletionField.TOP_LOGPROBS,
)


class Buffers:
    """A storage of two frames; what is not given is full of an earlier step's numbers."""

    def __init__(self, frame: int, given: dict[CompletionField, Any]) -> None:
        self._frame = frame
        self._arrays = {field.name: np.array(values) for field, values in given.items()}

    def array(self, name: str, frame: int) -> np.ndarray[Any, Any]:
        found = self._arrays[name]
        return found if frame == self._frame else np.full_like(found, 99)


def read(given: dict[CompletionField, Any], *lanes: Lane) -> tuple[LaneCompletion, ...]:
    count = len(lanes)
    given = {
        CompletionField.SLOT: [*(lane.slot for lane in lanes), 99],
        CompletionField.GENERATION: [*range(10, 10 + count), 99],
        CompletionField.ENDPOINT: [*range(20, 20 + count), 99],
        **given,
    }
    graph: Any = SimpleNamespace(completion=tuple((field, field.name) for field in given))
    storage: Any = Buffers(1, given)
    submission = Submission(7, 1, Operation.MIXED, "p", lanes)
    completion = CompletionReader(graph).read(submission, storage)
    assert (completion.sequence, completion.frame, completion.error) == (7, 1, None)
    return completion.lanes


def lane(slot: int, *, sample: bool) -> Lane:
    return Lane(slot, slot + 10, slot + 20, query_length=1, sample=sample)


def sampled(
    tokens: Any, accepted: Any, logprobs: Any, tops: Any, values: Any
) -> dict[CompletionField, Any]:
    return dict(zip(SAMPLED, (tokens, accepted, logprobs, tops, values), strict=True))


def test_sampled_rows_go_to_the_lanes_that_draw() -> None:
    given = sampled([5, 6, 99], [1, 1, 99], [-0.5, -0.25, 99.0], [[-1]] * 3, [[0.0]] * 3)
    lanes = [lane(3, sample=False), lane(1, sample=True), lane(4, sample=False)]
    records = read(given, *lanes, lane(0, sample=True))
    assert [(r.slot, r.generation, r.endpoint) for r in records] == [
        (3, 10, 20),
        (1, 11, 21),
        (4, 12, 22),
        (0, 13, 23),
    ]
    assert [(r.accepted, r.tokens, r.logprob) for r in records] == [
        (0, (), None),
        (1, (5,), -0.5),
        (0, (), None),
        (1, (6,), -0.25),
    ]
    assert [r.top for r in records] == [()] * 4


def test_alternatives_belong_to_the_lane_that_asked_for_them() -> None:
    given = sampled(
        [5, 6, 7],
        [1, 1, 1],
        [-1.0] * 3,
        [[-1, -1, -1], [8, 9, -1], [-1, -1, -1]],
        [[0.0, 0.0, 0.0], [-0.5, -1.5, 0.0], [0.0, 0.0, 0.0]],
    )
    records = read(given, *(lane(slot, sample=True) for slot in range(3)))
    assert [r.top for r in records] == [(), ((8, -0.5), (9, -1.5)), ()]


def test_a_row_may_draw_several_tokens() -> None:
    given = sampled([[5, 6, 7], [8, 9, 10]], [3, 1], [-1.0] * 2, [[-1]] * 2, [[0.0]] * 2)
    records = read(given, lane(0, sample=True), lane(1, sample=True))
    assert [(r.accepted, r.tokens) for r in records] == [(3, (5, 6, 7)), (1, (8,))]


def test_nothing_drawn_reads_nothing_drawn() -> None:
    given = {CompletionField.SLOT: [2]}  # a program that samples nothing reports nothing more
    (record,) = read(given, lane(2, sample=False))
    assert (record.accepted, record.tokens, record.logprob, record.top) == (0, (), None, ())
