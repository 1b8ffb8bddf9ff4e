"""Every recipe gives the logits of transformers on tiny random checkpoints."""

import json
from pathlib import Path

import pytest
from tiny_checkpoints import VOCABULARY, save_checkpoint
from transformers import (
    Gemma2Config,
    Gemma3TextConfig,
    LlamaConfig,
    MistralConfig,
    PretrainedConfig,
    Qwen2Config,
    Qwen3Config,
)
from transformers_agreement import assert_agreement

from helios.ignition.options import PrepareOptions, resolve_geometry
from helios.ignition.preparation.programs import build_graphs
from helios.ignition.recipes.registry import recipe_for
from helios.ignition.sources.open import open_source

BASE: dict[str, object] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "intermediate_size": 80,
    "max_position_embeddings": 128,
    "tie_word_embeddings": False,
}
GEMMA = {**BASE, "num_hidden_layers": 7, "head_dim": 16, "query_pre_attn_scalar": 24}
GEMMA["tie_word_embeddings"] = True


def rope(kind: str, **settings: object) -> dict[str, object]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 5000.0, **settings}}


CASES: dict[str, PretrainedConfig] = {
    "llama": LlamaConfig(**BASE),
    "llama-tied": LlamaConfig(**{**BASE, "tie_word_embeddings": True}),
    "llama-bias": LlamaConfig(**BASE, attention_bias=True),
    "llama-wide-heads": LlamaConfig(**BASE, head_dim=16, rms_norm_eps=1e-2),
    "llama-linear": LlamaConfig(**BASE, **rope("linear", factor=3.0)),
    "llama-dynamic": LlamaConfig(**BASE, **rope("dynamic", factor=3.0)),
    "llama-3": LlamaConfig(
        **BASE,
        **rope(
            "llama3",
            factor=4.0,
            low_freq_factor=1.0,
            high_freq_factor=4.0,
            original_max_position_embeddings=32,
        ),
    ),
    "llama-yarn": LlamaConfig(
        **BASE, **rope("yarn", factor=4.0, original_max_position_embeddings=32)
    ),
    "llama-yarn-mscale": LlamaConfig(
        **BASE,
        **rope(
            "yarn",
            factor=4.0,
            original_max_position_embeddings=32,
            mscale=1.0,
            mscale_all_dim=0.5,
            beta_fast=8.0,
            truncate=False,
        ),
    ),
    "mistral-window": MistralConfig(**BASE, sliding_window=11),
    "mistral": MistralConfig(**BASE, sliding_window=None),
    "qwen2": Qwen2Config(**BASE),
    "qwen2-window": Qwen2Config(
        **BASE, use_sliding_window=True, sliding_window=9, max_window_layers=1
    ),
    "qwen3": Qwen3Config(**BASE, head_dim=16),
    "gemma2": Gemma2Config(**GEMMA, sliding_window=9),
    "gemma3": Gemma3TextConfig(**GEMMA, sliding_window=9),
    "gemma3-scaled": Gemma3TextConfig(
        **GEMMA,
        sliding_window=9,
        final_logit_softcapping=20.0,
        rope_parameters={
            "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 5e3},
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_logits_agree_with_transformers(name: str, tmp_path: Path) -> None:
    model = save_checkpoint(tmp_path, CASES[name])
    assert_agreement(model, open_source(tmp_path))


def rewrite(folder: Path, remove: tuple[str, ...], **changes: object) -> None:
    """Change a saved configuration into the spelling of older checkpoints."""
    content = json.loads((folder / "config.json").read_text())
    kept = {key: value for key, value in content.items() if key not in remove}
    (folder / "config.json").write_text(json.dumps({**kept, **changes}))


OLD_SPELLINGS: dict[str, tuple[str, tuple[str, ...], dict[str, object]]] = {
    "llama-linear": (
        "llama-linear",
        ("rope_parameters", "num_key_value_heads"),
        {
            "rope_theta": 5000.0,
            "rope_scaling": {"type": "linear", "factor": 3.0},
            "num_key_value_heads": 2,
        },
    ),
    "llama": ("llama", ("rope_parameters", "tie_word_embeddings"), {"rope_theta": 10000.0}),
    "qwen2-window": ("qwen2-window", ("layer_types",), {}),
    "gemma2": ("gemma2", ("layer_types", "rope_parameters"), {"rope_theta": 10000.0}),
    "gemma3": (
        "gemma3",
        ("layer_types", "rope_parameters"),
        {"rope_theta": 1e6, "rope_local_base_freq": 1e4, "sliding_window_pattern": 6},
    ),
    "gemma3-scaled": (
        "gemma3-scaled",
        ("rope_parameters",),
        {
            "rope_theta": 1e6,
            "rope_local_base_freq": 5e3,
            "rope_scaling": {"rope_type": "linear", "factor": 8.0},
        },
    ),
}


@pytest.mark.parametrize("name", OLD_SPELLINGS)
def test_older_spellings_of_a_configuration_mean_the_same(name: str, tmp_path: Path) -> None:
    case, removed, changes = OLD_SPELLINGS[name]
    save_checkpoint(tmp_path, CASES[case])
    new = recipe_for(open_source(tmp_path))
    rewrite(tmp_path, removed, **changes)
    old = recipe_for(open_source(tmp_path))
    assert old.facts == new.facts
    assert {n: bytes(t.data()) for n, t in old.tensors.items()} == {
        n: bytes(t.data()) for n, t in new.tensors.items()
    }
    geometry = resolve_geometry(PrepareOptions(), new.facts)
    assert [g.program for g in build_graphs(old, geometry)] == [
        g.program for g in build_graphs(new, geometry)
    ]
