"""Records are what `dataclasses` makes of the same class."""

import copy
import dataclasses
import inspect
import pickle
import weakref
from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, InitVar, field
from functools import partial
from typing import Any

import pytest

from helios import records

Decorator = Callable[..., Any]
MANY = 25  # objects: more than are made without compiling


def _defaults(decorate: Decorator) -> Any:
    @decorate(frozen=True, slots=True)
    class Item:
        name: str
        sizes: tuple[int, ...] = (1, 2)
        tags: list[str] = field(default_factory=list)
        facts: Mapping[str, int] = field(default_factory=dict, hash=False)
        secret: str = field(default="s", repr=False)
        note: str = field(default="n", compare=False)
        made: int = field(default=7, init=False)
        fresh: list[int] = field(default_factory=lambda: [3], init=False, hash=False)
        last: int = field(default=0, kw_only=True)

    return Item


def _settled(decorate: Decorator) -> Any:
    @decorate(frozen=True, slots=True, weakref_slot=True)
    class Item:
        name: str
        sealed: InitVar[int]
        length: int = field(init=False)

        def __post_init__(self, sealed: int) -> None:
            object.__setattr__(self, "length", len(self.name) + sealed)

    return Item


def _own(decorate: Decorator) -> Any:
    @decorate(frozen=True)
    class Item:
        name: str

        def __post_init__(self) -> None:
            object.__setattr__(self, "name", self.name.upper())

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return "mine"

    return Item


def _empty(decorate: Decorator) -> Any:
    @decorate(frozen=True, slots=True)
    class Item:
        pass

    return Item


CASES: list[tuple[Callable[[Decorator], Any], list[tuple[tuple[Any, ...], dict[str, Any]]]]] = [
    (
        _defaults,
        [
            (("a",), {}),
            (("a", (1,)), {"last": 2}),
            (("a",), {"note": "x"}),
            (("a",), {"tags": (), "secret": "t"}),
            ((), {}),
            (("a",), {"made": 1}),
            (("a", (), (), {}, "s", "n", 1), {}),
        ],
    ),
    (_settled, [(("a", 1), {}), (("b",), {"sealed": 2}), (("a",), {})]),
    (_own, [(("a",), {}), (("b",), {}), ((), {"other": 1})]),
    (_empty, [((), {}), ((1,), {})]),
]
BOTH = pytest.mark.parametrize(("define", "calls"), CASES, ids=["defaults", "set", "own", "empty"])


def _outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


def _told(made: Any) -> Any:
    """What can be said of an object without saying which class it is of."""
    if isinstance(made, tuple):
        return made
    values = [getattr(made, f.name) for f in dataclasses.fields(made)]
    return (
        values,
        repr(made).replace("_defaults.", "").replace("_settled.", ""),
        _outcome(lambda: hash(made)),
        made == copy.copy(made),
        made != object(),
        dataclasses.asdict(made),
    )


@BOTH
def test_objects_are_the_same(define: Any, calls: Any) -> None:
    ours, library = define(records.dataclass), define(dataclasses.dataclass)
    for _ in range(MANY):
        for operands, named in calls:
            made = [_outcome(partial(kind, *operands, **named)) for kind in (ours, library)]
            assert _told(made[0]) == _told(made[1])


@BOTH
def test_classes_are_the_same(define: Any, calls: Any) -> None:
    ours, library = define(records.dataclass), define(dataclasses.dataclass)
    assert ours.__match_args__ == library.__match_args__
    assert ours.__dataclass_params__.frozen
    assert hasattr(ours, "__slots__") == hasattr(library, "__slots__")
    assert [f.name for f in dataclasses.fields(ours)] == [
        f.name for f in dataclasses.fields(library)
    ]
    for _ in range(MANY):
        ours(*calls[0][0], **calls[0][1])
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(library).parameters)


@BOTH
def test_fields_are_frozen(define: Any, calls: Any) -> None:
    made = define(records.dataclass)(*calls[0][0], **calls[0][1])
    with pytest.raises(FrozenInstanceError):
        made.name = "other"
    with pytest.raises(FrozenInstanceError):
        del made.name
    with pytest.raises(FrozenInstanceError):
        made.unknown = 1


@BOTH
def test_equal_fields_are_equal_in_one_class_only(define: Any, calls: Any) -> None:
    operands, named = calls[0]
    ours = define(records.dataclass)
    assert ours(*operands, **named) == ours(*operands, **named)
    assert ours(*operands, **named) != define(records.dataclass)(*operands, **named)


def test_values_that_are_not_equal_to_themselves_are_compared_as_tuples_compare() -> None:
    @records.dataclass(frozen=True, slots=True)
    class One:
        value: float

    nan = float("nan")
    assert One(nan) == One(nan)
    assert One(nan) != One(float("nan"))


@records.dataclass(frozen=True, slots=True, weakref_slot=True)
class Kept:
    name: str
    facts: tuple[int, ...] = ()


def test_records_are_pickled_copied_replaced_and_referred_to() -> None:
    kept = Kept("a", (1, 2))
    assert pickle.loads(pickle.dumps(kept)) == kept
    assert copy.deepcopy(kept) == kept
    assert dataclasses.replace(kept, name="b") == Kept("b", (1, 2))
    assert weakref.ref(kept)() is kept


def test_a_record_that_holds_itself_is_shown() -> None:
    @records.dataclass(frozen=True)
    class Node:
        next: list[Any]

    node = Node([])
    node.next.append(node)
    assert repr(node).endswith("Node(next=[...])")


def test_what_is_not_frozen_or_has_a_base_is_the_library_s() -> None:
    @records.dataclass
    class Loose:
        name: str

    loose = Loose("a")
    loose.name = "b"
    assert loose == Loose("b")

    @records.dataclass(frozen=True, slots=True)
    class Longer(Kept):
        more: int = 1

    assert Longer("a", (), 2) == Longer("a", (), 2)
    assert Longer("a") != Kept("a")
    with pytest.raises(FrozenInstanceError):
        Longer("a").more = 3  # type: ignore[misc]


def test_fields_of_a_class_with_few_objects_are_as_those_of_one_with_many() -> None:
    few, many = _defaults(records.dataclass), _defaults(records.dataclass)
    for _ in range(MANY):
        many("a")
    assert inspect.signature(few).parameters.keys() != inspect.signature(many).parameters.keys()
    for operands, named in CASES[0][1]:
        made = [_outcome(partial(kind, *operands, **named)) for kind in (few, many)]
        assert _told(made[0]) == _told(made[1])
    assert few("a").tags is not few("a").tags
