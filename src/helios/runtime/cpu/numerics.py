"""Numerical profiles: how finely products see their input."""

from collections.abc import Mapping

from helios.errors import ConfigurationError
from helios.program.ir import Op
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class Numerics:
    """Bytes of a quantised activation: in products that the model calls coarse, and in the others.

    0 stands for activations in float32. With `bfloat16` attention multiplies in bfloat16, and
    keeps a cache of 16 bits in it, on processors that have such products; else in float32.
    """

    coarse: int
    fine: int
    bfloat16: bool = False

    @property
    def most(self) -> int:
        """The bytes of the finest form."""
        return max(self.coarse, self.fine)

    def planes(self, product: Op) -> int:
        """Bytes of the input of a `linear`, or of what a `tune_linear` tries."""
        return self.coarse if product.attributes["coarse"] else self.fine


PROFILES: Mapping[str, Numerics] = {
    "a8": Numerics(1, 1, bfloat16=True),
    "mixed": Numerics(1, 2, bfloat16=True),
    "a16": Numerics(2, 2),
    "f32": Numerics(0, 0),
}
"""By name, from the fastest to the most exact."""

DEFAULT_NUMERICS = "mixed"
"""The fastest that stays close enough to float32, by `python -m benchmarks.quality`."""


def profile(name: str) -> Numerics:
    """The profile of that name; `ConfigurationError` if there is none."""
    if name not in PROFILES:
        raise ConfigurationError(
            "no such numerical profile",
            field="--numerics",
            value=name,
            remedy=f"choose one of {', '.join(PROFILES)}",
        )
    return PROFILES[name]
