"""`helios plan`, `run` and `diff-runs`, called as functions."""

import json
from pathlib import Path
from typing import Any

import gguf
import pytest
from toy_models import EIGHT_BILLION, Shape, ToySource

from helios.cli.diff_runs import diff_runs
from helios.cli.plan import plan, read_subject
from helios.cli.run import run
from helios.compile.catalog_file import read_catalog
from helios.contract.kinds import WeightStorage
from helios.errors import (
    CompileError,
    ConfigurationError,
    FitError,
    ForeignPlanError,
    HeliosError,
    SourceError,
    StalePlanError,
)
from helios.runtime.reference.device import ReferenceRuntime


def describe_safetensors(folder: Path, shape: Shape) -> Path:
    """A Hugging Face folder with a configuration and headers, and no data at all."""
    folder.mkdir()
    (folder / "config.json").write_text(
        json.dumps(
            {
                "model_type": "llama",
                "hidden_size": shape.width,
                "intermediate_size": shape.inner,
                "num_hidden_layers": shape.layers,
                "num_attention_heads": shape.heads,
                "num_key_value_heads": shape.key_heads,
                "max_position_embeddings": shape.context,
                "vocab_size": shape.vocabulary,
                "rms_norm_eps": 1e-5,
                "tie_word_embeddings": shape.tied,
            }
        )
    )
    keys = shape.width // shape.heads * shape.key_heads
    shapes = {"embed_tokens": (shape.vocabulary, shape.width), "norm": (shape.width,)}
    for layer in range(shape.layers):
        for name, dims in {
            "input_layernorm": (shape.width,),
            "self_attn.q_proj": (shape.width, shape.width),
            "self_attn.k_proj": (keys, shape.width),
            "self_attn.v_proj": (keys, shape.width),
            "self_attn.o_proj": (shape.width, shape.width),
            "post_attention_layernorm": (shape.width,),
            "mlp.gate_proj": (shape.inner, shape.width),
            "mlp.up_proj": (shape.inner, shape.width),
            "mlp.down_proj": (shape.width, shape.inner),
        }.items():
            shapes[f"layers.{layer}.{name}"] = dims
    named = {f"model.{name}.weight": dims for name, dims in shapes.items()}
    if not shape.tied:
        named["lm_head.weight"] = (shape.vocabulary, shape.width)
    header: dict[str, Any] = {}
    end = 0
    for name, dims in named.items():
        nbytes = 2 * dims[0] * (dims[1] if len(dims) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": dims, "data_offsets": [end, end + nbytes]}
        end += nbytes
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)
    return folder


