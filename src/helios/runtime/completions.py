"""Reading a step's completion buffers back as a record. Nothing read here is trusted yet."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

from helios.contract.kinds import CompletionField
from helios.contract.prepared import PreparedGraph
from helios.contract.submission import Completion, Lane, LaneCompletion, Submission
from helios.runtime.storage import Array, Storage

Alternatives = tuple[tuple[int, float], ...]
Sampled = tuple[tuple[int, ...], float | None, Alternatives]

_NOTHING: Sampled = ((), None, ())


class CompletionReader:
    """Reads the completions of one graph."""

    def __init__(self, graph: PreparedGraph) -> None:
        self._buffers = dict(graph.completion)

    def read(self, submission: Submission, storage: Storage) -> Completion:
        """The record of a submission that has run."""

        def column(field: CompletionField, count: int) -> Sequence[int]:
            array = storage.array(self._buffers[field], submission.frame)
            return array[:count].tolist()  # type: ignore[no-any-return]

        lanes = submission.lanes
        slots = column(CompletionField.SLOT, len(lanes))
        generations = column(CompletionField.GENERATION, len(lanes))
        endpoints = column(CompletionField.ENDPOINT, len(lanes))
        sampled = self._sampled(submission, storage)
        records = []
        packed = 0
        for row, lane in enumerate(lanes):
            tokens, logprob, top = next(sampled) if lane.sample else _NOTHING
            scores, score_tops = self._scores(submission, storage, packed, lane)
            records.append(
                LaneCompletion(
                    slot=slots[row],
                    generation=generations[row],
                    endpoint=endpoints[row],
                    accepted=len(tokens),
                    tokens=tokens,
                    logprob=logprob,
                    top=top,
                    scores=scores,
                    score_tops=score_tops,
                )
            )
            packed += lane.query_length
        return Completion(submission.sequence, submission.frame, tuple(records))

    def _sampled(self, submission: Submission, storage: Storage) -> Iterator[Sampled]:
        """What each sampled row drew, in order. One token per row, or W of them."""
        count = sum([lane.sample for lane in submission.lanes])
        if not count:
            return iter(())
        drawn = self._array(CompletionField.TOKENS, submission, storage)[:count]
        accepted = self._array(CompletionField.ACCEPTED, submission, storage)[:count]
        logprobs = self._array(CompletionField.LOGPROB, submission, storage)[:count]
        ids = self._array(CompletionField.TOP_TOKENS, submission, storage)[:count]
        values = self._array(CompletionField.TOP_LOGPROBS, submission, storage)[:count]
        rows = drawn.reshape(count, -1).tolist()
        tokens = [tuple(row[:n]) for row, n in zip(rows, accepted.tolist(), strict=True)]
        tops: Iterable[Alternatives] = repeat(())
        if max(ids[:, 0].tolist()) >= 0:  # seldom does anybody ask for them
            tops = map(_alternatives, ids, values)
        return zip(tokens, logprobs.tolist(), tops, strict=False)

    def _scores(
        self, submission: Submission, storage: Storage, start: int, lane: Lane
    ) -> tuple[tuple[float, ...], tuple[Alternatives, ...]]:
        if CompletionField.SCORES not in self._buffers:
            return (), ()
        end = start + lane.query_length
        scores = self._array(CompletionField.SCORES, submission, storage)[start:end]
        ids = self._array(CompletionField.SCORE_TOP_TOKENS, submission, storage)[start:end]
        values = self._array(CompletionField.SCORE_TOP_LOGPROBS, submission, storage)[start:end]
        tops = tuple(_alternatives(i, v) for i, v in zip(ids, values, strict=True))
        return tuple(scores.tolist()), tops

    def _array(self, field: CompletionField, submission: Submission, storage: Storage) -> Array:
        return storage.array(self._buffers[field], submission.frame)


def _alternatives(ids: Array, values: Array) -> Alternatives:
    if ids[0] < 0:
        return ()
    count = int((ids >= 0).sum())
    return tuple(zip(ids[:count].tolist(), values[:count].tolist(), strict=True))
