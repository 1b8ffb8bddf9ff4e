"""What goes into a step: phases, programs, chunks, frames, barriers, page tables."""

from itertools import pairwise

import pytest
from scheduler_harness import Driver, OnlyMultiples, StopAfter, digest_of, geometry, request

from helios.contract.operation import Operation
from helios.contract.submission import Lane, Sampling
from helios.errors import ConfigurationError
from helios.scheduler.events import Finished, FinishReason
from helios.scheduler.policy import SchedulerPolicy
from helios.scheduler.scheduler import Scheduler

INITIALIZE, PREFILL, DECODE, MIXED = (
    Operation.INITIALIZE,
    Operation.PREFILL,
    Operation.DECODE,
    Operation.MIXED,
)


def lanes_of(driver: Driver, slot: int) -> list[Lane]:
    return [lane for s in driver.submissions for lane in s.lanes if lane.slot == slot]


def test_one_request_is_initialized_prefilled_and_decoded() -> None:
    driver = Driver(geometry())
    asked = request(1, range(10), 4)
    driver.admit(asked)
    driver.run()
    driver.check(asked)
    assert driver.operations() == [INITIALIZE, PREFILL, DECODE, DECODE, DECODE]
    setup, prefill, *decodes = lanes_of(driver, 0)
    assert setup.admission is not None
    assert (setup.admission.prompt, setup.admission.output_limit) == (tuple(range(10)), 4)
    assert (list(prefill.tokens), prefill.sample) == (list(range(10)), True)
    assert [(lane.endpoint, lane.query_length, lane.tokens) for lane in decodes] == [
        (10, 1, ()),
        (11, 1, ()),
        (12, 1, ()),
    ]


@pytest.mark.parametrize("chunk", [1, 3, 7, 16])
def test_prefill_is_chunked_and_samples_once(chunk: int) -> None:
    driver = Driver(geometry(), SchedulerPolicy(chunk_tokens=chunk))
    asked = request(1, range(25), 3)
    driver.admit(asked)
    driver.run()
    driver.check(asked)
    fills = [lane for lane in lanes_of(driver, 0) if lane.tokens]
    assert [token for lane in fills for token in lane.tokens] == list(range(25))
    assert max(lane.query_length for lane in fills) == min(chunk, 16)
    assert [lane.sample for lane in fills] == [False] * (len(fills) - 1) + [True]


def test_the_cheapest_variant_that_holds_the_cohort_runs() -> None:
    driver = Driver(geometry(rows=4, tokens=16))
    driver.admit(*(request(i, range(i, i + 4), 6) for i in range(4)))
    driver.run()
    for submission in driver.submissions:
        rows, tokens = len(submission.lanes), sum(x.query_length for x in submission.lanes)
        better = [
            v
            for v in driver.shape.variants
            if v.operation is submission.operation and v.rows >= rows and v.tokens >= tokens
        ]
        assert submission.program == min(better, key=lambda v: (v.tokens, v.rows)).program


def test_a_long_prompt_delays_decoders_by_one_chunk_a_step() -> None:
    shape = geometry(context=4200, pages=1200, tokens=64)
    driver = Driver(shape, SchedulerPolicy(step_tokens=24))
    driver.admit(request(1, range(5), 300))
    for _ in range(5):
        driver.step()
    driver.admit(request(2, [i % 97 for i in range(4000)], 2))
    driver.run()
    served = [i for i, s in enumerate(driver.submissions) if any(x.slot == 0 for x in s.lanes)]
    while_both = [s for s in driver.submissions if s.operation is MIXED]
    assert len(while_both) == pytest.approx(4000 / 23, abs=2)
    assert all(sum(lane.query_length for lane in s.lanes) <= 24 for s in while_both)
    gaps = [b - a for a, b in pairwise(served)]
    assert max(gaps) <= 2, "between two steps of a decoder there is one of another kind at most"


