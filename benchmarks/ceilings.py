"""The machine's limits, and how much of them a measured rate is.

For a transformer with matrices of P weights in N stored bytes, a prompt token takes at least P
multiply-accumulates and a generated token at least N bytes read, whoever computes it.
"""

import json
import subprocess
from dataclasses import dataclass
from math import prod
from pathlib import Path

from benchmarks.install import compiled


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Rates per second of all threads together; `i8_macs` is the fastest way this machine has."""

    threads: int
    read_bytes: float
    f32_flops: float
    i8_macs: float


def ceilings(threads: int) -> Ceilings:
    """Measure this machine; takes some seconds of every thread."""
    program = compiled("ceilings.c", ["-pthread"])
    done = subprocess.run([program, str(threads)], check=True, capture_output=True)
    return parse(json.loads(done.stdout))


def parse(found: dict[str, float]) -> Ceilings:
    """The probe's output; a machine without byte products has the float32 rate instead."""
    bytewise = [rate for name, rate in found.items() if name.startswith("i8_macs")]
    macs = max(bytewise, default=found["f32_flops"] / 2)
    return Ceilings(int(found["threads"]), found["read_bytes"], found["f32_flops"], macs)


@dataclass(frozen=True, slots=True)
class ModelWork:
    """What one token takes. Only a row that is sampled needs the output matrix."""

    prompt_macs: int
    token_bytes: int

    def prefill_share(self, rate: float, limits: Ceilings) -> float:
        """The share of the byte product ceiling that a prefill rate in tokens/s uses."""
        return rate * self.prompt_macs / limits.i8_macs

    def decode_share(self, rate: float, limits: Ceilings) -> float:
        """The share of the memory bandwidth that a decode rate in tokens/s uses."""
        return rate * self.token_bytes / limits.read_bytes


def model_work(path: Path) -> ModelWork:
    """The work per token of a GGUF file; a tied embedding serves as the output matrix."""
    from gguf import GGUFReader

    matrices = {
        t.name: (prod(int(n) for n in t.shape), int(t.n_bytes))
        for t in GGUFReader(path).tensors
        if len(t.shape) == 2
    }
    layers = [v for name, v in matrices.items() if name.startswith("blk.")]
    output = matrices.get("output.weight") or matrices["token_embd.weight"]
    return ModelWork(sum(n for n, _ in layers), sum(b for _, b in layers) + output[1])
