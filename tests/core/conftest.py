from pathlib import Path

import pytest
from making_cores import NAMESPACE, Parts, take_apart, write_small

from helios.core.keys import SigningKey
from helios.core.trust import TrustStore


@pytest.fixture(scope="session")
def key() -> SigningKey:
    return SigningKey.generate()


@pytest.fixture
def trust(tmp_path: Path, key: SigningKey) -> TrustStore:
    store = TrustStore(tmp_path / "home")
    store.add(NAMESPACE, key.public)
    return store


@pytest.fixture
def core_path(tmp_path: Path, key: SigningKey) -> Path:
    """A good small core in a folder of its own."""
    folder = tmp_path / "cores"
    folder.mkdir(mode=0o755)
    write_small(folder / "small.core", key)
    return folder / "small.core"


@pytest.fixture
def parts(core_path: Path) -> Parts:
    return take_apart(core_path)
