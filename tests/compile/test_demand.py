import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.compile.demand import Capped, Demand, Term, Workload
from helios.errors import CompileError


def test_every_kind_of_demand_adds_up() -> None:
    demand = Demand(fixed=1, per_sequence=10, per_token=100, per_page=1000, per_context=10_000)
    work = Workload(context=2, frontier=1, sequences=3, tokens=4, pages=5)
    assert demand.nbytes(work) == 1 + 30 + 400 + 5000 + 20_000


@pytest.mark.parametrize(("tokens", "nbytes"), [(1, 7), (16, 7), (17, 9), (64, 9)])
def test_a_table_pays_the_smallest_entry_that_covers(tokens: int, nbytes: int) -> None:
    demand = Demand(table=((16, 7), (64, 9)))
    assert demand.nbytes(Workload(1, 1, 1, tokens)) == nbytes


def test_past_its_table_a_demand_is_unknown() -> None:
    with pytest.raises(CompileError, match="past the demand table"):
        Demand(table=((16, 7),)).nbytes(Workload(1, 1, 1, 17))


@pytest.mark.parametrize(
    "table", [((16, 7), (16, 8)), ((16, 7), (8, 9)), ((16, 7), (32, 6))], ids=str
)
def test_tables_ascend(table: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(CompileError, match="must ascend"):
        Demand(table=table)


def test_demands_are_not_negative() -> None:
    with pytest.raises(CompileError, match="negative"):
        Demand(per_token=-1)
    with pytest.raises(CompileError, match="negative"):
        Term(-1, ("A",))


def test_terms_bind_to_the_extent_they_contain() -> None:
    demand = Demand(
        fixed=5,
        terms=(
            Term(36, ("A", "K"), per=32),
            Term(4, ("N", "K")),
            Term(2, ("B", "...")),
            Term(1, ("context", "K")),
        ),
    )
    dims = {"A": "T", "K": 100, "N": 3, "B": "B", "...": (2, 5)}
    assert demand.bind(dims) == Demand(
        fixed=5 + 1200, per_token=113, per_sequence=20, per_context=100
    )


def test_a_term_may_be_capped() -> None:
    bound = Demand(terms=(Term(10, ("T", "K"), most=500),)).bind({"T": "T", "K": 2})
    assert bound == Demand(capped=(Capped("per_token", 20, 500),))
    assert [bound.nbytes(Workload(1, 1, 1, tokens)) for tokens in (3, 25, 26)] == [60, 500, 500]
    with pytest.raises(CompileError, match="no such demand"):
        Capped("per_moon", 1, 1)


def test_unbound_terms_are_not_evaluated() -> None:
    with pytest.raises(CompileError, match="bound to an operation first"):
        Demand(terms=(Term(1, ("A",)),)).nbytes(Workload(1, 1, 1, 1))


def test_a_term_grows_with_one_extent_at_most() -> None:
    with pytest.raises(CompileError, match="at most one extent"):
        Demand(terms=(Term(1, ("A", "B")),)).bind({"A": "T", "B": "B"})


def test_a_term_names_dimensions_that_exist() -> None:
    with pytest.raises(CompileError, match="no such dimension"):
        Demand(terms=(Term(1, ("Z",)),)).bind({"A": "T"})


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 50), min_size=5, max_size=5),
    st.lists(st.integers(1, 90), min_size=5, max_size=5),
    st.integers(0, 4),
)
def test_more_work_never_needs_less(amounts: list[int], work: list[int], place: int) -> None:
    demand = Demand(*amounts[:4], table=((50, amounts[4]), (91, amounts[4] + 3)))
    more = [n + (i == place) for i, n in enumerate(work)]
    assert demand.nbytes(Workload(*work)) <= demand.nbytes(Workload(*more))


def test_the_start_up_workloads() -> None:
    assert Workload.prefill(100, 512) == Workload(100, 100, 1, 100)
    assert Workload.prefill(1000, 512) == Workload(1000, 1000, 1, 512)
    assert Workload.decode(1000, 8) == Workload(1000, 1, 8, 8)
