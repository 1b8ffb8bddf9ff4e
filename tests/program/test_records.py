"""Records are what `dataclasses` makes of the same class, before and after their first call."""

import copy
import dataclasses
import pickle
import weakref
from collections.abc import Callable
from dataclasses import FrozenInstanceError, InitVar, field
from functools import cached_property
from typing import Any, ClassVar

import pytest

from helios import records

Decorate = Callable[..., Any]
MAKERS = pytest.mark.parametrize("dataclass", [records.dataclass, dataclasses.dataclass])


@records.dataclass(frozen=True, slots=True)
class Stored:
    """At the top of a module, so that it can be pickled."""

    name: str
    sizes: tuple[int, ...] = ()


@MAKERS
def test_values_compare_hash_and_show_by_their_fields(dataclass: Decorate) -> None:
    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: int = 2
        names: list[str] = field(default_factory=list, hash=False, repr=False)

    assert Point(1) == Point(1, 2, [])
    assert Point(1) != Point(2)
    assert Point(1) != (1, 2, [])
    assert hash(Point(1, names=["a"])) == hash((1, 2))
    assert repr(Point(1)).endswith("Point(x=1, y=2)")
    assert Point(1).names is not Point(1).names
    assert dataclasses.replace(Point(1), y=5) == Point(1, 5)
    assert [f.name for f in dataclasses.fields(Point)] == ["x", "y", "names"]
    assert Point.__match_args__ == ("x", "y", "names")
    for wrong in ((), (1, 2, [], 4)):
        with pytest.raises(TypeError, match="__init__"):
            Point(*wrong)
    with pytest.raises(TypeError, match="z"):
        Point(1, z=3)


@MAKERS
def test_records_are_frozen(dataclass: Decorate) -> None:
    @dataclass(frozen=True, slots=True)
    class Point:
        x: int

    point = Point(1)
    for change in (lambda: setattr(point, "x", 2), lambda: setattr(point, "z", 2)):
        with pytest.raises((FrozenInstanceError, TypeError)):
            change()
    with pytest.raises(FrozenInstanceError):
        del point.x
    assert not hasattr(point, "__dict__")


@MAKERS
def test_what_a_class_defines_itself_is_kept(dataclass: Decorate) -> None:
    @dataclass(frozen=True)
    class Half:
        of: int
        scale: InitVar[int] = 1
        known: ClassVar[int] = 7

        def __post_init__(self, scale: int) -> None:
            object.__setattr__(self, "of", self.of * scale)

        def __hash__(self) -> int:
            return 11

        def __repr__(self) -> str:
            return "half"

        @cached_property
        def value(self) -> float:
            return self.of / 2

    half = Half(3, 2)
    assert (half.of, half.value, half.known, hash(half), repr(half)) == (6, 3.0, 7, 11, "half")
    assert half == Half(6)


@MAKERS
def test_an_equality_of_its_own_does_not_stop_hashing(dataclass: Decorate) -> None:
    @dataclass(frozen=True, slots=True)
    class Loose:
        x: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Loose)

    assert Loose(1) == Loose(2)
    assert hash(Loose(1)) == hash((1,))


@MAKERS
def test_subclasses_and_weak_references(dataclass: Decorate) -> None:
    @dataclass(frozen=True, slots=True, weakref_slot=True)
    class Base:
        x: int

    @dataclass(frozen=True, slots=True)
    class Derived(Base):
        y: int = 0

    class Open(Base):
        pass

    assert Derived(1, 2) == Derived(1, 2)
    assert Derived(1) != Base(1)
    base, opened = Base(1), Open(1)
    assert weakref.ref(base)() is base
    with pytest.raises(FrozenInstanceError):
        opened.x = 4


def test_records_are_copied_and_pickled() -> None:
    stored = Stored("a", (1, 2))
    assert copy.copy(stored) == copy.deepcopy(stored) == stored
    assert pickle.loads(pickle.dumps(stored)) == stored
