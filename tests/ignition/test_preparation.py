"""The life of a request through prepared programs: admission, scores, snapshots, resumption."""

from pathlib import Path

import numpy as np
import pytest
import torch
from plain_host import Lane, PlainHost
from tiny_checkpoints import VOCABULARY, save_checkpoint
from transformers import LlamaConfig, PreTrainedModel

from helios.ignition.options import PrepareOptions, resolve_geometry
from helios.ignition.recipes.registry import recipe_for
from helios.ignition.sources.open import open_source

CONFIG = LlamaConfig(
    vocab_size=VOCABULARY,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=48,
    max_position_embeddings=96,
)
PROMPT = [5, 17, 90, 33, 8, 71, 64, 12, 55, 41, 27, 3, 19, 88, 76, 60, 9, 44, 31, 23]
GREEDY = {"TEMPERATURE": 0.0}
PAGES = [4, 1, 6]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PreTrainedModel]:
    folder = tmp_path_factory.mktemp("model")
    return folder, save_checkpoint(folder, CONFIG)


@pytest.fixture
def host(model: tuple[Path, PreTrainedModel]) -> PlainHost:
    recipe = recipe_for(open_source(model[0]))
    options = PrepareOptions(
        context=90,
        page_tokens=8,
        concurrency=2,
        prefill_tokens=32,
        scored_tokens=32,
        cache_dtype="f32",
    )
    return PlainHost(recipe, resolve_geometry(options, recipe.facts), pages=12)


def state(host: PlainHost, name: str, slot: int) -> np.ndarray:
    return host.machine.buffers[name][slot]


def begin(host: PlainHost, slot: int = 0, **admission: object) -> dict[str, np.ndarray]:
    """Admit a request and prefill its prompt; returns the values of the prefill."""
    host.run(
        "initialize", [Lane(slot, admission={**GREEDY, "PROMPT_HISTOGRAM": PROMPT, **admission})]
    )
    return host.run("prefill", [Lane(slot, PROMPT, sample=True, pages=PAGES)])


def decode(host: PlainHost, slot: int, steps: int, **lane: object) -> list[dict[str, np.ndarray]]:
    return [host.run("decode", [Lane(slot, length=1, sample=True, **lane)]) for _ in range(steps)]


def test_initialize_writes_every_state_row_of_its_slot_alone(host: PlainHost) -> None:
    begin(host, 0)
    decode(host, 0, 3)
    used = {name: rows[0].copy() for name, rows in host.machine.buffers.items()}
    host.run(
        "initialize",
        [Lane(1, admission={"SEED": 9, "EOS_TOKENS": (7,), "TOP_K": 4, "MIN_OUTPUT": 2})],
    )
    assert all(
        np.array_equal(host.machine.buffers[name][0], row)
        for name, row in used.items()
        if not name.startswith(("cache", "continuation"))
    )
    assert state(host, "seed", 1) == 9
    assert state(host, "eos", 1).tolist() == [7] + [-1] * 15
    assert state(host, "bias_tokens", 1).tolist() == [-1] * 256
    assert state(host, "pending", 1) == -1
    assert state(host, "output_histogram", 0).sum() == 4
    step = host.run("initialize", [Lane(0, admission=GREEDY)])
    assert state(host, "output_histogram", 0).sum() == 0
    assert state(host, "prompt_histogram", 0).sum() == 0
    assert state(host, "output_count", 0) == 0
    assert state(host, "endpoint", 0) == 0
    assert step["completion.slot"].tolist() == [0]
    assert step["completion.generation"].tolist() == [100]
    assert step["completion.endpoint"].tolist() == [0]


def test_a_step_counts_what_it_consumed_and_produced(host: PlainHost) -> None:
    first = begin(host)
    assert state(host, "endpoint", 0) == len(PROMPT)
    assert state(host, "pending", 0) == first["token"][0]
    steps = decode(host, 0, 4)
    assert [s["completion.endpoint"][0] for s in steps] == [len(PROMPT) + i for i in range(1, 5)]
    assert all(s["completion.accepted"].tolist() == [1] for s in steps)
    produced = [int(s["token"][0]) for s in [first, *steps]]
    expected = np.bincount(produced, minlength=VOCABULARY)
    assert np.array_equal(state(host, "output_histogram", 0), expected)
    assert np.array_equal(
        state(host, "prompt_histogram", 0), np.bincount(PROMPT, minlength=VOCABULARY)
    )
    assert state(host, "output_count", 0) == 5


def test_log_probabilities_are_of_the_raw_logits(host: PlainHost) -> None:
    biased = 42
    step = begin(host, TOP_LOGPROBS=3, LOGIT_BIAS_TOKENS=(biased,), LOGIT_BIAS_VALUES=(1e4,))
    likely = torch.log_softmax(torch.from_numpy(step["logits"][0]), -1).numpy()
    assert step["completion.tokens"].tolist() == [biased]
    assert step["completion.logprob"][0] == pytest.approx(likely[biased], abs=1e-5)
    best = np.argsort(-likely, kind="stable")[:3]
    assert step["completion.top_tokens"][0, :4].tolist() == [*best, -1]
    assert step["completion.top_logprobs"][0, :3] == pytest.approx(likely[best], abs=1e-5)


