"""Which instructions everything that is compared may use: what the processor has, or fewer.

Held to AVX2, a processor with AVX-512 stands in for those without: all contenders lose the same.
OpenVINO is left out: held to AVX2 by oneDNN's setting, it finds no way to multiply 4-bit weights.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Instructions:
    """A set of instructions, and how compilers and the contenders are held to it.

    Helios chooses when it starts, by `HELIOS_ISA`; `compiler` and `llama_cpp` are for what is
    built, whose folders `suffix` tells apart. Peers `left_out` can't be held.
    """

    suffix: str
    compiler: Sequence[str] = ("-march=native",)
    llama_cpp: Sequence[str] = ("-DGGML_NATIVE=ON",)
    left_out: Sequence[str] = ()


NATIVE = "native"
_AVX2 = Instructions(
    suffix="-avx2",
    compiler=("-march=x86-64-v3",),
    llama_cpp=("-DGGML_NATIVE=OFF",),  # without it, AVX2 is what its build enables
    left_out=("openvino",),
)
INSTRUCTIONS: Mapping[str, Instructions] = {NATIVE: Instructions(suffix=""), "avx2": _AVX2}


def hold(name: str) -> None:
    """Hold this process and all that it starts to instructions by name."""
    if name != NATIVE:
        os.environ["HELIOS_ISA"] = name


def held_name() -> str:
    """The name of what this process was held to, here or by what started it."""
    name = os.environ.get("HELIOS_ISA", NATIVE)
    return name if name in INSTRUCTIONS else NATIVE


def held() -> Instructions:
    """What this process was held to."""
    return INSTRUCTIONS[held_name()]


def limitation(facts: Mapping[str, Any]) -> str:
    """What is to be said of a run whose contenders had fewer instructions than the processor."""
    isa = facts.get("isa", NATIVE)
    return "" if isa == NATIVE else f", all held to {isa}"
