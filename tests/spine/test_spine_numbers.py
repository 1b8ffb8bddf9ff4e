"""SmolLM2 on the reference runtime gives the numbers of transformers, however it is driven."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, PreTrainedModel

from helios.contract.operation import Operation
from helios.contract.submission import Lane, LaneAdmission, Sampling
from helios.core.reader import Core, authenticate, authorize
from helios.core.trust import TrustStore, local_publisher
from helios.ignition.export import prepare
from helios.ignition.options import PrepareOptions
from tests.spine.driver import GREEDY, Driver, with_snapshot

PASSAGE = """The lighthouse keeper wrote down the weather every evening, as his mother had done
before him. On calm days there was little to say: wind from the west, visibility good, two fishing
boats, one freighter bound for the north. On other days he filled a page. The storm of the third
of November took the railing of the gallery and a good part of the roof of the boat shed, and for
nine hours nobody could have crossed the yard. He noted the pressure, which he read from a brass
instrument older than the tower, and the height of the waves, which he guessed. Years later a
student of oceanography found the books in the attic of the museum and typed all of it into a
table. The guesses, she found, were better than the readings of the buoy that had replaced him. """

PROMPTS = [
    "The capital of France is",
    "<|im_start|>user\nWhat is gravity?<|im_end|>\n<|im_start|>assistant\n",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    PASSAGE,
    PASSAGE * 2 + PASSAGE[:600],
]
NEW_TOKENS = 64


@pytest.fixture(scope="module")
def prompts(smollm2_core: Core) -> list[list[int]]:
    tokenizer = Tokenizer.from_str(smollm2_core.resource("tokenizer").decode())
    encoded = [tokenizer.encode(text, add_special_tokens=False).ids for text in PROMPTS]
    assert len(encoded[0]) == 5
    assert 480 <= len(encoded[-1]) <= 520
    return encoded


@pytest.fixture(scope="module")
def oracle(smollm2_gguf: Path) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(
        smollm2_gguf.parent, gguf_file=smollm2_gguf.name, dtype=torch.float32
    ).eval()


@pytest.fixture(scope="module")
def exact_core(
    smollm2_gguf: Path, smollm2_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Core]:
    """SmolLM2 with its history in float32, as the oracle keeps it."""
    namespace, key = local_publisher(smollm2_home)
    path = tmp_path_factory.mktemp("exact") / "smollm2.core"
    options = PrepareOptions(cache_dtype="f32")
    prepare(smollm2_gguf, path, options, key=key, namespace=namespace)
    with authorize(authenticate(path, TrustStore(smollm2_home)), namespace) as core:
        yield core


@pytest.fixture
def exact_driver(exact_core: Core) -> Iterator[Driver]:
    made = Driver(exact_core)
    with made.model:
        yield made


@pytest.fixture
def driver(smollm2_core: Core) -> Iterator[Driver]:
    made = Driver(smollm2_core)
    with made.model:
        yield made


def relative_error(actual: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the largest expected magnitude."""
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize(("cache", "tolerance"), [("f32", 1e-4), ("f16", 5e-3)])
def test_logits_and_greedy_text_are_those_of_transformers(
    cache: str,
    tolerance: float,
    request: pytest.FixtureRequest,
    oracle: PreTrainedModel,
    prompts: list[list[int]],
) -> None:
    """A history in float32 leaves only rounding; one in float16 costs what that type costs."""
    driver = request.getfixturevalue("exact_driver" if cache == "f32" else "driver")
    rows = []
    for slot, prompt in enumerate(prompts):
        row = driver.admit(slot, prompt)
        driver.prefill(row, chunk=256)
        rows.append(row)
    prefill_logits = [logits[0] for logits in driver.logits if len(logits)]
    driver.logits.clear()
    driver.decode(rows, NEW_TOKENS - 1)
    decode_logits = [np.stack(steps) for steps in zip(*driver.logits, strict=True)]
    for row, first, later in zip(rows, prefill_logits, decode_logits, strict=True):
        ids = torch.tensor([row.prompt])
        with torch.no_grad():
            text = oracle.generate(
                ids, max_new_tokens=NEW_TOKENS, do_sample=False, eos_token_id=None, pad_token_id=0
            )
            expected = oracle(text[:, :-1]).logits[0, len(row.prompt) - 1 :].numpy()
        assert row.output == text[0, len(row.prompt) :].tolist()
        assert relative_error(first, expected[0]) < tolerance
        for actual, wanted in zip(later, expected[1:], strict=True):
            assert relative_error(actual, wanted) < tolerance


def run(driver: Driver, prompt: list[int], chunk: int, count: int) -> tuple[list[int], np.ndarray]:
    """Tokens, and the logits each was drawn from."""
    row = driver.admit(0, prompt)
    driver.prefill(row, chunk)
    driver.decode([row], count - 1)
    return row.output, np.concatenate([logits[:1] for logits in driver.logits if len(logits)])