def test_penalties_see_prompt_and_output(host: PlainHost) -> None:
    plain = begin(host)["logits"][0]
    seen = np.isin(np.arange(VOCABULARY), PROMPT)
    step = begin(host, REPETITION_PENALTY=1e6)
    assert not seen[step["token"][0]]
    assert step["token"][0] == np.where(seen, -np.inf, plain).argmax()
    produced = {int(s["token"][0]) for s in [step, *decode(host, 0, 5)]}
    assert len(produced) == 6  # nothing comes twice
    step = begin(host, PRESENCE_PENALTY=1e6)
    assert step["token"][0] == plain.argmax()  # the prompt does not count
    produced = {int(s["token"][0]) for s in [step, *decode(host, 0, 5)]}
    assert len(produced) == 6


def test_end_tokens_wait_for_the_minimum_output(host: PlainHost) -> None:
    wanted = 11
    admission = {
        "LOGIT_BIAS_TOKENS": (wanted,),
        "LOGIT_BIAS_VALUES": (1e4,),
        "EOS_TOKENS": (2, wanted),
        "MIN_OUTPUT": 3,
    }
    steps = [begin(host, **admission), *decode(host, 0, 3)]
    assert [int(s["token"][0]) == wanted for s in steps] == [False, False, False, True]


def test_scores_are_those_of_transformers(
    host: PlainHost, model: tuple[Path, PreTrainedModel]
) -> None:
    host.run("initialize", [Lane(0, admission={**GREEDY, "TOP_LOGPROBS": 2})])
    targets = [*PROMPT[1:], -1]
    step = host.run("scored_prefill", [Lane(0, PROMPT, True, targets=targets, pages=PAGES)])
    with torch.no_grad():
        logits = model[1](torch.tensor([PROMPT])).logits[0]
    likely = torch.log_softmax(logits, -1).numpy()
    scores = step["completion.scores"]
    expected = likely[np.arange(len(PROMPT) - 1), PROMPT[1:]]
    assert scores[:-1] == pytest.approx(expected, abs=1e-4)
    assert scores[-1] == 0
    assert np.array_equal(
        step["completion.score_top_tokens"][:, :2], np.argsort(-likely, axis=1)[:, :2]
    )
    assert step["token"][0] == logits[-1].argmax()
    assert state(host, "endpoint", 0) == len(PROMPT)


def test_a_resumed_request_goes_on_as_if_it_had_never_stopped(host: PlainHost) -> None:
    produced = [int(begin(host)["token"][0])]
    produced += [int(s["token"][0]) for s in decode(host, 0, 3)]
    straight = decode(host, 0, 4)
    host.run(
        "resume",
        [
            Lane(
                1,
                admission={
                    **GREEDY,
                    "PROMPT_HISTOGRAM": PROMPT,
                    "OUTPUT_HISTOGRAM": produced,
                    "OUTPUT_COUNT": len(produced),
                    "PENDING_TOKEN": produced[-1],
                },
            )
        ],
    )
    consumed = [*PROMPT, *produced[:-1]]
    host.run("prefill", [Lane(1, consumed, pages=[7, 2, 9, 5])])
    assert state(host, "pending", 1) == produced[-1]
    resumed = decode(host, 1, 4)
    for one, other in zip(straight, resumed, strict=True):
        assert np.array_equal(one["token"], other["token"])
        assert np.allclose(one["logits"], other["logits"], atol=1e-4)
    for name in ("output_histogram", "prompt_histogram", "output_count", "endpoint", "pending"):
        assert np.array_equal(state(host, name, 0), state(host, name, 1)), name


def test_a_snapshot_restores_the_partial_page_into_another_request(host: PlainHost) -> None:
    host.run("initialize", [Lane(0, admission=GREEDY)])
    host.run("prefill", [Lane(0, PROMPT[:11], pages=PAGES, snapshot_destination=3)])
    straight = host.run("prefill", [Lane(0, PROMPT[11:], sample=True)])
    # The other request shares the complete page and owns the partial one.
    host.run("initialize", [Lane(1, admission=GREEDY)])
    step = host.run("restore", [Lane(1, endpoint=11, restore_source=3, pages=[PAGES[0], 8, 10])])
    assert step["completion.endpoint"].tolist() == [11]
    restored = host.run("prefill", [Lane(1, PROMPT[11:], sample=True)])
    assert np.allclose(straight["logits"], restored["logits"], atol=1e-5)
    assert np.array_equal(straight["token"], restored["token"])


def test_nothing_is_kept_on_a_page_border_or_without_a_destination(host: PlainHost) -> None:
    host.run("initialize", [Lane(0, admission=GREEDY)])
    host.run("prefill", [Lane(0, PROMPT[:8], pages=PAGES, snapshot_destination=2)])
    host.run("prefill", [Lane(0, PROMPT[8:11])])
    assert not any(
        rows.any() for name, rows in host.machine.buffers.items() if name.startswith("continuation")
    )
