import mmap
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import pytest
from toy_models import Shape, ToyModel

from helios.compile.accuracy import TensorError, require_accuracy
from helios.compile.options import CompileOptions, parse_approximation
from helios.compile.plan import WeightPlan
from helios.contract.kinds import SOURCE_STORAGES, WeightStorage
from helios.errors import AccuracyError, ConfigurationError
from helios.runtime.capture import Recorder, compare_dumps
from helios.runtime.cpu.device import CpuRuntime
from helios.runtime.device import STAGING_NBYTES
from helios.runtime.loader import LoadedModel, LoadOptions, load_model
from helios.runtime.reference.device import ReferenceRuntime
from helios.runtime.reference.materialize import materializers
from helios.runtime.release import FileMappings, ReleasingSource
from helios.runtime.single import SingleRequest
from helios.runtime.transcode import from_blocks

_STORAGES = {s.name.lower(): s for s in WeightStorage}


def load(shape: Shape, approximate: dict[str, float]) -> LoadedModel:
    options = LoadOptions(memory=1 << 28, compile=CompileOptions(approximate))
    return load_model(ToyModel(shape, concurrency=2), ReferenceRuntime(), options)


def _bytes(values: np.ndarray, storage: str) -> memoryview:
    stored = gguf.quantize(values, gguf.GGMLQuantizationType[storage.upper()])
    return memoryview(np.ascontiguousarray(stored).tobytes())


