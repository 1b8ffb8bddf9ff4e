"""Grammar masks on real devices: supplied while the step runs, and worth the same bits."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from helios.contract.operation import Operation
from helios.contract.submission import Completion, Lane, LaneMasks, Submission
from helios.core.reader import Core
from helios.errors import DeviceError
from helios.runtime import late
from helios.runtime.cpu.device import CpuRuntime
from helios.runtime.device import DeviceRuntime
from helios.runtime.loader import LoadOptions, load_model
from helios.runtime.reference.device import ReferenceRuntime
from tests.spine.driver import GREEDY, Driver, Row

RUNTIMES: dict[str, Callable[[], DeviceRuntime]] = {
    "reference": ReferenceRuntime,
    "cpu": lambda: CpuRuntime(2),
}
PROMPT = list(range(1000, 1012))


class MaskedDriver(Driver):
    """The spine's driver on any runtime, which supplies masks when it is told to."""

    def __init__(self, core: Core, runtime: DeviceRuntime) -> None:
        options = LoadOptions(context=128, concurrency=4, pages=32, snapshots=2)
        loaded = load_model(core, runtime, options)
        self.model = loaded.model
        self.plan = loaded.plan
        self.contract = loaded.contract
        self._sequence = 0
        self._generation = 0
        self._free_pages = list(range(self.plan.limits.pages))

    def submit(self, operation: Operation, lanes: Sequence[Lane]) -> int:
        sequence, self._sequence = self._sequence, self._sequence + 1
        program = self.contract.graphs_of(operation)[0].program
        self.model.submit(Submission(sequence, sequence % 2, operation, program, tuple(lanes)))
        return sequence

    def finish(self, sequence: int, masks: Sequence[LaneMasks]) -> Completion:
        self.model.supply(sequence, masks)
        completion = self.model.wait(timeout=600)
        assert completion is not None
        assert completion.error is None
        return completion

    def prompted(self, slot: int, *, masked: bool) -> tuple[Row, Lane]:
        """A request and the step that consumes its whole prompt."""
        row = self.admit(slot, PROMPT, GREEDY)
        tokens = tuple(PROMPT)
        pages = tuple((i, self._free_pages.pop()) for i in range(-(-len(tokens) // self.page)))
        lane = Lane(slot, row.generation, 0, len(tokens), tokens, True, pages, masked=masked)
        row.consumed, row.pages = len(tokens), len(pages)
        return row, lane

    @property
    def page(self) -> int:
        return self.contract.cache.page_tokens

    def only(self, *tokens: int) -> bytes:
        """The mask that allows these tokens."""
        bits = np.zeros(-(-self.contract.vocabulary // 32) * 32, dtype=np.uint8)
        bits[list(tokens)] = 1
        return np.packbits(bits, bitorder="little").tobytes()


@pytest.fixture(scope="module", params=sorted(RUNTIMES))
def driver(request: pytest.FixtureRequest, smollm2_core: Core) -> Iterator[MaskedDriver]:
    made = MaskedDriver(smollm2_core, RUNTIMES[request.param]())
    with made.model:
        yield made


def test_a_step_waits_for_its_masks_and_obeys_them(driver: MaskedDriver) -> None:
    row, lane = driver.prompted(0, masked=True)
    sequence = driver.submit(Operation.PREFILL, [lane])
    assert driver.model.wait(timeout=0.2) is None, "it drew without a mask"
    done = driver.finish(sequence, [(driver.only(77, 4321),)])
    assert done.lanes[0].tokens[0] in (77, 4321)
    for allowed in (5, 1234):
        lane = Lane(0, row.generation, row.consumed, 1, (), True, masked=True)
        row.consumed += 1
        done = driver.finish(driver.submit(Operation.DECODE, [lane]), [(driver.only(allowed),)])
        assert done.lanes[0].tokens == (allowed,)


def test_a_mask_that_allows_all_changes_no_bit_nor_does_one_of_a_neighbour(
    driver: MaskedDriver,
) -> None:
    _, plain = driver.prompted(0, masked=False)
    sequence = driver.submit(Operation.PREFILL, [plain])
    alone = driver.model.wait(timeout=600)
    assert alone is not None
    assert sequence == alone.sequence
    (_, free), (_, bound), (_, beside) = (
        driver.prompted(1, masked=True),
        driver.prompted(2, masked=True),
        driver.prompted(3, masked=False),
    )
    sequence = driver.submit(Operation.PREFILL, [free, bound, beside])
    done = driver.finish(sequence, [(None,), (driver.only(9),), ()])
    for record in (done.lanes[0], done.lanes[2]):
        assert record.tokens == alone.lanes[0].tokens
        assert record.logprob == alone.lanes[0].logprob
        assert record.top == alone.lanes[0].top
    assert done.lanes[1].tokens == (9,)


def test_a_short_mask_forbids_the_tokens_beyond_it(driver: MaskedDriver) -> None:
    _, lane = driver.prompted(0, masked=True)
    done = driver.finish(driver.submit(Operation.PREFILL, [lane]), [(b"\x00\x10",)])
    assert done.lanes[0].tokens == (12,)


def test_closing_lets_a_waiting_step_go(smollm2_core: Core) -> None:
    driver = MaskedDriver(smollm2_core, CpuRuntime(2))
    _, lane = driver.prompted(0, masked=True)
    driver.submit(Operation.PREFILL, [lane])
    driver.model.close()
    done = driver.model.wait(timeout=0)
    assert done is not None
    assert done.error is None


def test_masks_for_no_step_are_refused(driver: MaskedDriver) -> None:
    _, lane = driver.prompted(0, masked=True)
    sequence = driver.submit(Operation.PREFILL, [lane])
    with pytest.raises(DeviceError, match="no step waits"):
        driver.model.supply(sequence + 1, [(None,)])
    driver.finish(sequence, [(None,)])
    with pytest.raises(DeviceError, match="no step waits"):
        driver.model.supply(sequence, [(None,)])


@pytest.mark.parametrize("name", sorted(RUNTIMES))
def test_a_step_that_is_never_supplied_fails_and_the_next_one_runs(
    name: str, smollm2_core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late, "LATE_SECONDS", 0.05)
    driver = MaskedDriver(smollm2_core, RUNTIMES[name]())
    with driver.model:
        _, lane = driver.prompted(0, masked=True)
        sequence = driver.submit(Operation.PREFILL, [lane])
        lost = driver.model.wait(timeout=600)
        assert lost is not None
        assert isinstance(lost.error, DeviceError)
        assert "did not supply" in str(lost.error)
        with pytest.raises(DeviceError, match="no step waits"):
            driver.model.supply(sequence, [(None,)])
        _, lane = driver.prompted(0, masked=True)
        sequence = driver.submit(Operation.PREFILL, [lane])
        assert driver.finish(sequence, [(driver.only(3),)]).lanes[0].tokens == (3,)
