"""The native executor finds room for all it needs in what was planned."""

import pytest
from toy_models import ToyModel, random_shape

from helios.core.reader import Core
from helios.runtime.cpu.device import CpuRuntime
from helios.runtime.loader import LoadedModel, LoadOptions, load_model

PROFILES = ("a8", "mixed", "a16", "f32")


def check(loaded: LoadedModel) -> None:
    with loaded.model:
        mapped = sum(weight.nbytes for weight in loaded.plan.weights if weight.mapped)
        assert loaded.report.committed_nbytes is not None
        allocated = loaded.report.committed_nbytes + mapped
        assert allocated <= loaded.plan.total_nbytes <= 1.02 * allocated


@pytest.mark.parametrize("seed", range(20))
def test_native_allocations_are_those_predicted(seed: int) -> None:
    """Never more than predicted, and at least 98% of it, for 20 random shapes."""
    toy = ToyModel(random_shape(seed), concurrency=1 + seed % 5)
    runtime = CpuRuntime(threads=1 + seed % 9, numerics=PROFILES[seed % 4])
    check(load_model(toy, runtime, LoadOptions(memory=1 << 28)))


@pytest.mark.parametrize(
    ("numerics", "threads", "context"),
    [("a8", 1, 512), ("mixed", 2, 2048), ("a16", 2, None), ("f32", 16, 8192)],
)
def test_native_allocations_of_smollm2_are_those_predicted(
    smollm2_core: Core, numerics: str, threads: int, context: int | None
) -> None:
    options = LoadOptions(memory=1 << 30, context=context)
    check(load_model(smollm2_core, CpuRuntime(threads, numerics), options))