def describe_gguf(path: Path, shape: Shape) -> Path:
    """A GGUF file that ends after its header."""
    source = ToySource(shape)
    writer = gguf.GGUFWriter(path, "llama")
    for key in sorted(source.config.keys()):
        value = source.config._values[key]
        if isinstance(value, float):
            writer.add_float32(f"llama.{key}", value)
        else:
            writer.add_uint32(f"llama.{key}", int(str(value)))
    writer.add_array("tokenizer.ggml.tokens", [f"t{n}" for n in range(8)])
    writer.add_array("tokenizer.ggml.merges", ["t 0"])
    writer.add_string("tokenizer.ggml.model", "gpt2")
    for name, tensor in source.tensors.items():
        kind = gguf.GGMLQuantizationType[tensor.storage.name]
        writer.add_tensor_info(name, tensor.shape, "float32", tensor.nbytes, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return describe_safetensors(tmp_path_factory.mktemp("sources") / "toy", Shape(layers=1))


def planned(capsys: pytest.CaptureFixture[str], *words: Any, **options: Any) -> dict[str, Any]:
    plan(*words, as_json=True, **options)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_folder_without_weights_is_planned(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = planned(capsys, str(folder), memory="64MiB", device="reference")
    assert found["fit"]["budget_nbytes"] == 64 << 20
    assert sum(s["nbytes"] for s in found["plan"]["sections"]) <= 64 << 20
    assert {w["storage"] for w in found["plan"]["weights"]} == {"bf16", "f32"}
    assert found["frontier"][0]["context"] == 256


def test_an_8b_shape_is_planned_from_its_header(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for source in (
        describe_gguf(tmp_path / "eight.gguf", EIGHT_BILLION),
        describe_safetensors(tmp_path / "eight", EIGHT_BILLION),
    ):
        found = planned(capsys, str(source), memory="64GiB", device="reference")
        assert found["plan"]["limits"]["context"] > 32768
        assert len(found["plan"]["weights"]) == 32 * 9 + 4


def test_absent_tensors_can_be_planned_and_not_prepared(folder: Path, tmp_path: Path) -> None:
    from helios.ignition.sources.open import open_source

    with pytest.raises(SourceError):
        open_source(folder)
    described = describe_gguf(tmp_path / "toy.gguf", Shape())
    with pytest.raises(SourceError):
        open_source(described)
    tensor = open_source(described, complete=False).tensors["token_embd.weight"]
    with pytest.raises(SourceError, match="absent"):
        tensor.data()


def test_the_plan_is_shown_in_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan(str(folder), memory="64MiB", device="reference")
    text = capsys.readouterr().out
    for words in ("weights f32", "pages", "step arena", "what would fit", "prefill", "budget"):
        assert words in text
    plan(str(folder), memory="64MiB", device="reference", explain=True)
    text = capsys.readouterr().out
    assert "reference.linear" in text
    assert "not reference.linear.w8" in text


def test_plans_are_compared(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "before.json"
    small = {"memory": "64MiB", "concurrency": 1, "diff": file}
    before = planned(capsys, str(folder), device="reference", **(small | {"diff": None}))
    file.write_text(json.dumps(before))
    plan(str(folder), device="reference", **small)  # type: ignore[arg-type]
    assert "nothing differs" in capsys.readouterr().out
    plan(str(folder), memory="64MiB", device="reference", diff=file)
    text = capsys.readouterr().out
    assert "pages" in text
    assert "+" in text
    plan(str(folder), device="cpu:avx2", as_json=True, **small)  # type: ignore[arg-type]
    parts = {(d["part"], d["name"]): d for d in json.loads(capsys.readouterr().out)}
    assert parts["device", "isa"]["right"] == "avx2"
    assert parts["providers", "linear"]["left"] == {"reference.linear": 32}


def test_a_catalog_is_written_and_planned_for(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "catalog.json"
    plan(device="cpu:avx512", write_catalog=file)
    catalog = read_catalog(file.read_text())
    assert (catalog.device.isa, catalog.memory > 0) == ("avx512", True)
    file.write_text(catalog.with_memory(100 << 20).to_json())
    found = planned(capsys, str(folder), device=str(file))
    assert found["fit"]["budget_nbytes"] == int(0.8 * (100 << 20))
    assert found["plan"]["device"]["isa"] == "avx512"
    assert "catalog" in found["fit"]["budget_origin"]


@pytest.mark.parametrize(
    ("options", "kind", "field"),
    [
        ({"memory": "x"}, ConfigurationError, "--memory"),
        ({"memory": "1MiB"}, FitError, "--memory"),
        ({"memory": "64MiB", "context": 4096}, ConfigurationError, "--context"),
        ({"memory": "4MiB", "pages": 4000}, FitError, "--pages"),
        ({"memory": "64MiB", "materialize": ["x"]}, ConfigurationError, "--materialize"),
        ({"memory": "64MiB", "materialize": ["x=0.1"]}, ConfigurationError, "--materialize"),
        ({"device": "gpu"}, ConfigurationError, "--device"),
        ({"device": "cpu:mmx"}, ConfigurationError, "--device"),
        ({"device": "cpu:avx2", "numerics": "a4"}, ConfigurationError, "--numerics"),
        ({"memory": "64MiB", "diff": Path("missing.json")}, ConfigurationError, "--diff"),
    ],
    ids=str,
)
def test_errors_name_the_option(
    folder: Path, options: dict[str, Any], kind: type[HeliosError], field: str
) -> None:
    with pytest.raises(kind) as caught:
        plan(str(folder), **{"device": "reference", **options})
    assert caught.value.field == field
    assert caught.value.remedy


def test_what_is_no_plan_or_catalog_is_refused(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text('{"plan": {"device": {}}}')
    with pytest.raises(StalePlanError, match="is no plan"):
        plan(str(folder), memory="64MiB", device="reference", diff=file)
    with pytest.raises(CompileError, match="catalog"):
        plan(str(folder), device=str(file))
    with pytest.raises(ConfigurationError, match="no model"):
        plan()
    with pytest.raises(SourceError):
        plan("no/such/model")


def test_a_paper_composition_loads_nothing(folder: Path) -> None:
    from helios.compile.paper import paper_composition
    from helios.compile.plan import Limits
    from helios.runtime.storage import Storage

    runtime = ReferenceRuntime()
    paper = paper_composition(runtime.composition().catalog)
    subject = read_subject(str(folder))
    limits = Limits(64, 1, 32, 2, 0)
    compiled = paper.compile(subject.contract, subject.programs, limits)
    real = runtime.composition().compile(subject.contract, subject.programs, limits)
    assert compiled.plan.id == real.plan.id
    with pytest.raises(ForeignPlanError):
        runtime.load(compiled, Storage(compiled.plan), object())  # type: ignore[arg-type]
    with pytest.raises(ForeignPlanError, match="catalog alone"):
        paper.registry["reference.linear"](1, 2, 3)


def test_a_core_and_its_source_have_one_plan(
    smollm2_path: Path,
    smollm2_gguf: Path,
    smollm2_home: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HELIOS_HOME", str(smollm2_home))
    ids = {
        planned(capsys, str(path), memory="2GiB", device="reference")["plan"]["id"]
        for path in (smollm2_path, smollm2_gguf)
    }
    assert len(ids) == 1


def test_two_runs_of_a_core_are_compared(
    smollm2_path: Path,
    smollm2_home: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HELIOS_HOME", str(smollm2_home))
    common: dict[str, Any] = {
        "prompt": "The capital of France is",
        "capture": ["layers.*.attention", "logits"],
        "steps": "0:2",
        "count": 3,
        "memory": "1GiB",
        "as_json": True,
    }
    told = []
    for name, options in {"a": {}, "b": {"chunk": 2}}.items():
        run(str(smollm2_path), output=tmp_path / name, **common, **options)
        told.append(json.loads(capsys.readouterr().out))
    assert told[0]["text"].startswith(" Paris")
    assert told[0]["tokens"] == told[1]["tokens"]
    assert len(told[0]["captured"]) == 2 * 31
    diff_runs(tmp_path / "a", tmp_path / "b", tolerance=0.0, as_json=True)
    assert {d["maximum"] for d in json.loads(capsys.readouterr().out)} == {0.0}
    diff_runs(tmp_path / "a", tmp_path / "b")
    assert "logits" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"prompt": "x", "steps": "b"}, "--steps"),
        ({"prompt": "x", "capture": ["logits"]}, "--capture, --output"),
        ({"prompt": "x", "output": Path("x")}, "--capture, --output"),
    ],
    ids=str,
)
def test_runs_refuse_what_makes_no_sense(options: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        run("nothing", **options)
    assert caught.value.field == field


def test_storages_of_a_described_model_are_those_it_states(tmp_path: Path) -> None:
    path = describe_gguf(tmp_path / "x.gguf", Shape(storage=WeightStorage.Q4_1))
    weights = read_subject(str(path)).contract.weights
    assert {w.storage for w in weights.values()} == {WeightStorage.Q4_1, WeightStorage.F32}
