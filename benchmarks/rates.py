"""Rates without HTTP, interleaved: `llama-bench` beside the same tests on the native runtime."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import install
from benchmarks.places import HERE, model_path
from benchmarks.workloads import Report, Samples


@dataclass(frozen=True, slots=True)
class RateTest:
    """How many tokens each test takes."""

    prompts: Sequence[int]
    generate: int

    @property
    def names(self) -> list[str]:
        """Of the tests, as llama-bench calls them."""
        return [*(f"pp{n}" for n in self.prompts), f"tg{self.generate}"]


RATE_TEST = RateTest((512, 2000), 128)
QUICK_RATE_TEST = RateTest((64,), 8)

Measure = Callable[[RateTest, int], Mapping[str, float]]


def _native(numerics: str) -> Measure:
    def measure(test: RateTest, threads: int) -> Mapping[str, float]:
        command = [sys.executable, "-m", "benchmarks.native_rates", "--threads", str(threads)]
        command += ["--numerics", numerics, "--generate", str(test.generate), "--prompt"]
        rates: dict[str, float] = json.loads(_output([*command, *map(str, test.prompts)]))
        return rates

    return measure


def _llama_bench(kind: str) -> Measure:
    def measure(test: RateTest, threads: int) -> Mapping[str, float]:
        path = install.requantised(model_path(), kind) if kind else model_path()
        command = [str(install.llama_cpp() / "llama-bench"), "--model", str(path)]
        command += ["--n-prompt", ",".join(map(str, test.prompts)), "--n-gen", str(test.generate)]
        command += ["--threads", str(threads), "--repetitions", "1", "--output", "json"]
        return llama_rates(json.loads(_output(command)))

    return measure


def llama_rates(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, float]:
    """Tokens per second by test, from llama-bench's JSON."""
    return {
        f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}": float(row["avg_ts"])
        for row in rows
    }


CONTENDERS: Mapping[str, Measure] = {
    "helios": _native(""),
    "helios-a8": _native("a8"),
    "helios-a16": _native("a16"),
    "helios-f32": _native("f32"),
    "llama.cpp": _llama_bench(""),
    "llama.cpp-q4_0": _llama_bench("Q4_0"),
}


def run_rates(
    names: Sequence[str],
    test: RateTest,
    threads: int,
    repeats: int,
    samples: Samples,
    report: Report,
) -> None:
    """Measure every contender in turn, several times."""
    for repeat in range(repeats):
        for name in names:
            rates = CONTENDERS[name](test, threads)
            for label, rate in rates.items():
                samples.add(label, name, rate)
            shown = ", ".join(f"{label} {rate:.0f}" for label, rate in rates.items())
            report(f"{repeat + 1}/{repeats} {name}: {shown} tokens/s")


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent)
    if done.returncode:
        raise SystemExit(f"{Path(command[0]).name} failed:\n{done.stderr[-2000:]}")
    return done.stdout