@pytest.mark.parametrize("chunk", [16, 7])
def test_chunks_change_nothing(driver: Driver, prompts: list[list[int]], chunk: int) -> None:
    prompt = prompts[3]
    tokens, logits = run(driver, prompt, len(prompt), 4)
    driver.logits.clear()
    chunked_tokens, chunked_logits = run(driver, prompt, chunk, 4)
    assert chunked_tokens == tokens
    assert relative_error(chunked_logits, logits) < 1e-5


def test_company_changes_nothing(driver: Driver, prompts: list[list[int]]) -> None:
    prompt = prompts[1]
    tokens, logits = run(driver, prompt, 64, 8)
    driver.logits.clear()
    others = [driver.admit(slot, prompts[3][slot:60:]) for slot in range(1, 8)]
    row = driver.admit(0, prompt)
    for other in others:
        driver.prefill(other, 32)
    driver.logits.clear()
    # The request's prompt joins the others' decoding, last chunk of all in a mixed step.
    while row.consumed < len(prompt):
        lanes = [*(driver.decode_lane(o) for o in others), driver.prompt_lane(row, 16)]
        driver.take(Operation.MIXED, lanes, [*others, row])
    first = driver.logits[-1][-1]
    driver.logits.clear()
    driver.decode([*others, row], 7)
    together = np.stack([first, *(step[-1] for step in driver.logits)])
    assert row.output == tokens
    assert relative_error(together, logits) < 1e-5


def test_a_snapshot_restores_exactly(driver: Driver, prompts: list[list[int]]) -> None:
    """Save a partial page, continue elsewhere from it and from the shared full pages."""
    prompt = prompts[3][:75]
    row = driver.admit(0, prompt)
    driver.take(Operation.PREFILL, [with_snapshot(driver.prompt_lane(row, len(prompt)), 2)], [row])
    driver.decode([row], 5)
    page_tokens = driver.contract.cache.page_tokens
    full = len(prompt) // page_tokens
    shared = tuple(driver.model._storage.persistent["page_table"][0, :full].tolist())
    twin = driver.admit(1, prompt)
    private = driver._free_pages.pop()
    entries = (*enumerate(shared), (full, private))
    restored = Lane(1, twin.generation, len(prompt), new_pages=entries, restore_source=2)
    driver.step(Operation.RESTORE, [restored])
    resumed = LaneAdmission(GREEDY, prompt, output=row.output[:1], pending_token=row.output[0])
    lane = Lane(1, twin.generation, len(prompt), admission=resumed)
    driver.step(Operation.RESUME, [lane])
    twin.consumed, twin.pages = len(prompt), full + 1
    driver.decode([twin], 5)
    assert twin.output == row.output[1:]
    assert twin.logprobs == row.logprobs[1:]


def test_a_seed_reproduces_and_penalties_count(driver: Driver, prompts: list[list[int]]) -> None:
    prompt = prompts[0]

    def sampled(slot: int, **settings: float) -> list[int]:
        row = driver.admit(slot, prompt, Sampling(**settings))  # type: ignore[arg-type]
        driver.prefill(row, 64)
        driver.decode([row], 11)
        return row.output

    assert sampled(0, seed=7) == sampled(3, seed=7)
    assert sampled(1, seed=7) != sampled(1, seed=8)
    repetitive = sampled(2, temperature=0.0, logit_bias=((260, 100.0),))
    assert repetitive == [260] * 12
    varied = sampled(2, temperature=0.0, logit_bias=((260, 100.0),), frequency_penalty=1000.0)
    assert varied.count(260) == 1


def test_scored_prefill_gives_each_prompt_token_its_log_probability(
    driver: Driver, oracle: PreTrainedModel, prompts: list[list[int]]
) -> None:
    prompt = prompts[1]
    row = driver.admit(0, prompt)
    lane = driver.prompt_lane(row, len(prompt))
    targets = (*prompt[1:], -1)
    scored = Lane(
        lane.slot, lane.generation, 0, len(prompt), lane.tokens, True, lane.new_pages,
        targets=targets,
    )  # fmt: skip
    record = driver.take(Operation.SCORED_PREFILL, [scored], [row]).lanes[0]
    with torch.no_grad():
        expected = torch.log_softmax(oracle(torch.tensor([prompt])).logits[0], -1)
    wanted = expected[torch.arange(len(prompt) - 1), torch.tensor(prompt[1:])]
    assert np.allclose(record.scores[:-1], wanted.numpy(), atol=5e-3)
    assert record.scores[-1] == 0
    best = expected.topk(5)
    assert [[t for t, _ in tops] for tops in record.score_tops] == best.indices.tolist()