@pytest.mark.parametrize("step_tokens", [1, 2, 3, 8])
def test_prefill_goes_on_beside_decoders_at_any_latency_target(step_tokens: int) -> None:
    driver = Driver(geometry(slots=4, rows=4), SchedulerPolicy(step_tokens=step_tokens))
    driver.admit(*(request(i, range(3), 60) for i in range(3)))
    for _ in range(8):
        driver.step()
    late = request(9, range(20, 40), 2)
    driver.admit(late)
    steps = 0
    while not any(isinstance(event, Finished) for event in driver.events[9]):
        driver.step()
        steps += 1
    driver.check(late)
    assert steps < 70
    assert not any(isinstance(driver.events[i][-1], Finished) for i in range(3))


def test_without_mixed_programs_prefill_and_decode_take_turns() -> None:
    driver = Driver(geometry(without=[MIXED]), SchedulerPolicy(chunk_tokens=2))
    driver.admit(request(1, range(4), 20))
    for _ in range(4):
        driver.step()
    driver.admit(request(2, range(40, 70), 2))
    driver.run()
    driver.check(request(1, range(4), 20))
    first = driver.submissions.index(
        next(s for s in driver.submissions if len(s.lanes) == 1 and s.lanes[0].slot == 1)
    )
    turns = [s.operation for s in driver.submissions[first + 1 :]][:20]
    assert turns == [DECODE, PREFILL] * 10 or turns == [PREFILL, DECODE] * 10


def test_more_decoders_than_rows_are_served_in_rotation() -> None:
    shape = geometry(slots=8, rows=2, pages=120)
    driver = Driver(shape, SchedulerPolicy(prefix_cache=False))
    driver.admit(*(request(i, range(i, i + 3), 30) for i in range(7)))
    while len(driver.tokens(0)) < 15:
        driver.step()
    assert min(len(driver.tokens(i)) for i in range(7)) > 8


def test_newcomers_at_every_step_do_not_stop_a_decoder() -> None:
    driver = Driver(geometry(slots=4, pages=100))
    driver.admit(request(0, range(5), 40))
    for _ in range(3):
        driver.step()
    for number in range(1, 60):
        driver.admit(request(number, (number,), 1))
        driver.submit()
        driver.submit()
        driver.complete()
    driver.run()
    served = [
        index
        for index, submission in enumerate(driver.submissions)
        if any((lane.slot, lane.generation) == (0, 1) for lane in submission.lanes)
    ]
    assert len(served) == 41
    assert max(b - a for a, b in pairwise(served)) <= 2


# ---- frames and barriers ---------------------------------------------------------------------


def test_plain_decoding_keeps_both_frames_busy() -> None:
    driver = Driver(geometry())
    driver.admit(request(1, range(6), 20))
    driver.run()
    decodes = [
        n
        for s, n in zip(driver.submissions, driver.in_flight_after, strict=True)
        if s.operation is DECODE
    ]
    assert decodes[1:] == [2] * (len(decodes) - 1)
    assert [s.frame for s in driver.submissions] == [i % 2 for i in range(len(driver.submissions))]


def test_chunks_of_one_prompt_overlap() -> None:
    driver = Driver(geometry(), SchedulerPolicy(chunk_tokens=4))
    driver.admit(request(1, range(20), 1))
    driver.run()
    fills = [
        n
        for s, n in zip(driver.submissions, driver.in_flight_after, strict=True)
        if s.operation is PREFILL
    ]
    assert fills == [1, 2, 2, 2, 2]


def test_a_change_of_phase_waits_for_its_completion() -> None:
    driver = Driver(geometry())
    driver.admit(request(1, range(6), 5))
    assert driver.submit()
    assert not driver.submit(), "prefill waits for initialization"
    driver.complete()
    assert driver.submit()
    assert not driver.submit(), "decoding waits for prefill"
    driver.complete()
    assert driver.submit()
    assert driver.submit(), "but not for decoding"


def test_one_frame_is_used_where_only_one_is_wanted() -> None:
    driver = Driver(geometry(), SchedulerPolicy(frames=1))
    driver.admit(request(1, range(6), 9), request(2, range(5), 9))
    driver.run()
    assert set(driver.in_flight_after) == {1}
    assert {s.frame for s in driver.submissions} == {0}


