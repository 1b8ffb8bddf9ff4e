"""How far one model's next-token distributions are from another's."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
_ROWS = 32  # of logits held in double precision at once


@dataclass(frozen=True, slots=True)
class Summary:
    """Over `tokens` positions: the Kullback-Leibler divergence from the reference in nats (mean,
    median, 99th percentile, largest), the share of equal most likely tokens, and the perplexity of
    the text that followed."""

    tokens: int
    mean: float
    median: float
    p99: float
    largest: float
    top1: float
    perplexity: float


@dataclass
class Divergence:
    """Collects positions."""

    kl: list[Doubles] = field(default_factory=list)
    agrees: list[NDArray[np.bool_]] = field(default_factory=list)
    surprise: list[Doubles] = field(default_factory=list)

    def add(self, reference: Floats, logits: Floats, following: Sequence[int]) -> None:
        """Compare logits [n, V] of a window; `following` are the n - 1 tokens that came next."""
        parts = list(_blocks(reference, logits))
        self.kl += [kl for kl, _ in parts]
        self.agrees.append(reference.argmax(axis=1) == logits.argmax(axis=1))
        logs = np.concatenate([log for _, log in parts])
        self.surprise.append(-logs[np.arange(len(following)), list(following)])

    def summary(self) -> Summary:
        """Everything collected."""
        kl, agrees = np.concatenate(self.kl), np.concatenate(self.agrees)
        return Summary(
            tokens=len(kl),
            mean=float(kl.mean()),
            median=float(np.median(kl)),
            p99=float(np.quantile(kl, 0.99)),
            largest=float(kl.max()),
            top1=float(agrees.mean()),
            perplexity=float(np.exp(np.concatenate(self.surprise).mean())),
        )


def log_softmax(logits: Floats) -> Doubles:
    """Logarithms of probabilities along the last axis, in double precision."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=-1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted


def _blocks(reference: Floats, logits: Floats) -> Iterator[tuple[Doubles, Floats]]:
    """Per block of rows the divergence of each, and the compared log-probabilities."""
    for start in range(0, len(reference), _ROWS):
        rows = slice(start, start + _ROWS)
        p, q = log_softmax(reference[rows]), log_softmax(logits[rows])
        yield (np.exp(p) * (p - q)).sum(axis=-1), q.astype(np.float32)
