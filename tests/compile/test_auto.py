from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_models import EIGHT_BILLION, Shape, ToyModel, random_shape

from helios.compile.budget import Budget
from helios.compile.composition import CompiledModel, RuntimeComposition
from helios.compile.demand import Workload
from helios.compile.fit import Fitted, fit_model, frontier
from helios.compile.plan import Limits
from helios.compile.policy import largest
from helios.compile.report import MemoryReport
from helios.compile.request import MINIMUM_CONTEXT_PAGES, Range, Request
from helios.errors import ConfigurationError, FitError, HeliosError, StalePlanError
from helios.runtime.reference.device import ReferenceRuntime

GIB = 1 << 30
PAGE = 32


@dataclass(frozen=True)
class Case:
    """A model to be fitted."""

    toy: ToyModel
    composition: RuntimeComposition

    def fit(self, nbytes: int, **explicit: int) -> Fitted:
        return fit_model(
            self.composition,
            self.toy.prepared,
            self.toy.captured,
            Request(**explicit),
            Budget(nbytes, "the test"),
        )

    def minimum(self, **explicit: int) -> int:
        """Bytes of the smallest plan, as an error states them."""
        with pytest.raises(FitError) as caught:
            self.fit(1, **explicit)
        return int(caught.value.remedy.split("--memory ")[1].split()[0])


@pytest.fixture(scope="module")
def case() -> Case:
    """Its history outweighs what loading stages, so that every limit shows in the total."""
    shape = Shape(layers=8, width=128, heads=4, key_heads=4, inner=128, context=2048)
    return Case(ToyModel(shape, concurrency=8), ReferenceRuntime().composition())


_CASES: dict[int, Case] = {}


def _case(seed: int) -> Case:
    if seed not in _CASES:
        toy = ToyModel(random_shape(seed), concurrency=1 + seed % 7)
        _CASES[seed] = Case(toy, ReferenceRuntime().composition())
    return _CASES[seed]


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    st.integers(0, 11),
    st.floats(0, 1),
    st.fixed_dictionaries(
        {},
        optional={
            "context": st.integers(1, 600),
            "sequences": st.integers(1, 7),
            "batch_tokens": st.integers(1, 64),
            "pages": st.integers(1, 40),
            "snapshots": st.integers(0, 8),
        },
    ),
)
def test_no_choice_exceeds_its_budget(seed: int, share: float, explicit: dict[str, int]) -> None:
    """And explicit limits are honoured, or refused, whatever else happens."""
    chosen = _case(seed)
    nbytes = int(10 ** (5 + 3.5 * share))
    try:
        fitted = chosen.fit(nbytes, **explicit)
    except (FitError, ConfigurationError):
        return
    compiled = fitted.compiled
    limits = compiled.plan.limits
    assert compiled.plan.total_nbytes <= nbytes
    assert {name: getattr(limits, name) for name in explicit} == explicit
    assert limits.pages * PAGE >= limits.context
    assert limits.sequences <= min(limits.batch_tokens, limits.pages)
    assert compiled.peak_nbytes(Workload.decode(limits.context, limits.sequences)) <= nbytes
    prefill = Workload.prefill(limits.context, limits.batch_tokens)
    assert compiled.peak_nbytes(prefill) <= nbytes
    report = compiled.memory_report
    assert report is not None
    assert (report.selected, report.total_nbytes) == (limits, compiled.plan.total_nbytes)


