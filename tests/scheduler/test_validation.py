"""Completion records against the lanes they answer, one rule at a time."""

import dataclasses

import pytest
from msgspec.structs import replace

from helios.contract.operation import Operation
from helios.contract.submission import Completion, Lane, LaneCompletion, Variant
from helios.scheduler.validation import lane_fault, offers_fault

NAN = float("nan")
DECODE = Variant("decode", Operation.DECODE, 4, 4)
SCORED = Variant("scored", Operation.SCORED_PREFILL, 4, 16)
SPECULATIVE = Variant("speculative", Operation.SPECULATIVE, 4, 6, width=4)

LANE = Lane(slot=1, generation=2, endpoint=10, query_length=1, sample=True)
RECORD = LaneCompletion(slot=1, generation=2, endpoint=11, accepted=1, tokens=(5,), logprob=-1.0)


def fault(variant: Variant, lane: Lane, record: LaneCompletion, **asked: bool) -> str | None:
    scored, logprobs = asked.get("scored", False), asked.get("logprobs", False)
    return lane_fault(variant, lane, record, 97, scored, logprobs)


def test_what_can_be_true_is_believed() -> None:
    assert fault(DECODE, LANE, RECORD) is None
    assert fault(DECODE, LANE, replace(RECORD, logprob=NAN)) is None, "nobody asked for it"


@pytest.mark.parametrize("logprob", [None, NAN])
def test_log_probabilities_are_numbers_where_asked_for(logprob: float | None) -> None:
    assert "log-probability" in str(
        fault(DECODE, LANE, replace(RECORD, logprob=logprob), logprobs=True)
    )


@pytest.mark.parametrize("top", [((97, -1.0),), ((-1, -1.0),), ((3, NAN),)])
def test_alternatives_are_in_the_vocabulary(top: tuple[tuple[int, float], ...]) -> None:
    assert "alternatives" in str(fault(DECODE, LANE, replace(RECORD, top=top), logprobs=True))


def test_a_draft_cursor_trails_by_the_declared_lag() -> None:
    lagging = dataclasses.replace(DECODE, cursor_lag=3)
    assert fault(lagging, LANE, replace(RECORD, cursor=8)) is None
    assert "cursor" in str(fault(lagging, LANE, RECORD))
    early = replace(LANE, endpoint=0)
    assert fault(lagging, early, replace(RECORD, endpoint=1, cursor=0)) is None


def test_scores_are_one_per_token() -> None:
    lane = replace(LANE, query_length=3, tokens=(1, 2, 3), targets=(2, 3, -1), sample=False)
    record = replace(
        RECORD, endpoint=13, accepted=0, tokens=(), scores=(-1.0, -2.0, NAN), score_tops=((),) * 3
    )
    assert fault(SCORED, lane, record, scored=True) is None, "the last token has no target"
    assert "2 scores for 3" in str(
        fault(SCORED, lane, replace(record, scores=(0.0, 0.0)), scored=True)
    )
    bad = replace(record, scores=(NAN, -1.0, 0.0))
    assert "score nan" in str(fault(SCORED, lane, bad, scored=True))
    bad = replace(record, score_tops=((), ((99, 0.0),), ()))
    assert "scored alternatives" in str(fault(SCORED, lane, bad, scored=True))


def test_speculation_is_held_to_its_ceilings() -> None:
    lane = replace(LANE, query_length=4)
    record = replace(RECORD, offered=3, accepted=2, tokens=(5, 6), endpoint=12)
    assert fault(SPECULATIVE, lane, record) is None
    assert "ceiling of 4" in str(fault(SPECULATIVE, lane, replace(record, offered=4)))
    assert "of 0 drafts" in str(fault(SPECULATIVE, lane, replace(record, offered=0)))
    assert "endpoint" in str(fault(SPECULATIVE, lane, replace(record, endpoint=14)))
    assert offers_fault(SPECULATIVE, Completion(0, 0, (record,))) is None
    assert "8 tokens offered of 6" in str(
        offers_fault(SPECULATIVE, Completion(0, 0, (record,) * 2))
    )
    assert offers_fault(DECODE, Completion(0, 0, (RECORD,) * 9)) is None
