"""Completion validation: what a device reports is believed only where it can be true."""

from math import isnan

from helios.contract.operation import Operation
from helios.contract.submission import Completion, Lane, LaneCompletion, Submission, Variant


def step_fault(submission: Submission, completion: Completion) -> str | None:
    """Why a record can't be that of the oldest submission in flight."""
    if completion.sequence != submission.sequence:
        return f"step {completion.sequence} completed where {submission.sequence} was next"
    if completion.frame != submission.frame:
        return f"step {submission.sequence} completed in frame {completion.frame}"
    if completion.error is None and len(completion.lanes) != len(submission.lanes):
        return f"{len(completion.lanes)} lanes completed of {len(submission.lanes)}"
    return None


def offers_fault(variant: Variant, completion: Completion) -> str | None:
    """Why the offers of a speculative step exceed what its program packs."""
    if variant.operation is not Operation.SPECULATIVE:
        return None
    offered = sum(record.offered + 1 for record in completion.lanes)
    return f"{offered} tokens offered of {variant.tokens}" if offered > variant.tokens else None


def lane_fault(
    variant: Variant,
    lane: Lane,
    record: LaneCompletion,
    vocabulary: int,
    scored: bool,
    logprobs: bool,
) -> str | None:
    """Why a lane's record can't be true. `scored` and `logprobs` say what was asked for."""
    if record.slot != lane.slot or record.generation != lane.generation:
        return f"slot {record.slot} generation {record.generation} is not the lane's"
    accepted = record.accepted
    if len(record.tokens) != accepted:
        return f"{accepted} accepted tokens, {len(record.tokens)} reported"
    if variant.operation is Operation.SPECULATIVE:
        fault = _speculation_fault(lane, record)
        consumed = accepted
    else:
        fault = _acceptance_fault(lane, record)
        consumed = lane.query_length
    if fault is not None:
        return fault
    if record.endpoint != lane.endpoint + consumed:
        return f"endpoint {record.endpoint} after {lane.endpoint} and {consumed} tokens"
    lag = variant.cursor_lag
    if record.cursor != (-1 if lag < 0 else max(record.endpoint - lag, 0)):
        return f"draft cursor {record.cursor} at endpoint {record.endpoint}"
    if record.model != -1:
        return f"reserved model field is {record.model}"
    for token in record.tokens:
        if not 0 <= token < vocabulary:
            return f"token {token} is outside the vocabulary"
    return _numbers_fault(lane, record, vocabulary, scored, logprobs)


def _acceptance_fault(lane: Lane, record: LaneCompletion) -> str | None:
    if record.accepted != lane.sample:
        return f"{record.accepted} tokens accepted where {int(lane.sample)} was drawn"
    if record.offered:
        return f"{record.offered} drafts offered by a program that draws none"
    return None


def _speculation_fault(lane: Lane, record: LaneCompletion) -> str | None:
    if not 0 <= record.offered < lane.query_length:
        return f"{record.offered} drafts offered within a ceiling of {lane.query_length}"
    if not 1 <= record.accepted <= record.offered + 1:
        return f"{record.accepted} tokens accepted of {record.offered} drafts"
    return None


def _numbers_fault(
    lane: Lane, record: LaneCompletion, vocabulary: int, scored: bool, logprobs: bool
) -> str | None:
    if logprobs and record.accepted:
        if record.logprob is None or isnan(record.logprob):
            return f"log-probability {record.logprob}"
        if not _alternatives_hold(record.top, vocabulary):
            return "alternatives outside the vocabulary"
    if not scored:
        return None
    count = lane.query_length
    if len(record.scores) != count or len(record.score_tops) not in (0, count):
        return f"{len(record.scores)} scores for {count} tokens"
    for target, score in zip(lane.targets, record.scores, strict=True):
        if target >= 0 and isnan(score):
            return f"score {score} for token {target}"
    if not all(_alternatives_hold(top, vocabulary) for top in record.score_tops):
        return "scored alternatives outside the vocabulary"
    return None


def _alternatives_hold(top: tuple[tuple[int, float], ...], vocabulary: int) -> bool:
    return all(0 <= token < vocabulary and not isnan(value) for token, value in top)
