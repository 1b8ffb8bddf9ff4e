"""The simulated device: its rules, its clock, its misfortunes, and that equal seeds repeat."""

import pytest
from msgspec.structs import replace

from helios.contract.operation import Operation
from helios.contract.submission import (
    Completion,
    Geometry,
    Lane,
    LaneAdmission,
    Sampling,
    Submission,
    Variant,
)
from helios.errors import DeviceError
from helios.runtime.simulated import Costs, Faults, SimulatedDevice
from helios.runtime.simulated_numbers import choose

SHAPE = Geometry(
    context_tokens=64,
    page_tokens=4,
    pages=16,
    slots=3,
    snapshots=2,
    vocabulary=97,
    input_vocabulary=97,
    variants=tuple(
        Variant(operation.name.lower(), operation, 2, 8)
        for operation in Operation
        if operation not in (Operation.TUNING, Operation.SPECULATIVE)
    ),
)
ADMISSION = LaneAdmission(Sampling(temperature=0), (1, 2, 3, 4, 5, 6))


def step(sequence: int, operation: Operation, *lanes: Lane) -> Submission:
    return Submission(sequence, sequence % 2, operation, operation.name.lower(), lanes)


def initialize(slot: int = 0, generation: int = 1, endpoint: int = 0) -> Lane:
    return Lane(slot, generation, endpoint, admission=ADMISSION)


def prefill(slot: int = 0, pages: tuple[int, ...] = (0, 1), **options: object) -> Lane:
    lane = Lane(
        slot,
        1,
        0,
        query_length=6,
        tokens=(1, 2, 3, 4, 5, 6),
        sample=True,
        new_pages=tuple(enumerate(pages)),
    )
    return replace(lane, **options)  # type: ignore[arg-type]


def run(device: SimulatedDevice, submission: Submission) -> Completion:
    device.submit(submission)
    completion = device.wait()
    assert completion is not None
    return completion


def started(**options: object) -> SimulatedDevice:
    device = SimulatedDevice(SHAPE, **options)  # type: ignore[arg-type]
    run(device, step(0, Operation.INITIALIZE, initialize()))
    return device


def test_equal_seeds_give_equal_runs() -> None:
    def play(seed: int) -> list[Completion]:
        device = SimulatedDevice(SHAPE, seed=seed, faults=Faults(lies=0.5))
        return [
            run(device, step(i, Operation.INITIALIZE, initialize(generation=i))) for i in range(40)
        ]

    assert play(1) == play(1)
    assert play(1) != play(2)


def test_chunks_and_pages_do_not_change_a_token() -> None:
    whole = run(started(), step(1, Operation.PREFILL, prefill()))
    device = started()
    first = prefill(pages=(7,), query_length=4, tokens=(1, 2, 3, 4), sample=False)
    run(device, step(1, Operation.PREFILL, first))
    rest = prefill(endpoint=4, query_length=2, tokens=(5, 6), new_pages=((1, 3),))
    assert run(device, step(2, Operation.PREFILL, rest)).lanes[0] == whole.lanes[0]


def test_another_history_gives_another_token() -> None:
    tokens = {
        run(started(), step(1, Operation.PREFILL, prefill(tokens=(1, 2, last, 4, 5, 6))))
        .lanes[0]
        .tokens
        for last in range(20)
    }
    assert len(tokens) > 10


def test_a_snapshot_restores_a_partial_page() -> None:
    device = started()
    whole = run(device, step(1, Operation.PREFILL, prefill(snapshot_destination=1)))
    run(device, step(2, Operation.INITIALIZE, initialize(1, 1, 5)))
    run(
        device,
        step(3, Operation.RESTORE, Lane(1, 1, 5, new_pages=((0, 0), (1, 9)), restore_source=1)),
    )
    last = Lane(1, 1, 5, query_length=1, tokens=(6,), sample=True)
    again = run(device, step(4, Operation.PREFILL, last))
    assert again.lanes[0].tokens == whole.lanes[0].tokens


def test_an_overwritten_history_is_noticed_in_an_audit() -> None:
    device = started(audit=True)
    run(device, step(1, Operation.PREFILL, prefill()))
    device._pages[0][1] += 1
    with pytest.raises(DeviceError, match="history was overwritten"):
        device.submit(step(2, Operation.DECODE, Lane(0, 1, 6, query_length=1, sample=True)))


def test_time_is_what_the_steps_cost() -> None:
    costs = Costs(step=1.0, prefill_token=0.5, decode_row=0.25, context_token=0.125)
    device = started(costs=costs)
    assert device.now == 1.0
    device.submit(step(1, Operation.PREFILL, prefill()))
    device.submit(step(2, Operation.DECODE, Lane(0, 1, 6, query_length=1, sample=True)))
    assert device.wait(timeout=3.0) is None
    assert device.now == 4.0
    assert device.wait() is not None
    assert device.now == 5.0, "one second and six tokens"
    assert device.wait() is not None
    assert device.now == 5.0 + 1.0 + 0.25 + 6 * 0.125
    assert device.wait() is None


