"""Reading a step's completion buffers back as a record. Nothing read here is trusted yet."""

from collections.abc import Sequence

from helios.contract.kinds import CompletionField
from helios.contract.prepared import PreparedGraph
from helios.contract.submission import Completion, Lane, LaneCompletion, Submission
from helios.runtime.storage import Array, Storage


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
        records = []
        sampled = packed = 0
        for row, lane in enumerate(lanes):
            tokens, logprob, top = self._sampled(submission, storage, sampled, lane)
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
            sampled += lane.sample
            packed += lane.query_length
        return Completion(submission.sequence, submission.frame, tuple(records))

    def _sampled(
        self, submission: Submission, storage: Storage, index: int, lane: Lane
    ) -> tuple[tuple[int, ...], float | None, tuple[tuple[int, float], ...]]:
        if not lane.sample:
            return (), None, ()
        # One token per sampled row, or W of them.
        tokens = self._array(CompletionField.TOKENS, submission, storage)
        tokens = tokens.reshape(len(tokens), -1)
        accepted = self._array(CompletionField.ACCEPTED, submission, storage)
        logprobs = self._array(CompletionField.LOGPROB, submission, storage)
        tops = _alternatives(
            self._array(CompletionField.TOP_TOKENS, submission, storage)[index],
            self._array(CompletionField.TOP_LOGPROBS, submission, storage)[index],
        )
        return tuple(tokens[index, : accepted[index]].tolist()), float(logprobs[index]), tops

    def _scores(
        self, submission: Submission, storage: Storage, start: int, lane: Lane
    ) -> tuple[tuple[float, ...], tuple[tuple[tuple[int, float], ...], ...]]:
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


def _alternatives(ids: Array, values: Array) -> tuple[tuple[int, float], ...]:
    if ids[0] < 0:
        return ()
    count = int((ids >= 0).sum())
    return tuple(zip(ids[:count].tolist(), values[:count].tolist(), strict=True))
