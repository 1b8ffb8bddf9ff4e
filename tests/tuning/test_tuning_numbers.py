"""Choices never change a number, and measuring them is bounded work."""

from typing import Any

import numpy as np
import pytest
from native_tools import ISAS, Packed, address, executor, linear_steps, run, stored
from numpy.typing import NDArray
from toy_models import Shape, ToyModel

from helios import _native
from helios.contract.kinds import WeightStorage
from helios.errors import DeviceError
from helios.runtime.cpu.device import CpuRuntime
from helios.runtime.loader import LoadOptions, load_model
from helios.runtime.single import SingleRequest

Floats = NDArray[np.float32]
PLACES = 5
MOST_ROUNDS = 8


def products(
    runner: _native.Executor,
    x: Floats,
    weights: list[Packed],
    planes: int,
    choice: int,
    **more: Any,
) -> list[Floats]:
    outs = [np.full((len(x), w.rows), np.nan, dtype=np.float32) for w in weights]
    choices = np.full(PLACES, choice, dtype=np.int32)
    run(
        runner,
        linear_steps(x, weights, outs, planes, choices=address(choices), places=PLACES, **more),
        (0, len(x), 0),
    )
    return outs


def every_choice() -> list[int]:
    """All that a product accepts; the first that it refuses ends the list."""
    runner = executor(ISAS[0])
    rng = np.random.default_rng(0)
    weight = Packed(runner, "Q4_1", stored("Q4_1", 16, 32, rng), 32)
    x = rng.standard_normal((2, 32), dtype=np.float32)
    for choice in range(64):
        try:
            products(runner, x, [weight], 1, choice)
        except DeviceError:
            return list(range(choice))
    raise AssertionError("choices are not checked")


CHOICES = every_choice()


def test_there_is_something_to_choose_from() -> None:
    assert len(CHOICES) > 3


@pytest.mark.parametrize("choice", [-1, len(CHOICES), 1 << 30])
def test_an_unknown_choice_is_refused(choice: int) -> None:
    runner = executor(ISAS[0])
    rng = np.random.default_rng(0)
    weight = Packed(runner, "Q8_0", stored("Q8_0", 16, 32, rng), 32)
    with pytest.raises(DeviceError, match="must lie between"):
        products(runner, np.ones((1, 32), dtype=np.float32), [weight], 1, choice)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    ("storage", "planes"), [("Q4_1", 1), ("Q4_1", 2), ("Q4_K", 2), ("Q8_0", 2), ("F16", 0)]
)
def test_no_choice_changes_a_bit(isa: str, storage: str, planes: int) -> None:
    rng = np.random.default_rng(5)
    raw = stored(storage, 150, 512, rng)
    x = rng.standard_normal((300, 512), dtype=np.float32)
    one = executor(isa, 1)
    weight = Packed(one, storage, raw, 512)
    (neutral,) = products(one, x, [weight], planes, 0)
    for threads in (1, 3):
        runner = executor(isa, threads)
        for choice in CHOICES:
            for tokens in (1, 3, 9, 16, 33, 130, 300):
                (got,) = products(runner, x[:tokens], [weight], planes, choice)
                np.testing.assert_array_equal(got, neutral[:tokens])


@pytest.mark.parametrize("isa", ISAS)
def test_no_choice_changes_a_gate(isa: str) -> None:
    rng = np.random.default_rng(6)
    x = rng.standard_normal((140, 256), dtype=np.float32)
    runner = executor(isa, 3)
    weights = [Packed(runner, "Q4_0", stored("Q4_0", 96, 256, rng), 256) for _ in range(2)]
    neutral = products(runner, x, weights, 2, 0, gate=0)[0]
    for choice in CHOICES:
        np.testing.assert_array_equal(products(runner, x, weights, 2, choice, gate=0)[0], neutral)


