import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from toy_models import Shape, ToyModel

from helios.compile.options import CompileOptions
from helios.compile.retention import retained_values, shown_names, value_names
from helios.contract.operation import Operation
from helios.errors import CompileError, ConfigurationError, DeviceError
from helios.runtime.capture import Recorder, compare_dumps, parse_steps
from helios.runtime.cpu.device import CpuRuntime
from helios.runtime.device import DeviceRuntime
from helios.runtime.dump import Dump, read_dump, write_dump
from helios.runtime.loader import LoadOptions, load_model
from helios.runtime.reference.device import ReferenceRuntime
from helios.runtime.single import SingleRequest

PROMPT = [(5 * n + 2) % 100 for n in range(40)]


def capture(
    patterns: Sequence[str],
    *,
    runtime: DeviceRuntime | None = None,
    steps: str = "",
    count: int = 4,
    chunk: int = 0,
    forced: Sequence[int] = (),
) -> tuple[Dump, list[int]]:
    options = LoadOptions(memory=1 << 28, compile=CompileOptions(retained=tuple(patterns)))
    loaded = load_model(ToyModel(Shape(), concurrency=2), runtime or ReferenceRuntime(), options)
    with loaded.model:
        recorder = Recorder(loaded.compiled, loaded.storage, parse_steps(steps))
        request = SingleRequest(loaded.model, recorder.watch)
        tokens = []
        for step in request.generate(PROMPT, count, forced, chunk):
            recorder.end_step()
            tokens.append(step.token)
    return recorder.dump({"note": "x"}), tokens


def test_chosen_values_of_chosen_steps_are_kept() -> None:
    dump, _ = capture(["layers.*.attention", "logits"], steps="1:3")
    assert sorted(dump.arrays) == [
        f"step.{step}/{name}"
        for step in (1, 2)
        for name in ("layers.0.attention", "layers.1.attention", "logits")
    ]
    assert dump.arrays["step.1/logits"].shape == (1, 100)
    assert dump.metadata["note"] == "x"


def test_capture_changes_no_token_and_what_is_kept_is_what_was_computed() -> None:
    plain, tokens = capture(["logits"])
    everything, again = capture(["*"])
    assert tokens == again
    for step, token in enumerate(tokens):
        logits = plain.arrays[f"step.{step}/logits"]
        assert int(np.argmax(logits)) == token
        np.testing.assert_array_equal(logits, everything.arrays[f"step.{step}/logits"])


def test_a_prompt_in_chunks_is_put_together() -> None:
    whole, _ = capture(["layers.1.feed_forward", "logits"], count=1)
    parts, _ = capture(["layers.1.feed_forward", "logits"], count=1, chunk=7)
    assert whole.arrays["step.0/layers.1.feed_forward"].shape == (40, 64)
    assert compare_dumps(whole, parts, 1e-5)[0].first_step is None


def test_forced_tokens_are_consumed_instead_of_the_sampled_ones() -> None:
    free, tokens = capture(["logits"])
    same, _ = capture(["logits"], forced=tokens[:3])
    other, _ = capture(["logits"], forced=[(tokens[0] + 1) % 100])
    assert all(d.first_step is None for d in compare_dumps(free, same, 1e-6))
    assert [d.first_step for d in compare_dumps(free, other, 1e-6)] == [1]


def test_two_runtimes_are_compared_value_by_value() -> None:
    left, _ = capture(["layers.*.attention", "logits"])
    right, _ = capture(["layers.*.attention", "logits"], runtime=CpuRuntime(2, "f32"))
    found = compare_dumps(left, right, 1e-3)
    assert [d.name for d in found] == ["layers.0.attention", "layers.1.attention", "logits"]
    assert all(d.first_step is None and d.relative_l2 < 1e-4 for d in found)
    assert found[0].shape == "[40, 64]"


# ---- comparing ----------------------------------------------------------------------------


def _dump(**values: Sequence[float]) -> Dump:
    return Dump(
        {key.replace("__", "/").replace("_", "."): np.array(v) for key, v in values.items()}, {}
    )


def test_the_first_step_beyond_the_tolerance_is_named() -> None:
    left = _dump(step_0__x=[3.0, 4.0], step_1__x=[3.0, 4.0], step_2__x=[3.0, 4.0])
    right = _dump(step_0__x=[3.0, 4.0], step_1__x=[3.0, 4.5], step_2__x=[3.0, 5.0])
    (found,) = compare_dumps(left, right, 0.0)
    assert (found.first_step, found.maximum, found.relative_l2) == (1, 1.0, 0.2)
    assert compare_dumps(left, right, 0.1)[0].first_step == 2
    assert compare_dumps(left, right, 0.2)[0].first_step is None


