"""Every type of GGUF tensor is prepared, loaded and computed with; other types are refused."""

from pathlib import Path

import gguf
import numpy as np
import pytest
from plain_host import Lane, PlainHost
from tiny_gguf import METADATA, TOKENS, tensors, write_gguf

from helios.compile.options import CompileOptions
from helios.contract.kinds import SOURCE_STORAGES, WeightStorage
from helios.core.reader import Core, authenticate, authorize
from helios.core.trust import TrustStore, local_publisher
from helios.errors import SourceError
from helios.ignition.export import prepare
from helios.ignition.options import PrepareOptions, resolve_geometry
from helios.ignition.recipes.registry import recipe_for
from helios.ignition.sources.open import open_source
from helios.runtime.capture import Recorder, key_of
from helios.runtime.cpu.device import CpuRuntime
from helios.runtime.device import DeviceRuntime
from helios.runtime.loader import LoadOptions, load_model
from helios.runtime.reference.device import ReferenceRuntime
from helios.runtime.single import SingleRequest

Q = gguf.GGMLQuantizationType
WIDTH = INNER = 256  # one block of the largest types
SIZES = {
    "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": INNER,
}
OPTIONS = PrepareOptions(context=64, page_tokens=16, concurrency=1, cache_dtype="f32")
PROMPT = np.random.default_rng(5).integers(2, len(TOKENS), 21).tolist()
STEPS = 3
NAMES = [storage.name for storage in SOURCE_STORAGES]


def write(path: Path, kind: gguf.GGMLQuantizationType) -> Path:
    return write_gguf(path, {**METADATA, **SIZES}, tensors(WIDTH, INNER), storage=kind)


def expected_logits(path: Path, tokens: list[int]) -> np.ndarray:
    """Of the plain interpreter, over weights that the `gguf` package dequantises."""
    recipe = recipe_for(open_source(path))
    host = PlainHost(recipe, resolve_geometry(OPTIONS, recipe.facts), pages=4)
    host.run("initialize", [Lane(0, admission={"TEMPERATURE": 0.0})])
    rows = []
    step = host.run("prefill", [Lane(0, PROMPT, sample=True, pages=[0, 1, 2, 3])])
    for token in tokens:
        rows.append(step["logits"][0])
        step = host.run("prefill", [Lane(0, [token], sample=True, endpoint=len(PROMPT))])
    return np.stack(rows)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def greedy(core: Core, runtime: DeviceRuntime) -> tuple[list[int], np.ndarray]:
    """Greedy tokens and their logits."""
    options = LoadOptions(concurrency=1, compile=CompileOptions(retained=("logits",)))
    loaded = load_model(core, runtime, options)
    with loaded.model:
        recorder = Recorder(loaded.compiled, loaded.storage, range(STEPS))
        tokens = []
        for step in SingleRequest(loaded.model, recorder.watch).generate(PROMPT, STEPS):
            recorder.end_step()
            tokens.append(step.token)
    return tokens, np.stack([recorder.arrays[key_of(n, "logits")][0] for n in range(STEPS)])


@pytest.mark.parametrize("storage", SOURCE_STORAGES, ids=lambda s: s.name)
def test_a_stored_type_gives_the_same_numbers_everywhere(
    storage: WeightStorage, home: Path, tmp_path: Path
) -> None:
    path = write(tmp_path / "tiny.gguf", Q[storage.name])
    namespace, key = local_publisher(home)
    prepare(path, tmp_path / "tiny.core", OPTIONS, key=key, namespace=namespace)
    with authorize(authenticate(tmp_path / "tiny.core", TrustStore(home)), namespace) as core:
        made = [greedy(core, r) for r in (ReferenceRuntime(), CpuRuntime(numerics="f32"))]
    tokens = made[0][0]
    expected = expected_logits(path, tokens)
    assert tokens == made[1][0] == expected.argmax(axis=1).tolist()
    for _, logits in made:
        assert np.abs(logits - expected).max() / np.abs(expected).max() < 1e-4


@pytest.mark.parametrize(
    "kind", [kind for kind in Q if kind.name not in NAMES], ids=lambda k: k.name
)
def test_another_type_is_refused_by_name(kind: gguf.GGMLQuantizationType, tmp_path: Path) -> None:
    path = write(tmp_path / "tiny.gguf", Q.F16)
    data = path.read_bytes()
    name = b"blk.1.ffn_down.weight"
    at = data.index(name) + len(name) + 4 + 2 * 8  # rank and two dimensions stand before the type
    assert data[at : at + 4] == Q.F16.to_bytes(4, "little")
    path.write_bytes(data[:at] + kind.to_bytes(4, "little") + data[at + 4 :])
    with pytest.raises(SourceError) as caught:
        open_source(path)
    assert caught.value.field == "tiny.gguf: blk.1.ffn_down.weight"
    assert caught.value.value == kind.name
    assert "Q4_K" in caught.value.remedy
