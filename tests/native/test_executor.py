"""The executor: threads, limits, forks, and refusals that name what is wrong."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native_tools import (
    ISAS,
    NO_TRANSFERS,
    Packed,
    address,
    executor,
    forced_isa,
    linear_steps,
    run,
    stored,
)

from helios import _native
from helios.errors import ConfigurationError, DeviceError


def work(runner: _native.Executor, tokens: int = 40) -> Any:
    rng = np.random.default_rng(0)
    packed = Packed(runner, "Q4_1", stored("Q4_1", 320, 64, rng), 64)
    x = rng.standard_normal((tokens, 64), dtype=np.float32)
    y = np.zeros((tokens, 320), dtype=np.float32)
    return x, y, packed


def test_many_runs_on_more_threads_than_processors() -> None:
    single, crowded = executor(ISAS[0], 1), executor(ISAS[0], 9)
    x, y, packed = work(single)
    run(single, linear_steps(x, [packed], [y]), (0, 40, 0))
    want = y.copy()
    program = crowded.load(linear_steps(x, [packed], [y]) * 20, (0, 40, 0))
    for _ in range(200):
        y[:] = 0
        crowded.run(program, (0, 40, 0), NO_TRANSFERS, NO_TRANSFERS)
        np.testing.assert_array_equal(y, want)


def test_threads_are_named_and_end_with_the_executor() -> None:
    def names() -> list[str]:
        tasks = Path("/proc/self/task").iterdir()
        return [(task / "comm").read_text().strip() for task in tasks]

    before = sum(n.startswith("helios-") for n in names())
    runner = executor(ISAS[0], 4)
    assert sum(n.startswith("helios-") for n in names()) == before + 3
    del runner
    assert sum(n.startswith("helios-") for n in names()) == before


@pytest.mark.parametrize("threads", [0, -1, 1025])
def test_absurd_thread_counts_are_refused(threads: int) -> None:
    with pytest.raises(ConfigurationError, match="between 1 and 1024") as caught:
        _native.Executor(threads)
    assert caught.value.field == "threads"


def test_an_unsupported_instruction_set_is_refused() -> None:
    with forced_isa("altivec"), pytest.raises(ConfigurationError, match="altivec") as caught:
        _native.Executor(1)
    assert caught.value.field == "HELIOS_ISA"
    assert _native.isa() == ISAS[0]


def test_processors_respect_the_affinity_mask() -> None:
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    code += "from helios import _native; print(_native.usable_processors())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "1"
    assert 1 <= _native.usable_processors() <= (os.cpu_count() or 1)


def test_a_forked_child_is_told_to_make_its_own() -> None:
    code = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import numpy as np
from native_tools import executor, NO_TRANSFERS, ISAS
from helios.errors import DeviceError
runner = executor(ISAS[0], 3)
one = np.zeros(1, np.int32)
program = runner.load([("ones", {{"count": 1, "out": one.ctypes.data}})], (0, 0, 0))
child = os.fork()
if child == 0:
    try:
        runner.run(program, (0, 0, 0), NO_TRANSFERS, NO_TRANSFERS)
    except DeviceError as error:
        ok = "fork" in str(error)
    own = executor(ISAS[0], 3)
    del runner
    os._exit(0 if ok else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_extents_beyond_the_capacity_are_refused() -> None:
    runner = executor(ISAS[0])
    x, y, packed = work(runner)
    program = runner.load(linear_steps(x, [packed], [y]), (1, 40, 1))
    for extents, name in [((2, 1, 1), "B"), ((1, 41, 1), "T"), ((1, 1, 2), "S"), ((1, -1, 1), "T")]:
        with pytest.raises(DeviceError, match="the program holds") as caught:
            runner.run(program, extents, NO_TRANSFERS, NO_TRANSFERS)
        assert caught.value.field == name
    with pytest.raises(DeviceError, match="no program"):
        runner.run(program + 1, (0, 0, 0), NO_TRANSFERS, NO_TRANSFERS)
    runner.unload(program)
    with pytest.raises(DeviceError, match="no program"):
        runner.run(program, (0, 0, 0), NO_TRANSFERS, NO_TRANSFERS)


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("levitate", {}, "unknown step"),
        ("linear", {"columns": 33}, "multiple of 32"),
        ("linear", {"rows": [0]}, "positive"),
        ("linear", {"rows": [1, 2]}, "differ in length"),
        ("linear", {"weights": [0]}, "address"),
        ("linear", {"layouts": [99]}, "must lie between"),
        ("linear", {"count": "Q"}, "unknown extent"),
        ("linear", {"columns": "many"}, "integer"),
        ("linear", {"outs": 3}, "list"),
        ("linear", {"gate": 0}, "two outputs"),
    ],
)
def test_malformed_steps_are_refused(kind: str, change: dict[str, Any], words: str) -> None:
    runner = executor(ISAS[0])
    x, y, packed = work(runner)
    params = linear_steps(x, [packed], [y], planes=1)[1][1] | change
    with pytest.raises(DeviceError, match=words):
        runner.load([(kind, params)], (1, 40, 1))


def test_a_step_without_a_parameter_names_it() -> None:
    with pytest.raises(DeviceError, match="steps") as caught:
        executor(ISAS[0]).load([("ones", {"count": "B"})], (1, 1, 1))
    assert "out" in str(caught.value)


def test_transfers_before_and_after() -> None:
    runner = executor(ISAS[0])
    staged, left, out, answer = (np.zeros(4, dtype=np.int32) for _ in range(4))
    staged[:] = [1, 2, 3, 4]
    params = {"count": 4, "left": left.ctypes.data, "right": left.ctypes.data}
    program = runner.load([("add_integers", params | {"out": out.ctypes.data})], (0, 0, 0))
    before = np.array([[left.ctypes.data, staged.ctypes.data, 12]], dtype=np.int64)
    after = np.array([[answer.ctypes.data, out.ctypes.data, 16]], dtype=np.int64)
    runner.run(program, (0, 0, 0), before, after)
    np.testing.assert_array_equal(answer, [2, 4, 6, 0])


def test_a_second_run_at_the_same_time_is_refused() -> None:
    runner = executor(ISAS[0])
    latch, begun = _native.Latch(), np.zeros(1, dtype=np.int32)
    steps: Any = [
        ("ones", {"count": 1, "out": address(begun)}),
        ("await_input", {"latch": latch.address, "seconds": 60.0}),
    ]
    program = runner.load(steps, (0, 0, 0))
    latch.hold()
    thread = threading.Thread(
        target=runner.run, args=(program, (0, 0, 0), NO_TRANSFERS, NO_TRANSFERS)
    )
    thread.start()
    while not begun[0] and thread.is_alive():
        time.sleep(0)
    with pytest.raises(DeviceError, match="in progress"):
        runner.run(program, (0, 0, 0), NO_TRANSFERS, NO_TRANSFERS)
    latch.release()
    thread.join()
    runner.run(program, (0, 0, 0), NO_TRANSFERS, NO_TRANSFERS)


def test_workspace_may_be_the_hosts() -> None:
    runner = executor(ISAS[0])
    x, y, packed = work(runner)
    space = _native.Memory(1 << 20)
    program = runner.load(linear_steps(x, [packed], [y]), (0, 40, 0), space.address, space.nbytes)
    assert runner.allocated_bytes == 0
    runner.run(program, (0, 40, 0), NO_TRANSFERS, NO_TRANSFERS)
    assert space.view().any()
    runner.load(linear_steps(x, [packed], [y]), (0, 40, 0), space.address, 64)
    assert runner.allocated_bytes > 0
