"""Hugging Face folders: read as safetensors reads them, and refused where they are not sound."""

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_checkpoints import VOCABULARY, save_checkpoint
from transformers import LlamaConfig

from helios.errors import SourceError
from helios.ignition.export import assemble
from helios.ignition.options import PrepareOptions
from helios.ignition.sources.huggingface import HuggingFaceSource
from helios.ignition.sources.open import open_source
from helios.ignition.sources.safetensors import read_safetensors
from helios.ignition.sources.source import SourceTensor

CONFIG = LlamaConfig(
    vocab_size=VOCABULARY,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    intermediate_size=24,
    max_position_embeddings=64,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_checkpoint(tmp_path, CONFIG)
    return tmp_path


def refusal(folder: Path) -> SourceError:
    with pytest.raises(SourceError) as caught:
        assemble(open_source(folder), PrepareOptions())
    assert caught.value.field
    assert caught.value.remedy
    return caught.value


def change(path: Path, edit: Callable[[dict[str, object]], object]) -> None:
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def test_tensors_are_those_safetensors_reads(folder: Path) -> None:
    source = HuggingFaceSource(folder)
    expected = safetensors.torch.load_file(folder / "model.safetensors")
    assert set(source.tensors) == set(expected)
    for name, tensor in expected.items():
        mine = np.frombuffer(source.tensors[name].data(), np.float32)
        assert np.array_equal(mine.reshape(source.tensors[name].shape), tensor.numpy())


def test_shards_give_the_same_weights_and_half_precision_stays_as_it_is(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "whole", CONFIG)
    save_checkpoint(tmp_path / "shards", CONFIG, max_shard_size="8KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 1
    whole, shards = (HuggingFaceSource(tmp_path / name) for name in ("whole", "shards"))
    assert {n: bytes(t.data()) for n, t in whole.tensors.items()} == {
        n: bytes(t.data()) for n, t in shards.tensors.items()
    }
    for dtype, name in ((torch.float16, "F16"), (torch.bfloat16, "BF16")):
        path = tmp_path / f"{name}.safetensors"
        safetensors.torch.save_file({"x": torch.ones(3, 4, dtype=dtype)}, path)
        assert read_safetensors(path)["x"].storage.name == name


def test_generation_settings_and_special_tokens_are_read(folder: Path) -> None:
    change(
        folder / "generation_config.json",
        lambda c: c.update(eos_token_id=[2, 5], do_sample=True, temperature=0.6, top_k=20),
    )
    source = HuggingFaceSource(folder)
    assert source.tokenizer.eos_ids == (2, 5)
    assert source.tokenizer.eos == "</s>"
    assert source.sampling.temperature == 0.6
    assert source.sampling.top_k == 20
    contract = assemble(source, PrepareOptions()).contract
    assert list(contract.model.frontend.eos_tokens) == [2, 5]
    assert contract.model.frontend.add_bos
    assert contract.defaults.temperature == 0.6
    assert not contract.defaults.HasField("top_p")


def test_templates_are_found_wherever_folders_keep_them(folder: Path) -> None:
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": "processor"}))
    assert HuggingFaceSource(folder).chat_template == "processor"
    change(folder / "tokenizer_config.json", lambda c: c.update(chat_template="old"))
    assert HuggingFaceSource(folder).chat_template == "old"
    named = [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}]
    change(folder / "tokenizer_config.json", lambda c: c.update(chat_template=named))
    assert HuggingFaceSource(folder).chat_template == "d"
    (folder / "chat_template.jinja").write_text("new")
    assert HuggingFaceSource(folder).chat_template == "new"


def test_special_tokens_may_be_named_in_a_file_of_their_own(folder: Path) -> None:
    for key in ("bos_token", "eos_token"):
        change(folder / "tokenizer_config.json", lambda c, key=key: c.pop(key))
    special = {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "unk_token": "<unk>"}
    (folder / "special_tokens_map.json").write_text(json.dumps(special))
    tokenizer = HuggingFaceSource(folder).tokenizer
    assert (tokenizer.bos, tokenizer.eos, tokenizer.unknown) == ("<s>", "</s>", "<unk>")


def test_a_cached_snapshot_is_named_after_its_repository(tmp_path: Path) -> None:
    folder = tmp_path / "models--someone--Tiny-Llama" / "snapshots" / "0123456789abcdef"
    folder.mkdir(parents=True)
    save_checkpoint(folder, CONFIG)
    assert HuggingFaceSource(folder).name == "Tiny-Llama"
    assert assemble(open_source(folder), PrepareOptions()).contract.served_id == "Tiny-Llama"


def test_a_folder_of_other_files_is_refused_with_advice(tmp_path: Path) -> None:
    assert refusal(tmp_path).field == "config.json"
    (tmp_path / "model-q4.gguf").write_bytes(b"GGUF")
    assert "model-q4.gguf" in refusal(tmp_path).remedy


def test_a_pointer_to_a_large_file_is_told_from_the_file(folder: Path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    (folder / "model.safetensors").write_bytes(pointer)
    assert "git lfs pull" in refusal(folder).remedy


def test_the_digest_covers_every_file(folder: Path) -> None:
    before = HuggingFaceSource(folder).sha256()
    assert HuggingFaceSource(folder).sha256() == before
    change(folder / "generation_config.json", lambda c: c.update(top_k=3))
    assert HuggingFaceSource(folder).sha256() != before


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model_type", "parrot"),
        ("num_hidden_layers", 10**9),
        ("num_hidden_layers", 1),
        ("num_hidden_layers", True),
        ("hidden_act", "gelu"),
        ("rms_norm_eps", "NaN"),
        ("rms_norm_eps", -1.0),
        ("head_dim", 12),
        ("num_key_value_heads", 3),
        ("tie_word_embeddings", "yes"),
        ("quantization_config", {"quant_method": "awq"}),
        ("rope_parameters", {"rope_type": "longrope", "rope_theta": 1e4}),
        ("rope_parameters", {"rope_type": "linear", "rope_theta": 1e4, "factor": -2.0}),
        ("rope_parameters", {"rope_type": "linear", "rope_theta": 1e4, "factor": 10**400}),
        ("rope_parameters", {"rope_theta": 1.0}),
        ("rope_parameters", [1]),
    ],
)
def test_a_wrong_configuration_is_refused(folder: Path, key: str, value: object) -> None:
    change(folder / "config.json", lambda c: c.update({key: value}))
    refusal(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_missing_and_damaged_files_are_named(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    refusal(folder)
    (folder / name).unlink()
    assert name in refusal(folder).field


def test_a_shard_outside_the_folder_is_refused(folder: Path) -> None:
    index = {"weight_map": {"lm_head.weight": "../model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert refusal(folder).value == "../model.safetensors"


def safetensors_file(path: Path, header: object, data: bytes = bytes(16)) -> Path:
    content = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(content)) + content + data)
    return path


GOOD = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}


@pytest.mark.parametrize(
    "header",
    [
        [],
        {"x": 3},
        {"x": {**GOOD, "dtype": "F8_E4M3"}},
        {"x": {**GOOD, "shape": [2, 3]}},
        {"x": {**GOOD, "shape": [2, -2]}},
        {"x": {**GOOD, "shape": [2.0, 2]}},
        {"x": {**GOOD, "shape": []}},
        {"x": {**GOOD, "shape": [1 << 40, 1 << 40]}},
        {"x": {**GOOD, "data_offsets": [0, 17]}},
        {"x": {**GOOD, "data_offsets": [16, 0]}},
        {"x": {**GOOD, "data_offsets": [8, 24]}},
        {"x": {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]}},
        {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}},
        {"x": GOOD, "y": GOOD},
        {},
    ],
)
def test_unsound_safetensors_are_refused(tmp_path: Path, header: object) -> None:
    with pytest.raises(SourceError) as caught:
        read_safetensors(safetensors_file(tmp_path / "x.safetensors", header))
    assert caught.value.field


def test_sound_safetensors_are_read(tmp_path: Path) -> None:
    header = {"__metadata__": {"format": "pt"}, "x": GOOD}
    tensor = read_safetensors(safetensors_file(tmp_path / "x.safetensors", header))["x"]
    assert tensor.shape == (2, 2)
    assert bytes(tensor.data()) == bytes(16)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(data=st.data())
def test_damage_anywhere_is_refused_or_harmless(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.getbasetemp()
    path = safetensors_file(base / "fuzz.safetensors", {"x": GOOD, "__metadata__": {"a": "b"}})
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 2))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    tensors = read_or_refuse(path)
    assert all(len(t.data()) == t.nbytes == 16 for t in tensors.values())


def read_or_refuse(path: Path) -> Mapping[str, SourceTensor]:
    """What a file holds; nothing where it is refused, in which case the error must be ours."""
    try:
        return read_safetensors(path)
    except SourceError:
        return {}
