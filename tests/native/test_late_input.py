"""The step at which a native program waits for what the host supplies while it runs."""

import threading

import numpy as np
import pytest
from native_tools import ISAS, NO_TRANSFERS, address, executor

from helios import _native
from helios.errors import DeviceError

EXTENTS = (0, 0, 0)


class Waiting:
    """A program that waits at a latch and then copies what the host has written."""

    def __init__(self, seconds: float, threads: int = 1) -> None:
        self.latch = _native.Latch()
        self.written = np.zeros(4, dtype=np.int64)
        self.read = np.zeros(4, dtype=np.int64)
        self._executor = executor(ISAS[0], threads)
        step = ("await_input", {"latch": self.latch.address, "seconds": seconds})
        self._program = self._executor.load([step], EXTENTS)
        self._copy = np.array([[address(self.read), address(self.written), 32]], dtype=np.int64)

    def run(self) -> None:
        self._executor.run(self._program, EXTENTS, NO_TRANSFERS, self._copy)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_step_waits_for_the_host_and_reads_what_it_wrote(threads: int) -> None:
    waiting = Waiting(60.0, threads)
    for round_number in range(1, 50):
        waiting.latch.hold()
        runner = threading.Thread(target=waiting.run)
        runner.start()
        waiting.written[:] = round_number
        assert runner.is_alive()
        waiting.latch.release()
        runner.join(60)
        assert not runner.is_alive()
        assert waiting.read.tolist() == [round_number] * 4


def test_a_latch_that_nobody_holds_is_passed() -> None:
    waiting = Waiting(0.0)
    waiting.run()
    waiting.latch.hold()
    waiting.latch.release()
    waiting.latch.release()
    waiting.run()


def test_a_host_that_never_supplies_fails_the_run_and_no_other() -> None:
    waiting = Waiting(0.01)
    waiting.latch.hold()
    with pytest.raises(DeviceError, match="did not supply"):
        waiting.run()
    waiting.latch.release()
    waiting.run()


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_absurd_patience_is_refused(seconds: float) -> None:
    with pytest.raises(DeviceError, match="seconds"):
        Waiting(seconds)
