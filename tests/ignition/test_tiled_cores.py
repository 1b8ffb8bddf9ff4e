"""A core whose matrices lie as the kernels read them computes what any other core computes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_storages import OPTIONS, Q, greedy, write

from helios.cli.plan import read_subject
from helios.compile.plan import Limits
from helios.contract.kinds import SOURCE_STORAGES, WeightStorage
from helios.contract.prepare import prepare_contract
from helios.core.reader import Core, authenticate, authorize
from helios.core.trust import TrustStore, local_publisher
from helios.errors import ContractError, CoreError, SourceError, UnsupportedLayoutError
from helios.ignition.export import prepare
from helios.ignition.options import PrepareOptions, WeightLayout
from helios.runtime.cpu.device import CpuRuntime
from helios.runtime.loader import LoadOptions, load_model
from helios.runtime.reference.device import ReferenceRuntime
from helios.schema import manifest_pb2


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def made(source: Path, path: Path, home: Path, layout: WeightLayout) -> Path:
    namespace, key = local_publisher(home)
    prepare(source, path, replace(OPTIONS, layout=layout), key=key, namespace=namespace)
    return path


@contextmanager
def opened(path: Path, home: Path) -> Iterator[Core]:
    found = authenticate(path, TrustStore(home))
    with authorize(found, found.namespace) as core:
        yield core


@pytest.mark.parametrize("storage", SOURCE_STORAGES, ids=lambda s: s.name)
def test_tiles_give_the_bits_that_repacking_gives(
    storage: WeightStorage, home: Path, tmp_path: Path
) -> None:
    source = write(tmp_path / "tiny.gguf", Q[storage.name])
    numbers, plans = [], []
    for layout in ("source", "cpu"):
        with opened(made(source, tmp_path / f"{layout}.core", home, layout), home) as core:
            numbers.append([greedy(core, CpuRuntime(2, n)) for n in ("a8", "mixed", "a16", "f32")])
            plans.append(load_model(core, CpuRuntime(2), LoadOptions(memory=1 << 26)))
    for (tokens, logits), (others, other_logits) in zip(*numbers, strict=True):
        assert tokens == others
        np.testing.assert_array_equal(logits, other_logits)
    repacked, mapped = (loaded.plan for loaded in plans)
    assert mapped.programs == repacked.programs
    assert mapped.limits == repacked.limits
    assert mapped.total_nbytes <= repacked.total_nbytes
    assert {w.name: w.layout for w in mapped.weights} == {
        w.name: w.layout for w in repacked.weights
    }
    assert all(w.mapped and w.exact for w in mapped.weights)
    matrices = [w for w in mapped.weights if w.layout != "flat"]
    assert matrices
    assert all(w.materializer == f"cpu.map-{w.layout}" for w in matrices)
    for loaded in plans:
        loaded.model.close()


def test_mapped_tiles_take_no_memory_of_their_own(home: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "tiny.gguf", Q.Q4_1)
    with opened(made(source, tmp_path / "tiny.core", home, "cpu"), home) as core:
        loaded = load_model(core, CpuRuntime(1), LoadOptions(memory=1 << 26))
        with loaded.model:
            assert loaded.runner.allocated_nbytes == 0
            mapped = sum(w.nbytes for w in loaded.plan.weights)
            assert loaded.report.committed_nbytes == loaded.storage.allocated_nbytes
            assert loaded.plan.total_nbytes == loaded.storage.allocated_nbytes + mapped


def test_two_preparations_give_equal_bytes(home: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "tiny.gguf", Q.Q6_K)
    first, second = (made(source, tmp_path / f"{n}.core", home, "cpu") for n in (1, 2))
    assert first.read_bytes() == second.read_bytes()


def test_a_flipped_bit_in_a_tile_stops_loading(home: Path, tmp_path: Path) -> None:
    path = made(write(tmp_path / "tiny.gguf", Q.Q8_0), tmp_path / "tiny.core", home, "cpu")
    data = bytearray(path.read_bytes())
    data[-70_000] ^= 4
    path.write_bytes(data)
    with opened(path, home) as core, pytest.raises(CoreError, match="SHA-256"):
        load_model(core, CpuRuntime(1), LoadOptions(memory=1 << 26))


def test_a_device_without_tiles_refuses_them(home: Path, tmp_path: Path) -> None:
    path = made(write(tmp_path / "tiny.gguf", Q.Q4_0), tmp_path / "tiny.core", home, "cpu")
    with opened(path, home) as core, pytest.raises(UnsupportedLayoutError) as caught:
        load_model(core, ReferenceRuntime(), LoadOptions(memory=1 << 26))
    assert caught.value.value == "tile16_w4g32"
    assert "--layout source" in caught.value.remedy


def test_an_unknown_layout_and_a_wrong_size_are_refused(home: Path, tmp_path: Path) -> None:
    path = made(write(tmp_path / "tiny.gguf", Q.Q4_0), tmp_path / "tiny.core", home, "cpu")
    with opened(path, home) as core:
        contract, manifest = core.contract, core.manifest
    tiles = [
        w
        for w in manifest.weights
        if w.storage == manifest_pb2.WEIGHT_STORAGE_TILE16_W4G32 and w.shape[0] % 16
    ]
    assert tiles, "the vocabulary should not fill its last tile"
    padded = tiles[0].nbytes
    tiles[0].nbytes = padded // -(-tiles[0].shape[0] // 16) // 16 * tiles[0].shape[0]
    with pytest.raises(ContractError, match=f"takes {padded} bytes"):
        prepare_contract(contract, manifest)
    tiles[0].nbytes, tiles[0].storage = padded, 99
    with pytest.raises(ContractError, match="unknown WeightStorage"):
        prepare_contract(contract, manifest)


def test_numbers_that_are_not_finite_are_refused_before_they_are_repacked(
    home: Path, tmp_path: Path
) -> None:
    source = write(tmp_path / "tiny.gguf", Q.Q4_0)
    data = bytearray(source.read_bytes())
    data[-18:-16] = b"\x00\x7e"
    source.write_bytes(data)
    with pytest.raises(SourceError, match="not finite"):
        made(source, tmp_path / "tiny.core", home, "cpu")


def test_a_source_is_planned_as_it_is_served(home: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "tiny.gguf", Q.Q4_1)
    namespace, key = local_publisher(home)
    path = tmp_path / "tiny.core"
    prepare(source, path, PrepareOptions(layout="cpu"), key=key, namespace=namespace)
    composition = CpuRuntime(1).composition()
    limits = Limits(64, 1, 32, 2, 0)
    described = read_subject(str(source), "cpu")
    planned = composition.compile(described.contract, described.programs, limits)
    with opened(path, home) as core:
        contract = prepare_contract(core.contract, core.manifest)
        served = composition.compile(contract, tuple(core.programs()), limits)
    assert planned.plan.id == served.plan.id
