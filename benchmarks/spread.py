"""Medians with their spread, and ratios of values that were measured side by side."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some values and the range that they span."""

    median: float
    low: float
    high: float
    count: int


def spread(values: Sequence[float]) -> Spread:
    """The spread of at least one value."""
    return Spread(statistics.median(values), min(values), max(values), len(values))


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """The spread of ours over theirs, repeat by repeat.

    Values of one repeat were measured within a minute of each other, so that a slow minute of a
    shared machine weighs on both and cancels. Only repeats that both have count.
    """
    return spread([a / b for a, b in zip(ours, theirs, strict=False)])


def number(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 1 else f"{value:.3f}"


def text(values: Spread) -> str:
    """`median (low to high)`."""
    if values.count == 1:
        return number(values.median)
    return f"{number(values.median)} ({number(values.low)} to {number(values.high)})"