@pytest.mark.parametrize("storage", [WeightStorage.Q4_1, WeightStorage.Q8_0, WeightStorage.F32])
def test_a_model_keeps_its_bits_under_every_choice(storage: WeightStorage) -> None:
    """Tokens sampled, and every byte of history that a prompt and some decoding leave behind."""
    model = ToyModel(Shape(storage=storage, context=512), concurrency=2)
    prompt = [(7 * n + 3) % 100 for n in range(180)]
    options = LoadOptions(memory=1 << 28, tuning_seconds=0)
    seen = []
    for choice in CHOICES:
        loaded = load_model(model, CpuRuntime(3, "a16"), options)
        with loaded.model:
            for name in loaded.report.tuning.choices:
                loaded.storage.persistent[name].fill(choice)
            tokens = [s.token for s in SingleRequest(loaded.model).generate(prompt, 6)]
            history = b"".join(
                loaded.storage.persistent[plane.buffer].tobytes()
                for region in loaded.contract.cache.histories
                for plane in region.planes
            )
            seen.append((tokens, history))
    assert any(seen[0][1])
    assert all(other == seen[0] for other in seen[1:])


def tune(
    isa: str, storage: str, rows: int, columns: int, planes: int, budget: int, threads: int = 2
) -> tuple[list[int], int]:
    """The choices and the number of trials of one shape."""
    runner = executor(isa, threads)
    raw = stored(storage, rows, columns, np.random.default_rng(7))
    weight = Packed(runner, storage, raw, columns)
    choices, trials = np.full(PLACES, -1, dtype=np.int32), np.zeros(1, dtype=np.int64)
    step = {
        "weights": [address(weight.data)],
        "layout": weight.number,
        "rows": rows,
        "columns": columns,
        "planes": planes,
        "choices": address(choices),
        "places": PLACES,
        "budget": budget,
        "trials": address(trials),
    }
    run(runner, [("tune_linear", step)])
    return [int(c) for c in choices], int(trials[0])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("storage", "planes"), [("Q4_1", 1), ("Q8_0", 2), ("F32", 0), ("Q4_K", 0)])
def test_trials_are_bounded_however_much_time_there_is(isa: str, storage: str, planes: int) -> None:
    choices, trials = tune(isa, storage, 96, 256, planes, budget=10**12)
    assert set(choices) <= set(CHOICES)
    assert 0 < trials <= PLACES * len(CHOICES) * MOST_ROUNDS


@pytest.mark.parametrize("budget", [0, 1])
def test_without_time_nothing_is_tried_or_chosen(budget: int) -> None:
    choices, trials = tune(ISAS[0], "Q4_1", 96, 256, 2, budget)
    assert choices == [0] * PLACES
    assert trials <= 1


def test_a_product_too_large_to_try_is_left_neutral() -> None:
    """Its result alone would fill more than the memory that tuning takes."""
    choices, trials = tune(ISAS[0], "Q4_0", (1 << 18) + 16, 32, 1, budget=10**12)
    assert (choices, trials) == ([0] * PLACES, 0)


def test_a_tuning_program_that_runs_again_starts_over() -> None:
    runner = executor(ISAS[0], 2)
    raw = stored("Q4_1", 64, 64, np.random.default_rng(1))
    weight = Packed(runner, "Q4_1", raw, 64)
    choices, trials = np.zeros(PLACES, dtype=np.int32), np.zeros(1, dtype=np.int64)
    step = {
        "weights": [address(weight.data)],
        "layout": weight.number,
        "rows": 64,
        "columns": 64,
        "planes": 1,
        "choices": address(choices),
        "places": PLACES,
        "budget": 10**12,
        "trials": address(trials),
    }
    nothing = np.zeros((0, 3), dtype=np.int64)
    program = runner.load([("tune_linear", step), ("tune_linear", step)], (0, 0, 0))
    for _ in range(2):
        choices.fill(-1)
        runner.run(program, (0, 0, 0), nothing, nothing)
        assert set(choices.tolist()) <= set(CHOICES)
        assert trials[0] > 0