def test_with_enough_memory_everything_is_granted(case: Case) -> None:
    limits = case.fit(GIB).compiled.plan.limits
    contract = case.toy.prepared
    assert (limits.context, limits.sequences) == (2048, 8)
    assert limits.batch_tokens == max(g.tokens for g in contract.graphs)
    assert limits.pages == 8 * (2048 // PAGE) + contract.prepared_pages
    assert limits.snapshots > contract.prepared_snapshots


def test_exactly_the_minimum_is_enough_and_a_byte_less_is_not(case: Case) -> None:
    minimum = case.minimum()
    fitted = case.fit(minimum)
    assert fitted.compiled.plan.total_nbytes == minimum
    assert fitted.compiled.plan.limits == Limits(
        context=MINIMUM_CONTEXT_PAGES * PAGE,
        sequences=1,
        batch_tokens=PAGE,
        pages=MINIMUM_CONTEXT_PAGES,
        snapshots=0,
    )
    with pytest.raises(FitError):
        case.fit(minimum - 1)


def test_batch_comes_before_context_and_context_before_sequences(case: Case) -> None:
    """Budgets between the minimum and plenty give the limits up in the reverse order."""
    minimum = case.minimum()
    full = case.fit(GIB).auto
    found = []
    for step in range(13):
        wanted = full.memory.total_nbytes(full.limits(512 + 128 * step, 1, 263))
        fitted = case.fit(max(minimum, wanted))
        limits = fitted.compiled.plan.limits
        if limits.sequences > 1 and limits.context < 2048:
            longer = fitted.auto.limits(limits.context + PAGE, 1, limits.batch_tokens)
            assert not fitted.auto.fits(longer)
        if limits.context > MINIMUM_CONTEXT_PAGES * PAGE:
            assert limits.batch_tokens == 263 or limits.context == 2048
        found.append(limits)
    assert len({limits.context for limits in found}) > 6
    crowded = full.memory.total_nbytes(full.limits(2048, 5, 263))
    limits = case.fit(crowded).compiled.plan.limits
    assert (limits.context, limits.sequences, limits.batch_tokens) == (2048, 5, 263)


def test_contexts_are_whole_pages_unless_they_are_asked_for(case: Case) -> None:
    limits = case.fit(case.minimum() + (1 << 20)).compiled.plan.limits
    assert limits.context % PAGE == 0
    assert case.fit(GIB, context=333).compiled.plan.limits.context == 333


def test_what_is_left_becomes_pages_and_snapshots(case: Case) -> None:
    needed = case.fit(GIB, pages=64, snapshots=0).compiled.plan
    more = 4 << 20
    richer = case.fit(needed.total_nbytes + more, context=2048, sequences=8, batch_tokens=263)
    limits = richer.compiled.plan.limits
    assert limits.pages > 64
    assert limits.snapshots > 0
    page_nbytes = 8 * 2 * PAGE * 128 * 2
    assert needed.total_nbytes + more - richer.compiled.plan.total_nbytes < 2 * page_nbytes


# ---- refusals -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("explicit", "option", "words"),
    [
        ({"context": 4096}, "--context", "prepared for 2048"),
        ({"sequences": 9}, "--concurrency", "prepared for 8"),
        ({"batch_tokens": 264}, "--batch-tokens", "prepared for 263"),
        ({"context": 0}, "--context", "must be positive"),
        ({"pages": 0}, "--pages", "must be positive"),
        ({"snapshots": -1}, "--snapshots", "negative"),
        ({"sequences": 8, "batch_tokens": 4}, "--batch-tokens", "token for each of 8"),
        ({"context": 2048, "pages": 63}, "--pages", "less than one context"),
        ({"sequences": 8, "pages": 7}, "--pages", "needs a page"),
    ],
    ids=str,
)
def test_what_the_model_excludes_is_a_configuration_error(
    case: Case, explicit: dict[str, int], option: str, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        case.fit(GIB, **explicit)
    assert caught.value.field == option
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("explicit", "option"),
    [
        ({"context": 2048}, "--context"),
        ({"pages": 300}, "--pages"),
        ({"snapshots": 500}, "--snapshots"),
        ({"sequences": 8, "context": 2048}, "--context"),
    ],
    ids=str,
)
def test_what_the_budget_excludes_names_the_binding_term_and_what_would_fit(
    case: Case, explicit: dict[str, int], option: str
) -> None:
    nbytes = case.minimum() + (1 << 19)
    with pytest.raises(FitError) as caught:
        case.fit(nbytes, **explicit)
    error = caught.value
    assert error.field == option
    name = next(n for n in explicit if f"--{n}".replace("_", "-") == option)
    assert error.value == explicit[name]
    assert str(nbytes) not in error.remedy
    assert option in error.remedy
    fitting = int(error.remedy.split(f"{option} ")[1].split(",")[0].split()[0])
    assert case.fit(nbytes, **{**explicit, name: fitting}).compiled.plan.total_nbytes <= nbytes
    with pytest.raises(FitError):
        case.fit(nbytes, **{**explicit, name: fitting + 1})
    needed = int(error.remedy.split("--memory ")[1].split()[0])
    assert case.fit(needed, **explicit).compiled.plan.total_nbytes <= needed


def test_the_largest_section_is_named() -> None:
    chosen = Case(ToyModel(EIGHT_BILLION), ReferenceRuntime().composition())
    with pytest.raises(FitError, match=r"weights f32 take 29\.91 GiB"):
        chosen.fit(8 * GIB)


def test_a_misfit_changes_no_numbers(case: Case) -> None:
    """Not enough memory never means fewer bits: only limits are ever searched."""
    with pytest.raises(FitError) as caught:
        case.fit(1 << 18)
    assert "--materialize" not in str(caught.value)


# ---- the frontier and the report ----------------------------------------------------------


def test_the_frontier_holds_what_it_says(case: Case) -> None:
    nbytes = case.minimum() + (1 << 22)
    fitted = case.fit(nbytes)
    points = frontier(fitted.auto)
    assert [p.context for p in points] == [2048, 1024, 512]
    assert any(p.full < p.shared for p in points)
    for point in points:
        assert point.full <= point.shared
        if point.full:
            pages = point.full * (point.context // PAGE)
            case.fit(nbytes, context=point.context, sequences=point.full, pages=pages)
        if 0 < point.shared < 8:
            with pytest.raises(HeliosError):
                case.fit(nbytes, context=point.context, sequences=point.shared + 1)


def test_a_report_is_attached_only_if_it_is_true(
    case: Case, composition: RuntimeComposition
) -> None:
    compiled = case.fit(GIB).compiled
    report = compiled.memory_report
    assert report is not None
    for wrong in (
        replace(report, selected=replace(report.selected, pages=report.selected.pages - 1)),
        replace(report, total_nbytes=report.total_nbytes - 64),
        replace(report, prefill_peak_nbytes=report.prefill_peak_nbytes + 64),
        replace(report, decode_peak_nbytes=0),
    ):
        with pytest.raises(StalePlanError, match="differs from the retained plan"):
            compiled.attach(wrong)
    with pytest.raises(FitError):
        compiled.attach(replace(report, budget_nbytes=report.total_nbytes - 1))
    assert compiled.memory_report is report


def test_a_report_of_another_compilation_is_refused(case: Case, compiled: CompiledModel) -> None:
    report = case.fit(GIB).compiled.memory_report
    assert isinstance(report, MemoryReport)
    with pytest.raises(StalePlanError):
        compiled.attach(report)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 60))
def test_largest_finds_the_last_that_fits(low: int, extra: int, bound: int) -> None:
    found = largest(Range(low, low + extra), lambda n: n <= bound)
    fitting = [n for n in range(low, low + extra + 1) if n <= bound]
    assert found == (fitting[-1] if fitting else low)