@pytest.mark.parametrize(
    ("left", "right", "first"),
    [
        ([1.0, -np.inf], [1.0, -np.inf], None),
        ([1.0, np.nan], [1.0, np.nan], None),
        ([1.0, np.inf], [1.0, 2.0], 0),
        ([1.0, 2.0], [1.0, np.nan], 0),
        ([0.0], [0.0], None),
        ([0.0], [1e-9], 0),
        ([1.0], [1.0, 1.0], 0),
    ],
    ids=str,
)
def test_values_that_are_not_ordinary_numbers(
    left: list[float], right: list[float], first: int | None
) -> None:
    (found,) = compare_dumps(_dump(step_0__x=left), _dump(step_0__x=right), 0.5)
    assert found.first_step == first


def test_a_value_that_one_run_lacks_diverges() -> None:
    found = compare_dumps(_dump(step_0__x=[1.0]), _dump(step_0__y=[1.0]), 1.0)
    assert [(d.name, d.first_step) for d in found] == [("x", 0), ("y", 0)]
    assert found[0].shape == "[1] and missing"


def test_tensors_of_other_origin_are_refused() -> None:
    for key in ("x", "step.a/x", "step.1", "step.1/", "layer.1/x"):
        with pytest.raises(ConfigurationError, match="not a captured value"):
            compare_dumps(Dump({key: np.ones(1)}, {}), Dump({}, {}), 0.0)


@pytest.mark.parametrize(
    ("text", "chosen"), [("", [0, 1, 2, 3]), ("1:3", [1, 2]), ("2", [2]), (":2", [0, 1])]
)
def test_steps_are_parsed(text: str, chosen: list[int]) -> None:
    wanted = parse_steps(text)
    assert [step for step in range(4) if step in wanted] == chosen


@pytest.mark.parametrize("text", ["x", "3:3", "4:1", "-1", "1:2:3", "1.5"])
def test_what_names_no_steps_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="names no steps"):
        parse_steps(text)


# ---- the file -----------------------------------------------------------------------------


def test_dumps_are_safetensors(tmp_path: Path) -> None:
    arrays = {
        "step.0/a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "step.0/b": np.array([1, -2], dtype=np.int32),
        "step.0/empty": np.empty((0, 4), dtype=np.float32),
    }
    path = tmp_path / "x.safetensors"
    write_dump(path, Dump(arrays, {"k": "v"}))
    for name, array in safetensors.numpy.load_file(path).items():
        np.testing.assert_array_equal(array, arrays[name])
    back = read_dump(path)
    assert back.metadata == {"k": "v"}
    assert {n: (a.dtype, a.shape) for n, a in back.arrays.items()} == {
        n: (a.dtype, a.shape) for n, a in arrays.items()
    }


def test_broken_dumps_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    write_dump(path, Dump({"step.0/a": np.ones(4, dtype=np.float32)}, {}))
    good = path.read_bytes()
    header = json.dumps({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}).encode()
    lies = len(header).to_bytes(8, "little") + header + bytes(8)
    for broken in (b"", good[:7], good[:20], good[:-1], b"\xff" * 64, lies):
        path.write_bytes(broken)
        with pytest.raises(ConfigurationError, match="can't be read as a dump"):
            read_dump(path)
    with pytest.raises(ConfigurationError, match="can't be read"):
        read_dump(tmp_path / "missing")


# ---- names --------------------------------------------------------------------------------


def test_values_answer_to_their_weights_names(toy: ToyModel) -> None:
    program = toy.program(Operation.DECODE)
    (found,) = retained_values([program], ["layers.0.attention.query"])
    assert len(found) == 1
    assert "layers.0.attention.query" in value_names(program)[next(iter(found))]
    shown = shown_names(program)
    assert shown[next(iter(found))] == "layers.0.attention.query"
    assert shown["layers.0.attention"] == "layers.0.attention"
    assert shown["logits"] == "logits"
    assert len(set(shown.values())) == len(shown)


def test_a_name_that_nothing_has_is_refused(toy: ToyModel) -> None:
    with pytest.raises(CompileError, match="no value has such a name"):
        retained_values(toy.captured, ["logits", "layers.9.attention"])


# ---- a request by hand --------------------------------------------------------------------


def test_a_request_does_not_outgrow_its_context() -> None:
    options = LoadOptions(memory=1 << 28, context=64)
    loaded = load_model(ToyModel(concurrency=1), ReferenceRuntime(), options)
    with loaded.model:
        request = SingleRequest(loaded.model)
        steps = request.generate([3] * 63, 9)
        assert [next(steps).consumed, next(steps).consumed] == [63, 64]
        with pytest.raises(ConfigurationError, match="outgrows the context"):
            next(steps)
        with pytest.raises(ConfigurationError, match="no tokens"):
            request.consume([])


def test_a_step_that_fails_says_so() -> None:
    loaded = load_model(ToyModel(concurrency=1), ReferenceRuntime(), LoadOptions(memory=1 << 28))
    with loaded.model, pytest.raises(DeviceError):
        list(SingleRequest(loaded.model).generate([10**6], 1))
