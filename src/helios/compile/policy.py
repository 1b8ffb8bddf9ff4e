"""Auto: the limits that a memory budget allows.

First the largest batch tokens whose Prefill fits, then the largest context whose Prefill and
Decode fit, then the most sequences whose Decode fits. All memory is allocated at load, so the
plan at these limits needs more than either workload alone: what is too much is taken from the
sequences first, then from the context, then from the batch. What is left over becomes pages and
snapshots.
"""

from collections.abc import Callable
from dataclasses import replace

from helios.compile.demand import Workload
from helios.compile.memory import MemoryModel
from helios.compile.plan import Limits
from helios.compile.request import Bounds, Range
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class Auto:
    """The search for one model, request and budget."""

    memory: MemoryModel
    bounds: Bounds
    budget: int

    def minimum(self) -> Limits:
        """The smallest limits that the request allows."""
        bounds = self.bounds
        return self.limits(bounds.context.least, bounds.sequences.least, bounds.batch_tokens.least)

    def choose(self) -> Limits | None:
        """The chosen limits, or None where not even the minimum fits."""
        if not self.fits(self.minimum()):
            return None
        batch = self._batch_tokens()
        context = self._context(batch)
        sequences = self._sequences(context, batch)
        return self._spend(self._settle(context, sequences, batch))

    def prefill_nbytes(self, context: int, batch: int) -> int:
        """The peak of one sequence at the end of a full context."""
        return self._peak(Workload.prefill(context, batch))

    def decode_nbytes(self, context: int, sequences: int) -> int:
        """The peak of all sequences at their first token."""
        return self._peak(Workload.decode(context, sequences))

    def limits(self, context: int, sequences: int, batch: int) -> Limits:
        """Limits with no more pages and snapshots than they need."""
        needed = max(sequences, self.bounds.pages_for(context))
        return Limits(
            context=context,
            sequences=sequences,
            batch_tokens=batch,
            pages=self.bounds.pages or needed,
            snapshots=self.bounds.snapshots or 0,
        )

    def fits(self, limits: Limits) -> bool:
        """Whether a plan at those limits is within the budget."""
        return self.memory.total_nbytes(limits) <= self.budget

    def _peak(self, workload: Workload) -> int:
        """A workload's peak; explicit pages and snapshots are there whatever it fills."""
        limits = self.memory.limits_of(workload)
        return self.memory.total_nbytes(
            replace(
                limits,
                pages=self.bounds.pages or limits.pages,
                snapshots=self.bounds.snapshots or 0,
            )
        )

    def _batch_tokens(self) -> int:
        """At the target context if any batch fits there, else at the smallest context."""
        for context in (self.bounds.context.most, self.bounds.context.least):

            def fits(batch: int, context: int = context) -> bool:
                return self.prefill_nbytes(context, batch) <= self.budget

            if fits(self.bounds.batch_tokens.least):
                return largest(self.bounds.batch_tokens, fits)
        return self.bounds.batch_tokens.least

    def _context(self, batch: int) -> int:
        """In whole pages, unless the target itself fits."""
        allowed = self.bounds.context
        sequences = self.bounds.sequences.least

        def fits(context: int) -> bool:
            return (
                self.prefill_nbytes(context, batch) <= self.budget
                and self.decode_nbytes(context, sequences) <= self.budget
            )

        return self._whole_pages(largest(allowed, fits))

    def _sequences(self, context: int, batch: int) -> int:
        allowed = self.bounds.sequences
        return largest(
            Range(allowed.least, min(allowed.most, batch)),
            lambda sequences: self.decode_nbytes(context, sequences) <= self.budget,
        )

    def _settle(self, context: int, sequences: int, batch: int) -> Limits:
        """The plan at the chosen limits, reduced until it fits as a whole."""
        bounds = self.bounds
        sequences = largest(
            Range(bounds.sequences.least, sequences),
            lambda n: self.fits(self.limits(context, n, batch)),
        )
        context = self._whole_pages(
            largest(
                Range(bounds.context.least, context),
                lambda c: self.fits(self.limits(c, sequences, batch)),
            )
        )
        batch = largest(
            Range(max(bounds.batch_tokens.least, sequences), batch),
            lambda k: self.fits(self.limits(context, sequences, k)),
        )
        return self.limits(context, sequences, batch)

    def _spend(self, limits: Limits) -> Limits:
        """What is left becomes pages, and snapshots in the proportion of the preparation.

        No more than every sequence at full context and the preparation's working set as a cache.
        """
        bounds = self.bounds
        most = limits.sequences * bounds.pages_for(limits.context) + bounds.working_pages

        def spent(extra: int) -> Limits:
            share = extra * bounds.working_snapshots // max(bounds.working_pages, 1)
            return replace(
                limits,
                pages=bounds.pages or limits.pages + extra,
                snapshots=share if bounds.snapshots is None else bounds.snapshots,
            )

        room = Range(0, max(0, most - limits.pages))
        return spent(largest(room, lambda extra: self.fits(spent(extra))))

    def _whole_pages(self, context: int) -> int:
        allowed, page = self.bounds.context, self.bounds.page_tokens
        whole = context // page * page
        return context if context == allowed.most else max(allowed.least, whole)


def largest(allowed: Range, fits: Callable[[int], bool]) -> int:
    """The largest number in the range that fits, or the least where none does.

    What fits is downward closed: memory never shrinks as a limit grows.
    """
    low, high = allowed.least, max(allowed.least, allowed.most)
    if fits(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
