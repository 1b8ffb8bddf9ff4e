from collections.abc import Mapping
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_models import ToyModel

from helios.compile.liveness import (
    ALIGNMENT,
    Placement,
    aligned,
    lifetimes,
    plan_arena,
)
from helios.contract.operation import Operation
from helios.program.builder import ProgramBuilder
from helios.program.ir import DType, ExtentKind, Program, Value

LENGTHS = {"T": 40, "B": 3}


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Straight lines of additions and scalings over tensors of two extents and many widths."""
    builder = ProgramBuilder("random", Operation.DECODE)
    builder.extent("T", ExtentKind.DYNAMIC, 64)
    builder.extent("B", ExtentKind.DYNAMIC, 8)
    values: list[Value] = []
    for place in range(draw(st.integers(1, 30))):
        if not values or draw(st.booleans()):
            shape = (draw(st.sampled_from(["T", "B"])), draw(st.integers(1, 70)))
            source = builder.transport(f"in.{place}", DType.F32, shape)
            values.append(builder.value("scale", source, factor=2.0))
        else:
            left = draw(st.sampled_from(values))
            same = [v for v in values if v.type == left.type]
            values.append(builder.value("add", left, draw(st.sampled_from(same))))
    return builder.build()


def largest_live_nbytes(program: Program, lengths: Mapping[str, int]) -> int:
    """The most bytes alive during any one operation: no arena can be smaller."""
    changes = [0] * (len(program.ops) + 1)
    for life in lifetimes(program):
        nbytes = aligned(life.value.type.nbytes(lengths))
        changes[life.first] += nbytes
        changes[life.last + 1] -= nbytes
    most = alive = 0
    for change in changes:
        alive += change
        most = max(most, alive)
    return most


def _overlap(a: Placement, b: Placement) -> bool:
    return a.offset < b.offset + b.nbytes and b.offset < a.offset + a.nbytes


@settings(derandomize=True, deadline=None, max_examples=80)
@given(programs(), st.data())
def test_values_alive_together_never_share(program: Program, data: st.DataObject) -> None:
    names = [v.name for v in program.values()]
    retained = data.draw(st.sets(st.sampled_from(names), max_size=3))
    arena = plan_arena(program, retained)
    places = arena.placements(LENGTHS)
    assert sorted(p.name for p in places) == sorted(names)
    for a, b in combinations(places, 2):
        together = a.first <= b.last and b.first <= a.last
        if together or a.name in retained or b.name in retained:
            assert not _overlap(a, b)
    ends = [p.offset + p.nbytes for p in places]
    assert max(ends) <= arena.nbytes(LENGTHS)
    assert all(p.offset % ALIGNMENT == 0 for p in places)
    assert arena.nbytes(LENGTHS) >= largest_live_nbytes(program, LENGTHS)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(programs(), st.integers(1, 60), st.integers(1, 7))
def test_an_arena_never_shrinks_with_its_extents(program: Program, t: int, b: int) -> None:
    arena = plan_arena(program)
    size = arena.nbytes({"T": t, "B": b})
    assert size <= arena.nbytes({"T": t + 1, "B": b})
    assert size <= arena.nbytes({"T": t, "B": b + 1})


def test_sharing_saves_most_of_the_memory(toy: ToyModel) -> None:
    program = toy.program(Operation.PREFILL)
    lengths = {e.name: e.capacity or 1 for e in program.extents}
    arena = plan_arena(program)
    apart = sum(p.nbytes for p in arena.placements(lengths))
    assert arena.nbytes(lengths) < apart / 3
    assert arena.nbytes(lengths) < 1.25 * largest_live_nbytes(program, lengths)


def test_retaining_changes_the_layout(toy: ToyModel) -> None:
    program = toy.program(Operation.DECODE)
    first = lifetimes(program)[0].value.name
    lengths = {e.name: e.capacity or 1 for e in program.extents}
    assert plan_arena(program, [first]).placements(lengths) != plan_arena(program).placements(
        lengths
    )


@pytest.mark.parametrize("operation", [Operation.PREFILL, Operation.DECODE, Operation.MIXED])
def test_everything_may_be_retained(toy: ToyModel, operation: Operation) -> None:
    program = toy.program(operation)
    names = [v.name for v in program.values()]
    lengths = {e.name: e.capacity or 1 for e in program.extents}
    arena = plan_arena(program, names)
    assert arena.nbytes(lengths) == sum(p.nbytes for p in arena.placements(lengths))
