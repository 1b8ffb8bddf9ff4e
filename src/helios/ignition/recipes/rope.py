"""Rotary frequencies and magnitude for every published scaling.

Scalings: linear interpolation (arXiv:2306.15595), YaRN (arXiv:2309.00071) and the piecewise one
of Llama 3.1. Each is a choice of per-pair frequencies and a magnitude of cosine and sine.
"""

import math

import numpy as np
import numpy.typing as npt

from helios.errors import SourceError
from helios.records import dataclass

Frequencies = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LinearScaling:
    """Positions are divided by `factor`."""

    factor: float


@dataclass(frozen=True, slots=True)
class Llama3Scaling:
    """Long wavelengths are stretched by `factor`, short ones kept, with a ramp between."""

    factor: float
    low_factor: float
    high_factor: float
    original_context: int


@dataclass(frozen=True, slots=True)
class YarnScaling:
    """Interpolation by parts; `magnitude` None is the paper's 0.1 ln(factor) + 1."""

    factor: float
    original_context: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    magnitude: float | None = None
    truncate: bool = True


Scaling = LinearScaling | Llama3Scaling | YarnScaling | None


def rope_frequencies(base: float, dims: int, scaling: Scaling) -> tuple[Frequencies, float]:
    """Frequencies [dims / 2] and the magnitude of cosine and sine; refuses a base up to 1."""
    if base <= 1:
        raise SourceError(
            "the rotary base must be above 1",
            field="rotary base",
            value=base,
            remedy="use a checkpoint whose configuration is intact",
        )
    plain: Frequencies = base ** (-np.arange(0, dims, 2, dtype=np.float64) / dims)
    match scaling:
        case None:
            return plain, 1.0
        case LinearScaling(factor):
            return plain / factor, 1.0
        case Llama3Scaling():
            return _llama3(plain, scaling), 1.0
        case YarnScaling():
            magnitude = scaling.magnitude
            if magnitude is None:
                magnitude = 0.1 * math.log(scaling.factor) + 1.0 if scaling.factor > 1 else 1.0
            return _yarn(plain, base, dims, scaling), magnitude


def _llama3(plain: Frequencies, scaling: Llama3Scaling) -> Frequencies:
    wavelengths = 2 * math.pi / plain
    turns = scaling.original_context / wavelengths
    span = scaling.high_factor - scaling.low_factor
    # 1 keeps a frequency, 0 divides it by the factor.
    keep = np.clip((turns - scaling.low_factor) / span, 0.0, 1.0)
    return plain * keep + plain / scaling.factor * (1 - keep)


def _yarn(plain: Frequencies, base: float, dims: int, scaling: YarnScaling) -> Frequencies:
    def pair_of(turns: float) -> float:
        """The (fractional) pair that turns so often over the original context."""
        wavelength = scaling.original_context / (turns * 2 * math.pi)
        return dims * math.log(wavelength) / (2 * math.log(base))

    low, high = pair_of(scaling.beta_fast), pair_of(scaling.beta_slow)
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dims - 1)
    if low == high:
        high += 0.001  # the ramp must not be vertical
    ramp = np.clip((np.arange(dims // 2) - low) / (high - low), 0.0, 1.0)
    scaled: Frequencies = plain * (1 - ramp) + plain / scaling.factor * ramp
    return scaled