def test_a_monitored_lane_leaves_one_frame_in_flight() -> None:
    driver = Driver(geometry())
    driver.admit(request(2, range(9), 40))
    for _ in range(5):
        driver.step()
    monitored = request(1, range(20, 26), 30, monitor=StopAfter(7))
    driver.admit(monitored)
    driver.run()
    driver.check(monitored, StopAfter(7))
    lone = [
        n
        for s, n in zip(driver.submissions, driver.in_flight_after, strict=True)
        if any(lane.slot == 1 and lane.sample for lane in s.lanes)
    ]
    assert lone == [1] * 7
    assert driver.scheduler.counters.constrained_max_inflight == 1
    assert driver.in_flight_after[-3] == 2, "the other one overlaps again once it is alone"
    assert driver.scheduler.counters.mixed_grammar_decode_steps == 0, "a stop masks nothing"


def test_nothing_follows_a_monitored_step_before_its_tokens_are_seen() -> None:
    driver = Driver(geometry())
    driver.admit(request(1, range(6), 30, monitor=StopAfter(12)))
    while len(driver.tokens(1)) < 3:
        driver.step()
    assert driver.submit()
    driver.admit(request(2, range(9), 4))
    assert not driver.submit(), "not even to set up a newcomer"
    driver.run()


def test_grammar_masks_every_token_and_mixed_steps_are_counted() -> None:
    driver = Driver(geometry())
    constrained = request(1, range(6), 8, monitor=OnlyMultiples(), constrained=True)
    driver.admit(constrained, request(2, range(9), 8))
    driver.run()
    driver.check(constrained, OnlyMultiples())
    mixed = [
        s
        for s in driver.submissions
        if {lane.masked for lane in s.lanes if lane.sample} == {True, False}
        and any(lane.sample and not lane.tokens for lane in s.lanes)
    ]
    assert driver.scheduler.counters.mixed_grammar_decode_steps == len(mixed) > 0


def test_traffic_without_monitors_reports_no_constrained_step() -> None:
    driver = Driver(geometry())
    driver.admit(request(1, range(6), 8))
    driver.run()
    assert driver.scheduler.counters.constrained_max_inflight == 0
    assert driver.scheduler.counters.overlapped_steps > 0


# ---- page tables -----------------------------------------------------------------------------


