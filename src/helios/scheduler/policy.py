"""What an operator may decide about scheduling."""

from helios.errors import ConfigurationError
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class SchedulerPolicy:
    """Choices that change when things are computed, never what comes out.

    `max_active` bounds requests that hold a slot; 0 takes every slot. `step_tokens` is the
    latency target: a step that decodes packs no more tokens than that; 0 allows what the
    programs hold. `chunk_tokens` bounds what one request prefills in one step; 0 does not.
    `frames` bounds submissions in flight; 0 takes every frame. `turn_snapshots` spends an
    extra step, when nobody else is served, to keep a finished turn that ends inside a page.
    """

    max_active: int = 0
    step_tokens: int = 0
    chunk_tokens: int = 0
    frames: int = 0
    prefix_cache: bool = True
    turn_snapshots: bool = True

    def __post_init__(self) -> None:
        for field in ("max_active", "step_tokens", "chunk_tokens", "frames"):
            value = getattr(self, field)
            if value < 0:
                raise ConfigurationError(
                    "must not be negative",
                    field=field,
                    value=value,
                    remedy="use 0 for the default",
                )


def within(field: str, value: int, most: int) -> int:
    """An explicit choice, honoured or refused; 0 takes the most. Raises `ConfigurationError`."""
    if value > most:
        raise ConfigurationError(
            "more than was prepared and loaded",
            field=field,
            value=value,
            remedy=f"use at most {most}",
        )
    return value or most
