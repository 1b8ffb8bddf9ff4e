"""Medians, ratios, tables and divergences."""

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks.answers import first_difference, parting
from benchmarks.corpus import windows
from benchmarks.crowded import compared
from benchmarks.crowded import table as crowded_table
from benchmarks.divergence import Divergence, Floats, log_softmax
from benchmarks.report import grids, markdown
from benchmarks.results import Measured, Results, advantage, goal, read_results, rows
from benchmarks.spread import Spread, number, paired_ratio, spread, text
from benchmarks.startup import FIRST, LAUNCH, TOTAL, collected, divided
from benchmarks.startup import table as startup_table

FACTS = {
    "date": "2025-01-01 00:00",
    "command": "python -m benchmarks",
    "threads": 2,
    "repeats": 3,
    "busy_after": 0.01,
    "machine": {
        "processor": "A processor",
        "processors": 2,
        "instructions": "avx2",
        "memory_gb": 8.0,
        "kernel": "6",
        "helios": "abc",
        "busy": 0.02,
    },
    "ceilings": {"threads": 2, "read_bytes": 20e9, "f32_flops": 180e9, "i8_macs": 200e9},
    "model_work": {"prompt_macs": 100_000_000, "token_bytes": 100_000_000},
}

RESULTS = Results(
    FACTS,
    {
        "pp512": Measured("prefill", "tokens/s", True),
        "start": Measured("start", "s", False),
        "http.8": Measured("eight streams", "tokens/s", True),
    },
    {
        "pp512": {
            "helios": [1000.0, 1200.0, 500.0],
            "helios-a8": [2000.0, 2000.0, 2000.0],
            "llama.cpp": [200.0, 200.0, 100.0],
            "openvino": [500.0, 400.0, 250.0],
        },
        "start": {"helios": [0.5], "llama.cpp": [1.0]},
    },
)


def test_spread_is_the_median_and_the_range() -> None:
    found = spread([3.0, 1.0, 2.0, 10.0])
    assert (found.median, found.low, found.high, found.count) == (2.5, 1.0, 10.0, 4)


def test_a_ratio_is_taken_within_each_repeat() -> None:
    # The machine ran at half speed in the second repeat; the ratio does not show it.
    found = paired_ratio([10.0, 5.0, 12.0], [2.0, 1.0, 2.0])
    assert (found.median, found.low, found.high) == (5.0, 5.0, 6.0)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (0.1234, "0.123"), (1.234, "1.23"), (12.34, "12.3"), (1234.5, "1,234")],
)
def test_numbers_have_three_digits(value: float, shown: str) -> None:
    assert number(value) == shown


def test_one_value_has_no_range() -> None:
    assert text(spread([2.0])) == "2.00"
    assert text(spread([1.0, 2.0, 4.0])) == "2.00 (1.00 to 4.00)"


def test_rows_compare_with_the_base_and_the_best_other_peer() -> None:
    first, second = rows(RESULTS)
    assert first.to_base is not None
    assert first.to_best is not None
    assert (first.to_base.median, first.to_base.low, first.to_base.high) == (5.0, 5.0, 6.0)
    assert (first.best, first.to_best.median) == ("openvino", 2.0)
    assert second.to_base is not None
    assert second.to_base.median == 2.0  # half the time is twice as good
    assert advantage(second, "helios") == 2.0
    assert advantage(first, "nobody") is None


def test_a_workload_that_was_not_measured_is_left_out() -> None:
    assert [row.name for row in rows(RESULTS)] == ["pp512", "start"]


def test_results_come_back_from_their_file(tmp_path: Path) -> None:
    RESULTS.write(tmp_path / "r.json")
    again = read_results(tmp_path / "r.json")
    assert again.facts == FACTS
    assert again.workloads == RESULTS.workloads
    assert [r.peers for r in rows(again)] == [r.peers for r in rows(RESULTS)]


def test_the_report_states_medians_goals_and_shares() -> None:
    shown = markdown(RESULTS)
    assert "| prefill, tokens/s | 1,000 (500 to 1,200) |" in shown
    assert "| prefill | 5.00 (5.00 to 6.00) | 5.00 met | 2.00 (2.00 to 3.00) openvino |" in shown
    assert "| prefill | helios | byte products | 50% |" in shown
    assert "the machine was quiet" in shown
    assert all(len(line) == len(grid.head) for grid in grids(RESULTS) for line in grid.lines)


def test_contenders_held_to_fewer_instructions_are_said_to_be() -> None:
    held = Results({**FACTS, "isa": "avx2"}, RESULTS.workloads, RESULTS.values)
    assert ", all held to avx2)" in markdown(held)
    assert "all held" not in markdown(RESULTS)