def test_delays_are_injected() -> None:
    device = started(costs=Costs(1.0, 0, 0, 0), faults=Faults(delays=1.0, delay=9.0))
    assert device.now == 10.0


def test_a_fault_is_reported_and_poisons_only_its_slots() -> None:
    device = SimulatedDevice(SHAPE, faults=Faults(errors=1.0))
    completion = run(device, step(0, Operation.INITIALIZE, initialize()))
    assert isinstance(completion.error, DeviceError)
    assert completion.lanes == ()


@pytest.mark.parametrize(
    ("submission", "message"),
    [
        (step(2, Operation.PREFILL, prefill()), "out of sequence"),
        (Submission(1, 1, Operation.PREFILL, "nothing", (prefill(),)), "no such program"),
        (Submission(1, 1, Operation.DECODE, "prefill", (prefill(),)), "not its operation"),
        (step(1, Operation.PREFILL), "rows past capacity"),
        (step(1, Operation.PREFILL, *(prefill(i) for i in range(3))), "rows past capacity"),
        (step(1, Operation.PREFILL, prefill(query_length=9)), "tokens past capacity"),
        (step(1, Operation.PREFILL, prefill(query_length=2), prefill(query_length=2)), "twice"),
        (step(1, Operation.PREFILL, prefill(1)), "never initialized"),
        (step(1, Operation.PREFILL, prefill(generation=2)), "never initialized"),
        (step(1, Operation.PREFILL, prefill(query_length=5)), "tokens do not match"),
        (step(1, Operation.PREFILL, prefill(new_pages=((0, 0),))), "without a page"),
        (step(1, Operation.PREFILL, prefill(endpoint=1)), "the endpoint is 0"),
        (step(1, Operation.PREFILL, prefill(targets=(1,))), "targets do not match"),
        (step(1, Operation.SCORED_PREFILL, prefill()), "targets do not match"),
        (
            step(1, Operation.DECODE, Lane(0, 1, 0, query_length=1, sample=True)),
            "no token is pending",
        ),
        (step(1, Operation.DECODE, Lane(0, 1, 0, query_length=1)), "its own token"),
        (step(1, Operation.RESTORE, Lane(0, 1, 0)), "nothing to restore"),
        (step(1, Operation.INITIALIZE, Lane(1, 1, 0)), "no admission"),
        (
            step(1, Operation.INITIALIZE, replace(initialize(1), new_pages=((0, 0),))),
            "nothing to consume",
        ),
    ],
)
def test_broken_rules_are_refused(submission: Submission, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        started().submit(submission)


def test_frames_are_bounded_and_slots_wait_for_their_fence() -> None:
    device = started()
    device.submit(step(1, Operation.PREFILL, prefill()))
    with pytest.raises(DeviceError, match="reused before its fence"):
        device.submit(step(2, Operation.INITIALIZE, initialize(0, 2)))
    device.submit(step(2, Operation.INITIALIZE, initialize(1, 1)))
    with pytest.raises(DeviceError, match="every frame is in flight"):
        device.submit(step(3, Operation.INITIALIZE, initialize(2, 1)))


def test_masks_choose_the_next_allowed_token() -> None:
    assert choose(5, 97, bytes([0b0100_0000] + [0] * 12), ()) == 6
    assert choose(9, 97, bytes([0b0000_0010] + [0] * 12), ()) == 1
    with pytest.raises(DeviceError, match="no token"):
        choose(5, 97, bytes(13), ())


def test_a_masked_step_waits_for_its_masks_and_those_after_it_for_their_turn() -> None:
    device = started()
    device.submit(step(1, Operation.PREFILL, prefill(masked=True)))
    device.submit(step(2, Operation.INITIALIZE, initialize(slot=1)))
    with pytest.raises(DeviceError, match="masks do not match"):
        device.supply(1, [()])
    with pytest.raises(DeviceError, match="no step waits"):
        device.supply(2, [()])
    device.supply(1, [(b"\x00\x08",)])
    with pytest.raises(DeviceError, match="no step waits"):
        device.supply(1, [(None,)])
    first, second = device.wait(), device.wait()
    assert first is not None
    assert second is not None
    assert first.lanes[0].tokens == (11,)
    assert (first.sequence, second.sequence) == (1, 2)


def test_a_step_that_is_waited_for_instead_of_supplied_fails() -> None:
    device = started()
    device.submit(step(1, Operation.PREFILL, prefill(masked=True)))
    lost = device.wait()
    assert lost is not None
    assert "no masks were supplied" in str(lost.error)
    run(device, step(2, Operation.INITIALIZE, initialize(generation=2)))
