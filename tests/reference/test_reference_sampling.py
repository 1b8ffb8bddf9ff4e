"""Sampling of the reference runtime: known answers, definitions, and distributions."""

import numpy as np
import pytest
import torch
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from helios.runtime.reference import sampling


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [  # the known-answer vectors that Random123 publishes for philox4x32-10
        (0, 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (2**128 - 1, 2**64 - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            0x0370734413198A2E85A308D3243F6A88,
            0x299F31D0A4093822,
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_known_answers(counter: int, key: int, expected: tuple[int, ...]) -> None:
    assert sampling.philox(key, counter) == expected


def draw(logits: np.ndarray, seeds: range, **settings: float) -> np.ndarray:
    count = len(seeds)
    column = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0} | settings
    return sampling.sample(
        np.broadcast_to(logits, (count, len(logits))).astype(np.float32),
        np.full(count, column["temperature"], dtype=np.float32),
        np.full(count, column["top_k"], dtype=np.int32),
        np.full(count, column["top_p"], dtype=np.float32),
        np.full(count, column["min_p"], dtype=np.float32),
        np.array(seeds, dtype=np.uint64),
        np.zeros(count, dtype=np.int32),
    )


def test_greedy_takes_the_smallest_of_the_largest() -> None:
    assert draw(np.array([1.0, 3.0, 3.0, 2.0]), range(1), temperature=0).tolist() == [1]


@pytest.mark.parametrize(
    ("settings", "warper"),
    [
        ({"top_k": 5}, TopKLogitsWarper(5)),
        ({"top_p": 0.7}, TopPLogitsWarper(0.7)),
        ({"min_p": 0.1}, MinPLogitsWarper(0.1)),
    ],
)
def test_truncation_keeps_what_transformers_keeps(
    settings: dict[str, float], warper: object
) -> None:
    logits = np.random.default_rng(3).standard_normal(40).astype(np.float32) * 2
    kept = warper(None, torch.from_numpy(logits)[None])[0]  # type: ignore[operator]
    expected = set(torch.isfinite(kept).nonzero().flatten().tolist())
    drawn = draw(logits, range(4000), **settings)
    assert set(drawn.tolist()) == expected


def test_frequencies_follow_the_distribution() -> None:
    logits = np.array([0.0, 1.0, 2.0, -1.0, 0.5], dtype=np.float32)
    drawn = draw(logits, range(20000), temperature=1.3)
    expected = torch.softmax(torch.from_numpy(logits) / 1.3, -1).numpy() * 20000
    counts = np.bincount(drawn, minlength=5)
    chi_square = (((counts - expected) ** 2) / expected).sum()
    assert chi_square < 18.47  # 99.9% point of chi-square with 4 degrees of freedom


def test_a_seed_reproduces_and_seeds_differ() -> None:
    logits = np.zeros(1000)
    first = draw(logits, range(64))
    assert np.array_equal(first, draw(logits, range(64)))
    assert len(set(first.tolist())) > 50


def process(
    logits: np.ndarray, prompt: list[int], output: list[int], **settings: object
) -> np.ndarray:
    vocabulary = len(logits)
    options = {"repetition": 1.0, "presence": 0.0, "frequency": 0.0, "minimum": 0, "bias": []}
    options |= settings
    bias: list[tuple[int, float]] = options["bias"]  # type: ignore[assignment]
    tokens = np.full((1, 4), -1, dtype=np.int32)
    values = np.zeros((1, 4), dtype=np.float32)
    for place, (token, value) in enumerate(bias):
        tokens[0, place], values[0, place] = token, value

    def column(name: str, dtype: type) -> np.ndarray:
        return np.array([options[name]], dtype=dtype)

    return sampling.process_logits(
        logits[None].astype(np.float32),
        np.array([1], dtype=np.int32),
        np.stack([np.zeros(vocabulary), np.bincount(prompt, minlength=vocabulary)]).astype(
            np.int32
        ),
        np.stack([np.zeros(vocabulary), np.bincount(output, minlength=vocabulary)]).astype(
            np.int32
        ),
        column("repetition", np.float32),
        column("presence", np.float32),
        column("frequency", np.float32),
        tokens,
        values,
        column("minimum", np.int32),
        np.array([len(output)], dtype=np.int32),
        np.array([[7, -1]], dtype=np.int32),
    )[0]


def test_repetition_penalty_is_that_of_transformers() -> None:
    logits = np.random.default_rng(5).standard_normal(12).astype(np.float32)
    seen = torch.tensor([[1, 4, 4, 9]])
    expected = RepetitionPenaltyLogitsProcessor(1.7)(seen, torch.from_numpy(logits)[None])[0]
    actual = process(logits, [1, 4], [4, 9], repetition=1.7)
    assert np.allclose(actual, expected.numpy(), rtol=1e-6)


def test_presence_and_frequency_count_the_output_alone() -> None:
    actual = process(np.zeros(10), [2, 2, 3], [3, 5, 5], presence=0.5, frequency=0.25)
    expected = np.zeros(10)
    expected[3], expected[5] = -0.75, -1.0
    assert np.allclose(actual, expected)


def test_bias_is_added_and_minimum_output_removes_eos() -> None:
    actual = process(np.zeros(10), [], [1], bias=[(4, 2.5), (6, -100.0)], minimum=2)
    assert actual[4] == 2.5
    assert actual[6] == -100
    assert actual[7] == -np.inf
    assert process(np.zeros(10), [], [1, 1], minimum=2)[7] == 0


def test_mask_applies_to_active_rows_only() -> None:
    mask = np.array([[0b1010, 0], [0, 1]], dtype=np.uint32)
    logits = np.zeros((2, 40), dtype=np.float32)
    masked = sampling.mask_logits(
        logits, np.array([1, 0]), mask, np.array([0, 1], dtype=np.int32), words=2
    )
    assert np.flatnonzero(np.isfinite(masked[0])).tolist() == [32]
    assert np.isfinite(masked[1]).all()


def test_log_probabilities_are_log_softmax() -> None:
    logits = np.random.default_rng(2).standard_normal((3, 50)).astype(np.float32) * 5
    expected = torch.log_softmax(torch.from_numpy(logits), -1).numpy()
    values = sampling.log_probability(logits, np.array([4, -1, 49], dtype=np.int32))
    assert np.allclose(values, [expected[0, 4], 0, expected[2, 49]], atol=1e-5)
    ids, tops = sampling.top_log_probabilities(logits, np.array([2, 0, 5]), maximum=4)
    best = np.argsort(-expected, kind="stable")
    assert ids.tolist() == [[*best[0, :2], -1, -1], [-1] * 4, best[2, :4].tolist()]
    assert np.allclose(tops[2], expected[2, best[2, :4]], atol=1e-5)
    assert np.isneginf(tops[1]).all()