def test_page_table_entries_are_sent_once_and_only_when_new() -> None:
    driver = Driver(geometry(slots=1), SchedulerPolicy(prefix_cache=False, chunk_tokens=6))
    driver.admit(request(1, range(10), 12), request(2, range(30, 45), 3))
    driver.run()
    for generation in (1, 2):
        lanes = [lane for lane in lanes_of(driver, 0) if lane.generation == generation]
        assert lanes[0].new_pages == (), "initialization looks at no pages"
        sent = [index for lane in lanes for index, _ in lane.new_pages]
        assert sent == list(range(len(sent))), "each entry once, in order"
        for lane in lanes:
            held = -(-(lane.endpoint + lane.query_length) // 4)
            assert held <= sum(len(x.new_pages) for x in lanes[: lanes.index(lane) + 1])


def test_slots_come_back_under_a_new_generation() -> None:
    driver = Driver(geometry(slots=1))
    driver.admit(*(request(i, range(5), 2) for i in range(3)))
    driver.run()
    assert sorted({lane.generation for lane in lanes_of(driver, 0)}) == [1, 2, 3]


# ---- ends ------------------------------------------------------------------------------------


def end_of(**options: object) -> tuple[Finished, tuple[int, ...]]:
    driver = Driver(geometry())
    driver.admit(request(1, range(6), **options))  # type: ignore[arg-type]
    driver.run()
    end = driver.end(1)
    assert isinstance(end, Finished)
    return end, driver.tokens(1)


def test_every_way_to_end() -> None:
    _, tokens = end_of(max_tokens=8)
    pair = (tokens[2], tokens[3])
    end, got = end_of(max_tokens=8, stop_tokens=(tokens[4],))
    assert (end.reason, end.stop, got) == (FinishReason.STOP, tokens[4], tokens[:5])
    end, got = end_of(max_tokens=8, stop_sequences=((9, 9, 9), pair))
    assert (end.reason, end.stop, got) == (FinishReason.STOP, pair, tokens[:4])
    end, got = end_of(max_tokens=8, monitor=StopAfter(2))
    assert (end.reason, end.stop, got) == (FinishReason.STOP, None, tokens[:2])
    end, got = end_of(max_tokens=1)
    assert (end.reason, end.output_tokens, got) == (FinishReason.LENGTH, 1, tokens[:1])
    end, got = end_of(max_tokens=40, eos_tokens=(5,))
    assert (end.reason, end.stop, got[-1]) == (FinishReason.EOS, 5, 5)


def test_stops_are_not_heeded_before_the_least_output() -> None:
    _, tokens = end_of(max_tokens=8)
    patient = Sampling(temperature=0, min_output=3)
    end, got = end_of(max_tokens=8, stop_tokens=(tokens[0], tokens[4]), sampling=patient)
    assert (end.stop, got) == (tokens[4], tokens[:5])
    end, got = end_of(
        max_tokens=8, stop_sequences=((tokens[0], tokens[1]), (tokens[5],)), sampling=patient
    )
    assert (end.stop, got) == ((tokens[5],), tokens[:6])


def test_a_stop_sequence_does_not_reach_into_the_prompt() -> None:
    _, tokens = end_of(max_tokens=8)
    end, _ = end_of(max_tokens=8, stop_sequences=((5, tokens[0]),))
    assert end.reason is FinishReason.LENGTH


def test_output_ends_at_the_context_limit() -> None:
    driver = Driver(geometry(context=16))
    driver.admit(request(1, range(10), 100))
    driver.run()
    end = driver.end(1)
    assert isinstance(end, Finished)
    assert (end.reason, end.output_tokens) == (FinishReason.LENGTH, 6)


def test_prompts_are_scored_in_chunks_of_their_own_programs() -> None:
    driver = Driver(geometry(), SchedulerPolicy(chunk_tokens=5))
    prompt = tuple(range(30, 48))
    driver.admit(request(1, prompt, 0, prompt_logprobs=2), request(2, range(9), 12))
    driver.run()
    assert driver.scores(1) == [digest_of(prompt[:i], prompt[i]) for i in range(1, 18)]
    end = driver.end(1)
    assert isinstance(end, Finished)
    assert (end.reason, end.output_tokens) == (FinishReason.LENGTH, 0)
    scored = [s for s in driver.submissions if s.operation is Operation.SCORED_PREFILL]
    assert len(scored) == 4
    assert all(len(s.lanes) == 1 and not s.lanes[0].sample for s in scored)
    assert scored[-1].lanes[0].targets[-1] == -1


def test_scores_are_reported_once_whatever_happens() -> None:
    driver = Driver(geometry(), SchedulerPolicy(chunk_tokens=4))
    prompt = tuple(range(30, 48))
    driver.admit(request(1, prompt, 3, prompt_logprobs=0))
    while len(driver.scores(1)) < 8:
        driver.step()
    driver.preempt(1)
    driver.run()
    assert driver.scores(1) == [digest_of(prompt[:i], prompt[i]) for i in range(1, 18)]
    driver.check(request(1, prompt, 3))


def test_a_scored_prompt_goes_on_to_generate() -> None:
    driver = Driver(geometry())
    asked = request(1, range(20), 5, prompt_logprobs=0)
    driver.admit(asked)
    driver.run()
    driver.check(asked)
    assert len(driver.scores(1)) == 19


# ---- what can't be served --------------------------------------------------------------------


def test_explicit_policies_are_honoured_or_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"max_active.*at most 4"):
        Scheduler(geometry(slots=4), SchedulerPolicy(max_active=5))
    with pytest.raises(ConfigurationError, match="frames"):
        Scheduler(geometry(), SchedulerPolicy(frames=3))
    with pytest.raises(ConfigurationError, match="step_tokens"):
        SchedulerPolicy(step_tokens=-1)
    with pytest.raises(ConfigurationError, match="DECODE"):
        Scheduler(geometry(without=[DECODE]))
