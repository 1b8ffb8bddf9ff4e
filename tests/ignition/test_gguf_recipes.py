"""GGUF files of every architecture give the logits of the model they were converted from.

Tensor names come from the `gguf` package's own table; what converters do to tensors (llama's
permuted query and key rows, Gemma's norms with one added) is done here as llama.cpp documents it.
"""

import copy
from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from test_recipe_logits import CASES
from tiny_checkpoints import VOCABULARY, save_checkpoint
from tiny_gguf import METADATA, write_gguf
from transformers import PreTrainedModel
from transformers_agreement import assert_agreement

from helios.ignition.recipes.registry import recipe_for
from helios.ignition.sources.open import open_source

ARCHITECTURES = {
    "llama": "llama",
    "llama-tied": "llama",
    "llama-bias": "llama",
    "llama-3": "llama",
    "llama-linear": "llama",
    "llama-yarn": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "gemma2": "gemma2",
    "gemma3": "gemma3",
}


@pytest.mark.parametrize("case", ARCHITECTURES)
def test_logits_agree_with_the_model_converted(case: str, tmp_path: Path) -> None:
    config = copy.deepcopy(CASES[case])
    if case.startswith("gemma"):  # GGUF files do not state the scale of the scores
        config.query_pre_attn_scalar = config.head_dim
    model = save_checkpoint(tmp_path / "original", config)
    architecture = ARCHITECTURES[case]
    path = write_gguf(
        tmp_path / "converted.gguf",
        {**tokenizer_facts(), **model_facts(model, architecture)},
        converted(model, architecture),
        storage=gguf.GGMLQuantizationType.F32,
        architecture=architecture,
    )
    assert_agreement(model, open_source(path))


@pytest.mark.parametrize("case", ["gemma2", "gemma3"])
def test_a_head_stored_by_itself_is_used(case: str, tmp_path: Path) -> None:
    """As quantisers leave it that give the head another type than the embedding."""
    config = copy.deepcopy(CASES[case])
    config.query_pre_attn_scalar = config.head_dim
    model = save_checkpoint(tmp_path / "original", config)
    tensors = dict(converted(model, case))
    tensors["output.weight"] = tensors["token_embd.weight"]
    tensors["token_embd.weight"] = tensors["token_embd.weight"] * np.float32(1.5)
    path = write_gguf(
        tmp_path / "converted.gguf",
        {**tokenizer_facts(), **model_facts(model, case)},
        tensors,
        storage=gguf.GGMLQuantizationType.F32,
        architecture=case,
    )
    with torch.no_grad():
        head = model.lm_head.weight.clone()
        model.model.embed_tokens.weight.mul_(1.5)
        model.lm_head.weight = torch.nn.Parameter(head)
    assert_agreement(model, open_source(path))


def tokenizer_facts() -> Mapping[str, object]:
    facts = {k: v for k, v in METADATA.items() if k.startswith(("general", "tokenizer"))}
    return {**facts, "tokenizer.ggml.tokens": [f"t{i}" for i in range(VOCABULARY)]} | {
        "tokenizer.ggml.token_type": [1] * VOCABULARY
    }


def model_facts(model: PreTrainedModel, architecture: str) -> Mapping[str, object]:
    config = model.config
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    facts: dict[str, object] = {
        "block_count": config.num_hidden_layers,
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.key_length": head_dim,
        "attention.value_length": head_dim,
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
    }
    rope = config.rope_parameters
    rope = rope.get("full_attention", rope)
    facts["rope.freq_base"] = float(rope["rope_theta"])
    if rope["rope_type"] in ("linear", "yarn"):
        facts["rope.scaling.type"] = rope["rope_type"]
        facts["rope.scaling.factor"] = float(rope["factor"])
    if rope["rope_type"] == "yarn":
        original = rope["original_max_position_embeddings"]
        facts["rope.scaling.original_context_length"] = original
    for key in ("attn_logit_softcapping", "final_logit_softcapping"):
        if getattr(config, key, None):
            facts[key] = float(getattr(config, key))
    if architecture.startswith("gemma"):
        facts["attention.sliding_window"] = config.sliding_window
    return {f"{architecture}.{key}": value for key, value in facts.items()}


def converted(model: PreTrainedModel, architecture: str) -> Mapping[str, np.ndarray]:
    config = model.config
    kind = next(k for k, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(kind, config.num_hidden_layers)
    tensors: dict[str, np.ndarray] = {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = tensor.numpy()
        stored = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert stored, name
        if architecture == "llama" and ("q_proj" in name or "k_proj" in name):
            query = "q_proj" in name
            heads = config.num_attention_heads if query else config.num_key_value_heads
            values = permuted(values, heads)
        if architecture.startswith("gemma") and name.endswith("norm.weight"):
            values = values + 1
        tensors[stored] = np.ascontiguousarray(values)
    if architecture == "llama" and config.rope_parameters["rope_type"] == "llama3":
        scaled = model.model.rotary_emb.inv_freq.numpy()
        base, pairs = config.rope_parameters["rope_theta"], len(scaled)
        tensors["rope_freqs.weight"] = (base ** (-np.arange(pairs) / pairs) / scaled).astype(
            np.float32
        )
    return tensors


def permuted(values: np.ndarray, heads: int) -> np.ndarray:
    """Rows of each head reordered so that rotary pairs lie side by side."""
    halves = values.reshape(heads, 2, -1, *values.shape[1:])
    return halves.swapaxes(1, 2).reshape(values.shape)


@pytest.mark.parametrize("changes", [{"scale_linear": 3.0}, {"scaling.factor": 3.0}])
def test_a_factor_without_a_type_is_linear(changes: Mapping[str, float], tmp_path: Path) -> None:
    def frequencies(name: str, **facts: object) -> bytes:
        metadata = {**METADATA, **{f"llama.rope.{k}": v for k, v in facts.items()}}
        recipe = recipe_for(open_source(write_gguf(tmp_path / name, metadata)))
        return bytes(recipe.tensors["rope.frequencies"].data())

    named = {"scaling.type": "linear", "scaling.factor": 3.0}
    assert frequencies("a.gguf", **changes) == frequencies("b.gguf", **named)
    assert frequencies("a.gguf", **changes) != frequencies("c.gguf")
