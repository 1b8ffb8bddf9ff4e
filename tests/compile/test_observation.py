import pytest
from toy_models import Shape, ToyModel

from helios.contract.kinds import WeightStorage
from helios.errors import ConfigurationError
from helios.runtime.cpu.device import CpuRuntime
from helios.runtime.device import DeviceRuntime
from helios.runtime.loader import LoadedModel, LoadOptions, load_model
from helios.runtime.observation import OBSERVED, Observation
from helios.runtime.reference.device import ReferenceRuntime

SHAPES = [
    Shape(),
    Shape(layers=1, width=96, heads=3, key_heads=1, inner=160, vocabulary=333, tied=False),
    Shape(layers=1, storage=WeightStorage.Q4_1, key_heads=4),
]


def load(model: ToyModel, runtime: DeviceRuntime) -> LoadedModel:
    return load_model(model, runtime, LoadOptions(memory=1 << 28, compile=OBSERVED))


@pytest.mark.parametrize("shape", SHAPES, ids=["tied", "odd", "4-bit"])
def test_every_native_operation_keeps_its_own_tolerance(shape: Shape) -> None:
    model = ToyModel(shape, concurrency=2)
    observation = Observation(
        load(model, CpuRuntime(threads=2, numerics="f32")), load(model, ReferenceRuntime())
    )
    prompt = [(7 * n + 3) % shape.vocabulary for n in range(45)]
    list(observation.run(prompt, 5, chunk=17))
    observation.close()
    assert [e for e in observation.errors if not e.holds] == []
    kinds = {e.kind for e in observation.errors}
    assert {"linear", "paged_attention", "rope", "sample", "gated_activation"} <= kinds
    programs = {e.program for e in observation.errors}
    assert {"prefill", "decode"} <= programs


def test_the_reference_observes_itself_without_error() -> None:
    model = ToyModel(concurrency=2)
    observation = Observation(load(model, ReferenceRuntime()), load(model, ReferenceRuntime()))
    list(observation.run(range(2, 40), 3))
    observation.close()
    assert max(e.error for e in observation.errors) == 0.0
    assert len(observation.errors) > 100


def test_a_wrong_operation_is_found_and_nothing_after_it_is_blamed() -> None:
    model = ToyModel(concurrency=2)
    wrong, right = load(model, ReferenceRuntime()), load(model, ReferenceRuntime())

    def spoil(_program: str, _index: int, value: str, made: object) -> None:
        if value == "layers.1.attention":
            made[...] += 0.5  # type: ignore[index]

    observation = Observation(wrong, right)
    wrong.runner.observer = spoil  # type: ignore[attr-defined]
    list(observation.run(range(2, 20), 1))
    observation.close()
    assert {e.value for e in observation.errors if not e.holds} == {"layers.1.attention"}


def test_models_that_retain_nothing_are_not_observed() -> None:
    model = ToyModel(concurrency=1)
    plain = load_model(model, ReferenceRuntime(), LoadOptions(memory=1 << 28))
    seen = load(model, ReferenceRuntime())
    with plain.model, seen.model, pytest.raises(ConfigurationError, match="for observation"):
        Observation(plain, seen)
