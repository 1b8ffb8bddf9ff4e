"""One toy model and one reference runtime for all compile tests: neither is ever changed."""

import pytest
from toy_models import Shape, ToyModel

from helios.compile.composition import CompiledModel, RuntimeComposition
from helios.compile.plan import Limits
from helios.runtime.reference.device import ReferenceRuntime

LIMITS = Limits(context=256, sequences=4, batch_tokens=64, pages=12, snapshots=2)


@pytest.fixture(scope="session")
def toy() -> ToyModel:
    return ToyModel(Shape())


@pytest.fixture(scope="session")
def composition() -> RuntimeComposition:
    return ReferenceRuntime().composition()


@pytest.fixture(scope="session")
def compiled(toy: ToyModel, composition: RuntimeComposition) -> CompiledModel:
    return composition.compile(toy.prepared, toy.captured, LIMITS)
