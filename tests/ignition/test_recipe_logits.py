"""Every recipe gives the logits of transformers on tiny random checkpoints.

Two requests share each step, their prompts are cut into uneven chunks, and pages are dealt out
in no order, so that a mistake in positions, rows, windows or page arithmetic shows too.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from plain_host import Lane, PlainHost
from tiny_checkpoints import VOCABULARY, save_checkpoint
from transformers import (
    Gemma2Config,
    Gemma3TextConfig,
    LlamaConfig,
    MistralConfig,
    PretrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen3Config,
)

from helios.ignition.options import PrepareOptions, resolve_geometry
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

# Pages of two requests, in no order.
PAGES = ((7, 3, 11, 0, 9), (2, 8, 1, 10, 4))


def prompts() -> list[list[int]]:
    random = np.random.default_rng(11)
    return [random.integers(3, VOCABULARY, n).tolist() for n in (37, 22)]


def expected_logits(model: PreTrainedModel, tokens: Sequence[int]) -> np.ndarray:
    with torch.no_grad():
        return model(torch.tensor([tokens])).logits[0].numpy()


def assert_close(actual: np.ndarray, expected: np.ndarray) -> None:
    error = np.abs(actual - expected).max() / np.abs(expected).max()
    assert error < 1e-4, error


def plain_host(folder: Path) -> PlainHost:
    recipe = recipe_for(open_source(folder))
    options = PrepareOptions(
        context=80,
        page_tokens=16,
        concurrency=3,
        prefill_tokens=40,
        scored_tokens=40,
        cache_dtype="f32",
    )
    return PlainHost(recipe, resolve_geometry(options, recipe.facts), pages=12)


@pytest.mark.parametrize("name", CASES)
def test_logits_agree_with_transformers(name: str, tmp_path: Path) -> None:
    model = save_checkpoint(tmp_path, CASES[name])
    host = plain_host(tmp_path)
    host.run("initialize", [Lane(slot, admission={"TEMPERATURE": 0.0}) for slot in (2, 0)])
    first, second = prompts()
    host.run("prefill", [Lane(2, first[:17], pages=PAGES[0]), Lane(0, second[:3], pages=PAGES[1])])
    step = host.run(
        "prefill", [Lane(0, second[3:], sample=True), Lane(2, first[17:20], sample=False)]
    )
    assert_close(step["logits"], expected_logits(model, second)[-1:])
    second.append(int(step["token"][0]))
    # One lane decodes its pending token while the other still reads its prompt.
    step = host.run("mixed", [Lane(2, first[20:], sample=True), Lane(0, [-1], sample=True)])
    expected = [expected_logits(model, tokens)[-1] for tokens in (first, second)]
    assert_close(step["logits"], np.stack(expected))
    for tokens, token in zip((first, second), step["token"], strict=True):
        tokens.append(int(token))
    for _ in range(3):
        lanes = [Lane(2, length=1, sample=True), Lane(0, length=1, sample=True)]
        step = host.run("decode", lanes)
        expected = [expected_logits(model, tokens)[-1] for tokens in (first, second)]
        assert_close(step["logits"], np.stack(expected))
        for tokens, token in zip((first, second), step["token"], strict=True):
            tokens.append(int(token))