def test_a_busy_machine_is_said_to_be_busy() -> None:
    busy = Results({**FACTS, "busy_after": 0.6}, RESULTS.workloads, RESULTS.values)
    assert "NOT quiet: other work took 60%" in markdown(busy)


def test_goals_are_known_by_workload() -> None:
    found = goal("http.16")
    assert found is not None
    assert (found.to_base, found.to_best) == (6.0, 2.5)
    assert goal("resident.end") is None


def test_log_softmax_of_huge_logits() -> None:
    logits = np.array([[1e4, 1e4 - 1, -1e4]], dtype=np.float32)
    found = np.exp(log_softmax(logits))
    assert found.sum() == pytest.approx(1)
    assert found[0, 1] / found[0, 0] == pytest.approx(np.exp(-1))


def random_logits(seed: int, rows: int = 70) -> Floats:
    return np.random.default_rng(seed).normal(0, 3, (rows, 11)).astype(np.float32)


def test_divergence_is_that_of_its_definition() -> None:
    reference, other = random_logits(1), random_logits(2)
    following = [i % 11 for i in range(69)]
    divergence = Divergence()
    divergence.add(reference, other, following)
    found = divergence.summary()
    p = np.exp(reference.astype(float))
    p /= p.sum(axis=1, keepdims=True)
    q = np.exp(other.astype(float))
    q /= q.sum(axis=1, keepdims=True)
    kl = (p * np.log(p / q)).sum(axis=1)
    assert found.tokens == 70
    assert found.mean == pytest.approx(kl.mean())
    assert found.largest == pytest.approx(kl.max())
    assert found.top1 == pytest.approx((p.argmax(axis=1) == q.argmax(axis=1)).mean())
    surprise = -np.log(q[np.arange(69), following])
    assert found.perplexity == pytest.approx(np.exp(surprise.mean()), rel=1e-6)


def test_equal_distributions_do_not_diverge() -> None:
    logits = random_logits(3)
    divergence = Divergence()
    divergence.add(logits, logits + np.float32(1.0), [0] * 69)
    found = divergence.summary()
    assert found.mean == pytest.approx(0, abs=1e-6)
    assert found.top1 == 1


def test_windows_are_whole_and_enough() -> None:
    assert [list(w) for w in windows(range(10), 5, 3)] == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(SystemExit, match="10 tokens"):
        windows(range(10), 10, 4)


def test_answers_part_at_their_first_different_token() -> None:
    assert first_difference([1, 2, 3], [1, 2, 4]) == 2
    assert first_difference([1, 2], [1, 2, 3]) is None
    asked: list[list[int]] = []

    def reference(tokens: list[int]) -> Floats:
        asked.append(list(tokens))
        return np.arange(10, dtype=np.float32).reshape(1, 10)

    found = parting("?", [7, 8], [1, 2, 3], [1, 2, 5], reference)  # type: ignore[arg-type]
    assert asked == [[7, 8, 1, 2]]
    assert (found.equal_tokens, found.ours, found.theirs, found.gap) == (2, 3, 5, 2.0)
    same = parting("?", [7, 8], [1, 2], [1, 2, 3], reference)  # type: ignore[arg-type]
    assert (same.equal_tokens, same.gap) == (2, None)


def test_a_start_is_divided_into_its_phases_and_what_lies_around_them() -> None:
    starts = [
        divided({"plan": 0.25, "weights": 0.5}, ready=1.0, total=1.5),
        divided({"plan": 0.5, "weights": 0.5}, ready=1.25, total=1.5),
        divided({"plan": 0.75, "weights": 0.5}, ready=1.5, total=2.0),
    ]
    assert starts[0] == {LAUNCH: 0.25, "plan": 0.25, "weights": 0.5, FIRST: 0.5, TOTAL: 1.5}
    found = collected(starts)
    assert found["plan"] == Spread(500.0, 250.0, 750.0, 3)
    shown = Console(width=100, file=io.StringIO())
    shown.print(startup_table(found))
    assert isinstance(shown.file, io.StringIO)
    row = next(line for line in shown.file.getvalue().splitlines() if "plan" in line)
    assert [word for word in row.split() if word[0].isdigit()] == ["500", "250", "750", "33%"]


def test_what_neighbours_leave_is_taken_repeat_by_repeat() -> None:
    found = compared([{"decode": 100.0}, {"decode": 10.0}], [{"decode": 50.0}, {"decode": 4.0}])
    kept = found["decode"]["kept"]
    assert (kept.low, kept.high, kept.count) == (0.4, 0.5, 2)
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(crowded_table(found))
    assert "0.450 (0.400 to 0.500)" in console.export_text()