@pytest.mark.parametrize("storage", [s.name.lower() for s in SOURCE_STORAGES])
def test_every_storage_is_read_exactly(storage: str) -> None:
    kind = gguf.GGMLQuantizationType[storage.upper()]
    columns, (_, nbytes) = 512, gguf.GGML_QUANT_SIZES[kind]
    block = gguf.GGML_QUANT_SIZES[kind][0]
    raw = np.random.default_rng(5).integers(0, 60, (100, columns // block * nbytes), dtype=np.uint8)
    made, error = materializers()[f"reference.{storage}"](memoryview(raw.tobytes()), (100, columns))
    assert (error, made.dtype, made.shape) == (TensorError(0.0, 0), np.float32, (100, columns))
    np.testing.assert_array_equal(made, gguf.dequantize(raw, kind))


def test_stored_float32_is_mapped_in_place() -> None:
    data = _bytes(np.arange(64, dtype=np.float32).reshape(2, 32), "f32")
    made, _ = materializers()["reference.f32"](data, (2, 32))
    assert made.ctypes.data == np.frombuffer(data, np.uint8).ctypes.data


def test_an_approximation_reports_its_error() -> None:
    values = np.random.default_rng(1).standard_normal((300, 96)).astype(np.float32)
    made, error = materializers()["reference.f32-w8"](_bytes(values, "f32"), (300, 96))
    difference = np.linalg.norm(from_blocks(made) - values) / np.linalg.norm(values)
    assert error.relative_l2 == pytest.approx(difference, rel=1e-6)
    assert 1e-4 < error.relative_l2 < 0.01
    assert error.non_finite == 0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values_that_are_not_finite_are_counted() -> None:
    values = np.ones((4, 32), dtype=np.float32)
    values[1, 3], values[2, 0] = np.nan, np.inf
    _, error = materializers()["reference.f32-w8"](_bytes(values, "f32"), (4, 32))
    assert error.non_finite == 2
    assert np.isfinite(error.relative_l2)


def _plan(bound: float | None = 0.01) -> WeightPlan:
    return WeightPlan("w", "bf16", "w8", "m", False, 1, 1, False, bound)


def test_errors_beyond_the_bound_are_refused() -> None:
    require_accuracy(_plan(), TensorError(0.01, 0))
    with pytest.raises(AccuracyError, match="larger relative L2") as caught:
        require_accuracy(_plan(), TensorError(0.0101, 0))
    assert caught.value.field == "weights.w"
    with pytest.raises(AccuracyError, match="larger relative L2"):
        require_accuracy(_plan(), TensorError(float("nan"), 0))
    with pytest.raises(AccuracyError, match="not finite"):
        require_accuracy(_plan(), TensorError(0.0, 1))


def test_consent_changes_plan_bytes_and_report() -> None:
    exact = load(Shape(storage=WeightStorage.BF16), {})
    rough = load(Shape(storage=WeightStorage.BF16), {"reference.bf16-w8": 0.02})
    with exact.model, rough.model:
        assert rough.plan.id != exact.plan.id
        chosen = {w.name: w for w in rough.plan.weights}["layers.0.feed_forward.up"]
        assert (chosen.layout, chosen.exact, chosen.bound) == ("w8", False, 0.02)
        assert chosen.nbytes == 96 * 64 // 32 * 34
        told = rough.report.to_dict()["approximations"]
        assert 0 < told["layers.0.feed_forward.up"]["relative_l2"] < 0.02
        assert exact.report.to_dict()["approximations"] == {}
        prompt = list(range(2, 40))
        tokens = [
            [step.token for step in SingleRequest(loaded.model).generate(prompt, 4)]
            for loaded in (exact, rough)
        ]
        assert tokens[0][0] == tokens[1][0]


@pytest.mark.parametrize("storage", ["f32", "f16", "bf16"])
def test_native_approximations_hold_what_the_reference_holds(storage: str) -> None:
    """The same 8-bit blocks on both devices: equal errors, and nearly equal logits."""
    shape = Shape(width=96, heads=3, key_heads=1, vocabulary=333, storage=_STORAGES[storage])
    model = ToyModel(shape, concurrency=2)
    found = []
    for device, runtime in (("cpu", CpuRuntime(2, "f32")), ("reference", ReferenceRuntime())):
        consent = CompileOptions({f"{device}.{storage}-w8": 0.02}, ("logits",))
        loaded = load_model(model, runtime, LoadOptions(memory=1 << 28, compile=consent))
        with loaded.model:
            recorder = Recorder(loaded.compiled, loaded.storage, range(3))
            request = SingleRequest(loaded.model, recorder.watch)
            for _ in request.generate(range(2, 40), 3, [5, 6]):
                recorder.end_step()
        found.append((loaded.report.errors, recorder.dump({})))
    (native, left), (exact, right) = found
    assert native == exact
    assert len(native) > 10
    assert all(d.first_step is None for d in compare_dumps(left, right, 1e-4))


def test_native_bounds_stop_loading_too() -> None:
    model = ToyModel(Shape(storage=WeightStorage.BF16))
    options = LoadOptions(memory=1 << 28, compile=CompileOptions({"cpu.bf16-w8": 1e-6}))
    with pytest.raises(AccuracyError):
        load_model(model, CpuRuntime(1), options)


def test_rows_that_are_no_whole_blocks_are_not_approximated() -> None:
    """Only the projection back from an inner width of 80 has such rows; it stays exact."""
    shape = Shape(inner=80, storage=WeightStorage.F16)
    options = LoadOptions(memory=1 << 28, compile=CompileOptions({"*.f16-w8": 0.02}))
    loaded = load_model(ToyModel(shape), ReferenceRuntime(), options)
    with loaded.model:
        layouts = {w.name: w.layout for w in loaded.plan.weights}
    assert layouts["layers.0.feed_forward.down"] == "f32"
    assert layouts["layers.0.feed_forward.up"] == "w8"


def test_a_bound_that_does_not_hold_stops_loading() -> None:
    with pytest.raises(AccuracyError) as caught:
        load(Shape(storage=WeightStorage.F16), {"*-w8": 1e-5})
    assert caught.value.field.startswith("weights.")


@pytest.mark.parametrize("text", ["", "x", "x=", "=0.1", "x=0", "x=1", "x=nan", "x=-1", "x=a"])
def test_consent_needs_a_name_and_a_bound(text: str) -> None:
    with pytest.raises(ConfigurationError, match="NAME=BOUND"):
        parse_approximation(text)


def test_consent_is_parsed() -> None:
    assert parse_approximation("reference.*-w8=0.01") == ("reference.*-w8", 0.01)


@pytest.mark.parametrize(
    ("name", "storage", "rows"),
    [("reference.q4_1", "q4_1", 6000), ("reference.f16-w8", "f16", 6000)],
)
def test_staging_is_bounded_whatever_the_size(name: str, storage: str, rows: int) -> None:
    values = np.random.default_rng(2).standard_normal((rows, 256)).astype(np.float32)
    data = _bytes(values, storage)
    materialize: Callable[..., tuple[np.ndarray, TensorError]] = materializers()[name]
    tracemalloc.start()
    try:
        made, _ = materialize(data, (rows, 256))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert made.nbytes > 1 << 20
    assert peak - made.nbytes < STAGING_NBYTES


# ---- giving stored pages back -------------------------------------------------------------


@dataclass
class _Tensor:
    data: memoryview


class _Source:
    """Two tensors in one mapped file, or in private memory."""

    def __init__(self, memory: memoryview) -> None:
        half = len(memory) // 2
        self.parts = {"a": memory[:half], "b": memory[half:]}

    def weight(self, name: str) -> _Tensor:
        return _Tensor(self.parts[name])


def _plan_of(mapped: bool) -> object:
    weights = [WeightPlan(n, "f32", "f32", "m", True, 1, 1, mapped) for n in "ab"]
    return type("Plan", (), {"weights": weights})()


def _resident(memory: memoryview) -> int:
    """Resident kilobytes of the mapping that holds this memory."""
    address = np.frombuffer(memory, np.uint8).ctypes.data
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if "-" in words[0] and ":" not in words[0]:
            start, end = (int(n, 16) for n in words[0].split("-"))
            inside = start <= address < end
        elif inside and words[0] == "Rss:":
            return int(words[1])
    raise AssertionError("not mapped")


@pytest.mark.parametrize("mapped", [False, True])
def test_read_pages_of_a_file_are_released_unless_the_plan_maps_them(
    tmp_path: Path, mapped: bool
) -> None:
    (tmp_path / "w").write_bytes(bytes(range(256)) * 8192)
    with (tmp_path / "w").open("rb") as file:
        memory = memoryview(
            mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
        )
    with ReleasingSource(_Source(memory), _plan_of(mapped)) as source:  # type: ignore[arg-type]
        for name in "ab":
            assert sum(source.weight(name).data[::4096]) == 0
            assert _resident(memory) >= 1024
    # The system maps large pages at once, so only the end result is certain.
    assert (_resident(memory) >= 2048) == mapped
    assert bytes(memory[:256]) == bytes(range(256))


def test_private_memory_is_left_alone() -> None:
    block = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    block.write(b"\x07" * (1 << 20))
    with ReleasingSource(_Source(memoryview(block)), _plan_of(False)) as source:  # type: ignore[arg-type]
        for name in "ab":
            source.weight(name)
    assert bytes(block[:]) == b"\x07" * (1 << 20)


def test_only_read_only_views_of_files_count_as_file_mappings(tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    maps.write_text(
        "1000-2000 r--p 00000000 08:01 77  /model.core\n"
        "2000-3000 rw-p 00000000 08:01 77  /model.core\n"
        "3000-4000 r--p 00000000 00:00 0 \n"
        "5000-9000 r-xp 00000000 08:01 78  /lib/with a name.so\n"
    )
    files = FileMappings(maps)
    assert files.cover(0x1000, 0x2000)
    assert files.cover(0x6000, 0x7000)
    for first, last in [(0x1800, 0x2800), (0x2000, 0x2100), (0x3000, 0x4000), (0x0, 0x10)]:
        assert not files.cover(first, last)
    assert not FileMappings(tmp_path / "missing").cover(0x1000, 0x2000)
