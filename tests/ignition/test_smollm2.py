"""The real SmolLM2: its programs give transformers' logits."""

from pathlib import Path

import numpy as np
import pytest
import torch
from coarse_products import coarse_products
from plain_host import Lane, PlainHost

from helios.core.reader import Core
from helios.ignition.options import PrepareOptions, resolve_geometry
from helios.ignition.recipes.registry import recipe_for
from helios.ignition.sources.open import open_source


@pytest.fixture(scope="module")
def host(smollm2_gguf: Path) -> PlainHost:
    recipe = recipe_for(open_source(smollm2_gguf))
    options = PrepareOptions(
        context=256,
        page_tokens=16,
        concurrency=2,
        prefill_tokens=64,
        scored_tokens=16,
        cache_dtype="f32",
    )
    return PlainHost(recipe, resolve_geometry(options, recipe.facts))


@pytest.fixture(scope="module")
def oracle(smollm2_gguf: Path) -> torch.nn.Module:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(
        smollm2_gguf.parent, gguf_file=smollm2_gguf.name, dtype=torch.float32
    ).eval()


def test_prefill_and_decode_give_the_logits_of_transformers(
    host: PlainHost, oracle: torch.nn.Module
) -> None:
    prompt = [1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28]
    host.run("initialize", [Lane(0, admission={"TEMPERATURE": 0.0})])
    first = host.run("prefill", [Lane(0, prompt[:9], pages=[5])])
    assert first["logits"].shape == (0, 49152)
    step = host.run("prefill", [Lane(0, prompt[9:], sample=True)])
    tokens = list(prompt)
    for _ in range(3):
        with torch.no_grad():
            expected = oracle(torch.tensor([tokens])).logits[0, -1].numpy()
        error = np.abs(step["logits"][0] - expected).max() / np.abs(expected).max()
        assert error < 1e-4, error
        assert step["token"][0] == expected.argmax()
        assert step["completion.endpoint"][0] == len(tokens)
        tokens.append(int(step["token"][0]))
        step = host.run("decode", [Lane(0, length=1, sample=True, pages=[5, 3])])


def test_coarse_products_are_those_that_were_measured(smollm2_core: Core) -> None:
    roles = ("attention.output", "feed_forward.gate", "feed_forward.up")
    want = {f"layers.{layer}.{role}" for layer in range(1, 28) for role in roles}
    want |= {f"layers.{layer}.feed_forward.down" for layer in range(7, 22)}
    assert coarse_products(smollm2_core) == want
