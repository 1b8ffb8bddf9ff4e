"""Does a recipe's computation agree with a model of transformers?"""

from collections.abc import Sequence

import numpy as np
import torch
from plain_host import Lane, PlainHost
from tiny_checkpoints import VOCABULARY
from transformers import PreTrainedModel

from helios.ignition.options import PrepareOptions, resolve_geometry
from helios.ignition.recipes.registry import recipe_for
from helios.ignition.sources.source import Source

# Pages of two requests, in no order.
PAGES = ((7, 3, 11, 0, 9), (2, 8, 1, 10, 4))


def assert_agreement(model: PreTrainedModel, source: Source) -> None:
    """Two requests share each step, their prompts are cut into uneven chunks, and pages are dealt
    out in no order, so that a mistake in positions, rows, windows or page arithmetic shows too."""
    host = plain_host(source)
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


def prompts() -> list[list[int]]:
    random = np.random.default_rng(11)
    return [random.integers(3, VOCABULARY, n).tolist() for n in (37, 22)]


def expected_logits(model: PreTrainedModel, tokens: Sequence[int]) -> np.ndarray:
    with torch.no_grad():
        return model(torch.tensor([tokens])).logits[0].numpy()


def assert_close(actual: np.ndarray, expected: np.ndarray) -> None:
    error = np.abs(actual - expected).max() / np.abs(expected).max()
    assert error < 1e-4, error


def plain_host(source: Source) -> PlainHost:
    recipe = recipe_for(source)
    options = PrepareOptions(
        context=80,
        page_tokens=16,
        concurrency=3,
        prefill_tokens=40,
        scored_tokens=40,
        cache_dtype="f32",
    )
    return PlainHost(recipe, resolve_geometry(options, recipe.facts), pages=12)
