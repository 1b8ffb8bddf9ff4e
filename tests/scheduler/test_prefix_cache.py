"""The prefix cache: exact endpoints, snapshots, eviction, and who may share with whom."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_harness import Driver, StopAfter, geometry, request

from helios.contract.operation import Operation
from helios.contract.submission import Completion, Submission
from helios.runtime.simulated import Costs, SimulatedDevice
from helios.scheduler.events import Finished
from helios.scheduler.policy import SchedulerPolicy
from helios.scheduler.prefix import PrefixTree
from helios.scheduler.snapshots import SnapshotRows

PAGE = 4


def serve(
    driver: Driver, number: int, prompt: object, max_tokens: int = 4, **options: object
) -> int:
    """Serve one request alone, check its output, and return how much of it was cached."""
    asked = request(number, prompt, max_tokens, **options)  # type: ignore[arg-type]
    driver.admit(asked)
    driver.run()
    if asked.monitor is None:
        driver.check(asked)
    end = driver.end(number)
    assert isinstance(end, Finished)
    return end.reused_prompt_tokens


def chat(length: int, start: int = 0) -> list[int]:
    return [(start + 3 * i) % 97 for i in range(length)]


@pytest.mark.parametrize("length", range(1, 14))
def test_the_same_prompt_is_cached_to_its_last_token(length: int) -> None:
    driver = Driver(geometry())
    assert serve(driver, 1, chat(length)) == 0
    again = serve(driver, 2, chat(length))
    whole_pages = (length - 1) // PAGE * PAGE
    assert again == (whole_pages if length % PAGE == 0 else length - 1)


@pytest.mark.parametrize("shared", [11, 12, 13])
def test_a_shared_prefix_is_cached_to_the_page_border(shared: int) -> None:
    driver = Driver(geometry(snapshots=0))
    serve(driver, 1, [*chat(shared), *chat(6, 50)])
    assert serve(driver, 2, [*chat(shared), *chat(5, 70)]) == shared // PAGE * PAGE


def test_a_prompt_end_inside_a_page_serves_what_agrees_with_it() -> None:
    driver = Driver(geometry())
    serve(driver, 1, chat(11))
    assert serve(driver, 2, [*chat(10), 96, 95, 94]) == 10, "a page keeps a record per token"
    assert serve(driver, 3, [*chat(11), 1, 2, 3]) == 11


def test_recurrent_state_is_restored_at_its_own_endpoint_only() -> None:
    driver = Driver(geometry(recurrent=True))
    serve(driver, 1, chat(11))
    assert serve(driver, 2, [*chat(10), 96, 95, 94]) == 0
    assert serve(driver, 3, [*chat(11), 1, 2, 3]) == 11
    serve(driver, 4, chat(12, 60))
    assert serve(driver, 5, [*chat(12, 60), 1]) == 12, "a page border keeps state too"


def test_the_next_turn_continues_after_the_last_token_of_this_one() -> None:
    driver = Driver(geometry(context=96))
    serve(driver, 1, chat(10), 60, eos_tokens=(5,))
    turn = [*chat(10), *driver.tokens(1)]
    assert turn[-1] == 5
    assert len(turn) % PAGE, "the case of interest ends inside a page"
    assert serve(driver, 2, [*turn, 7, 8, 9]) == len(turn)


def test_a_turn_cut_by_its_limit_is_kept_up_to_what_was_consumed() -> None:
    driver = Driver(geometry())
    serve(driver, 1, chat(10), 6)
    turn = [*chat(10), *driver.tokens(1)]
    assert serve(driver, 2, [*turn, 7, 8, 9]) == len(turn) - 1


@pytest.mark.parametrize("slots", [1, 2])
def test_no_step_is_spent_on_a_finished_turn_while_others_wait_or_run(slots: int) -> None:
    driver = Driver(geometry(slots=slots, context=96))
    first = request(1, chat(10), 60, eos_tokens=(5,))
    driver.admit(first, request(2, chat(9, 40), 40))
    driver.run()
    driver.check(first)
    lanes = [x for s in driver.submissions for x in s.lanes if (x.slot, x.generation) == (0, 1)]
    assert [bool(lane.tokens) for lane in lanes].count(True) == 1
    assert sum(lane.admission is not None for lane in lanes) == 1


def test_a_recurrent_turn_is_kept_where_no_step_ran_ahead_of_its_end() -> None:
    driver = Driver(geometry(slots=2, context=96, recurrent=True), SchedulerPolicy(frames=1))
    turns = request(1, chat(10), 60, eos_tokens=(5,))
    driver.admit(turns, request(2, chat(9, 40), 60))
    driver.run()
    turn = [*chat(10), *driver.tokens(1)]
    assert serve(driver, 3, [*turn, 7, 8, 9]) == len(turn)


def test_boundaries_keep_a_snapshot_inside_the_prompt() -> None:
    driver = Driver(geometry())
    serve(driver, 1, chat(23), boundaries=(9,))
    fills = [lane for s in driver.submissions for lane in s.lanes if lane.tokens]
    assert [lane.endpoint for lane in fills][:2] == [0, 9]
    assert fills[0].snapshot_destination >= 0
    assert serve(driver, 2, [*chat(9), 90, 91, 92]) == 9


def test_opting_out_neither_reads_nor_writes() -> None:
    driver = Driver(geometry())
    serve(driver, 1, chat(12), use_cache=False)
    assert driver.scheduler.residency.tree.pages == 0
    assert serve(driver, 2, chat(12)) == 0
    assert serve(driver, 3, chat(12), use_cache=False) == 0
    assert serve(driver, 4, chat(12)) > 0


def test_salts_do_not_share_and_leave_nothing_behind() -> None:
    driver = Driver(geometry(pages=20))
    serve(driver, 1, chat(12), cache_salt="a")
    assert serve(driver, 2, chat(12), cache_salt="b") == 0
    assert serve(driver, 3, chat(12), cache_salt="a") > 0
    for number in range(4, 60):
        serve(driver, number, chat(12), cache_salt=f"tenant {number}")
    assert len(driver.scheduler.residency.tree.roots()) <= 20


def test_equal_tokens_of_different_images_are_different_prompts() -> None:
    driver = Driver(geometry())
    prompt = [*chat(5), *[98] * 6, *chat(2)]
    serve(driver, 1, prompt, images=((5, 6, b"cat"),))
    assert serve(driver, 2, prompt, images=((5, 6, b"dog"),)) == 4, "the page before the image"
    assert serve(driver, 3, prompt, images=((5, 6, b"cat"),)) == 12


def test_scored_prompts_are_not_served_from_the_cache_but_feed_it() -> None:
    driver = Driver(geometry())
    assert serve(driver, 1, chat(13), prompt_logprobs=1) == 0
    assert serve(driver, 2, chat(13), prompt_logprobs=1) == 0
    assert len(driver.scores(2)) == 12
    assert serve(driver, 3, chat(13)) == 12


def test_a_burst_with_one_prefix_computes_it_once() -> None:
    driver = Driver(geometry(slots=4, context=128, pages=200))
    prompts = [[*chat(64), *chat(4, 10 * i)] for i in range(4)]
    driver.admit(*(request(i, prompt, 3) for i, prompt in enumerate(prompts)))
    driver.run()
    for i, prompt in enumerate(prompts):
        driver.check(request(i, prompt, 3))
    assert driver.scheduler.counters.prefilled_tokens < 68 + 3 * 32


def test_a_cached_prefix_makes_the_first_token_come_eight_times_sooner() -> None:
    shape = geometry(context=2048, pages=200, tokens=256, page_tokens=32)
    driver = Driver(shape, device=SimulatedDevice(shape, costs=Costs(1e-3, 1e-3, 1e-3, 0)))
    spent = []
    for number, question in enumerate((5, 50)):
        start = driver.device.now
        driver.admit(request(number, [*chat(1500), *chat(50, question)], 2))
        while not driver.tokens(number):
            driver.step()
        spent.append(driver.device.now - start)
        driver.run()
    assert spent[1] <= spent[0] / 8


def test_a_matched_stop_keeps_the_prompt_and_discards_the_turn() -> None:
    driver = Driver(geometry())
    serve(driver, 1, chat(10), 40, monitor=StopAfter(9))
    turn = [*chat(10), *driver.tokens(1)]
    assert serve(driver, 2, [*turn, 1]) == 10


def test_a_stop_at_the_first_token_discards_the_snapshot_in_flight() -> None:
    driver = Driver(geometry())
    serve(driver, 1, chat(10), 1, use_cache=False)
    (first,) = driver.tokens(1)
    serve(driver, 2, chat(10), 5, stop_tokens=(first,))
    assert driver.scheduler.residency.rows.published == 0
    assert driver.scheduler.residency.rows.free == driver.shape.snapshots


def test_a_failed_step_publishes_no_snapshot() -> None:
    def tamper(submission: Submission, completion: Completion) -> Completion:
        if any(lane.snapshot_destination >= 0 for lane in submission.lanes):
            return Completion(completion.sequence, completion.frame, error=ValueError("broken"))  # type: ignore[arg-type]
        return completion

    shape = geometry()
    driver = Driver(shape, device=SimulatedDevice(shape, tamper=tamper))
    driver.admit(request(1, chat(11), 4))
    driver.run()
    assert driver.scheduler.residency.rows.published == 0
    assert driver.scheduler.residency.rows.free == shape.snapshots


def test_eviction_takes_the_least_recently_used_and_never_what_is_in_use() -> None:
    driver = Driver(geometry(pages=20, snapshots=0), SchedulerPolicy(turn_snapshots=False))
    serve(driver, 1, chat(21, 0))
    serve(driver, 2, chat(21, 30))
    serve(driver, 3, chat(21, 60))
    assert serve(driver, 4, chat(21, 0), 2) == 20, "it was used last"
    serve(driver, 5, chat(29, 45), 2)
    assert serve(driver, 6, chat(21, 0), 2) == 20
    assert serve(driver, 7, chat(21, 30), 2) < 20, "the oldest lost its end first"
    assert driver.scheduler.residency.pages_evicted > 0


def test_snapshots_are_evicted_by_recency() -> None:
    driver = Driver(geometry(snapshots=2, pages=60), SchedulerPolicy(turn_snapshots=False))
    for number, start in enumerate((0, 30, 60)):
        serve(driver, number, chat(3, start), 1)
    assert driver.scheduler.residency.snapshots_evicted == 1
    assert serve(driver, 10, chat(3, 60), 1) == 2
    assert serve(driver, 11, chat(3, 30), 1) == 2
    assert serve(driver, 12, chat(3, 0), 1) == 0


def test_without_restore_programs_only_whole_pages_are_reused() -> None:
    driver = Driver(geometry(without=[Operation.RESTORE]))
    serve(driver, 1, chat(11))
    assert serve(driver, 2, chat(11)) == 8
    recurrent = Driver(geometry(without=[Operation.RESTORE], recurrent=True))
    serve(recurrent, 1, chat(11))
    assert serve(recurrent, 2, chat(11)) == 0


# ---- the tree itself -------------------------------------------------------------------------


def test_pages_with_equal_hashes_are_told_apart() -> None:
    modulus = 2**61 - 1  # Python hashes integers modulo this prime
    left, right = (0, 1), (modulus, 1)
    assert hash(left) == hash(right)
    tree = PrefixTree(SnapshotRows(0, exact=False))
    path = tree.lock("", iter(()))
    assert tree.extend(path, left, 7)
    assert len(tree.lock("", iter([right]))) == 1
    assert tree.lock("", iter([left]))[1].page == 7


steps = st.lists(
    st.tuples(st.lists(st.integers(0, 2), max_size=5), st.booleans(), st.booleans()), max_size=60
)


@given(steps=steps)
@settings(max_examples=60, derandomize=True, deadline=None)
def test_the_tree_agrees_with_a_set_of_prefixes(
    steps: list[tuple[list[int], bool, bool]],
) -> None:
    """The gold model: a set of known paths, a list of their last uses, children before parents."""
    tree = PrefixTree(SnapshotRows(0, exact=False))
    known: dict[tuple[int, ...], int] = {}
    used: list[tuple[int, ...]] = []
    pages = iter(range(10_000))
    for keys, extends, evicts in steps:
        path = tree.lock("", iter([(key,) for key in keys]))
        prefixes = [tuple(keys[:end]) for end in range(1, len(keys) + 1)]
        expected = [known[p] for p in prefixes if p in known]
        assert [node.page for node in path[1:]] == expected
        if extends:
            for prefix in prefixes[len(expected) :]:
                known[prefix] = next(pages)
                assert tree.extend(path, (prefix[-1],), known[prefix])
        touched = prefixes[: len(path) - 1]
        used = [p for p in used if p not in touched] + touched[::-1]
        tree.unlock(path)
        assert tree.unreferenced == tree.pages == len(known) == len(used)
        if evicts:
            page = tree.evict()
            assert page == (known.pop(used.pop(0)) if used else -1)
