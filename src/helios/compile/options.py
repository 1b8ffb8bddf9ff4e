"""What a user may ask of the compiler beyond the limits."""

from collections.abc import Mapping
from dataclasses import field

from helios.compile.canonical import frozen
from helios.errors import ConfigurationError
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Everything here is part of a plan and of its id.

    `approximate` allows transcoding materializers, by name or shell pattern, up to a relative L2
    error per tensor. `retained` are patterns of values to keep to the end of the step. `copied`
    says that the core holds stored weights in private memory instead of a mapped file.
    """

    approximate: Mapping[str, float] = field(default_factory=dict, hash=False)
    retained: tuple[str, ...] = ()
    frames: int = 2
    copied: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "approximate", frozen(self.approximate))
        object.__setattr__(self, "retained", tuple(sorted(set(self.retained))))
        if self.frames < 1:
            raise ConfigurationError("must be positive", field="frames", value=self.frames)


def parse_approximation(text: str) -> tuple[str, float]:
    """`NAME=BOUND` of `--materialize`; raises `ConfigurationError` for anything else."""
    name, _, bound = text.partition("=")
    try:
        limit = float(bound)
    except ValueError:
        limit = -1.0
    if not name or not 0 < limit < 1:
        raise ConfigurationError(
            "names no materializer with an error bound",
            field="--materialize",
            value=text,
            remedy="write NAME=BOUND, such as 'cpu.bf16-w8=0.01'; the bound is the relative "
            "L2 error allowed per tensor, between 0 and 1",
        )
    return name, limit
