"""Which values of a program may share memory, and where each lies, by liveness.

Operations run in order, so two values may share bytes exactly if one's last use comes before the
other's definition. An operation's results never share with its own operands. Retained values
(checkpoints, observation) live to the end and never share.

Sharing is decided once per program, not once per size: values are gathered in slots, and a slot
is as large as its largest member at the lengths at hand. So the size of an arena is a monotone
function of the extents, known without planning again.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from functools import cache, cached_property

from helios.contract.tensor import TensorType
from helios.program.ir import Program, Value
from helios.records import dataclass

ALIGNMENT = 64  # a cache line, and a full vector register


@dataclass(frozen=True, slots=True)
class Placement:
    """A value's place: [offset, offset + nbytes) of the arena."""

    name: str
    offset: int
    nbytes: int
    first: int  # operation that defines it
    last: int  # operation that uses it last


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A value and the operations between which it must survive, both included."""

    value: Value
    first: int
    last: int


@dataclass(frozen=True)
class Arena:
    """The slots of one program. Members of a slot are never alive at the same time.

    `types` lists each slot's distinct types, which alone decide its size.
    """

    slots: tuple[tuple[Lifetime, ...], ...]
    types: tuple[tuple[TensorType, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        types = (tuple(dict.fromkeys(life.value.type for life in slot)) for slot in self.slots)
        object.__setattr__(self, "types", tuple(types))

    @cached_property
    def extents(self) -> tuple[str, ...]:
        """The extents that the arena grows with."""
        dims = (dim for types in self.types for type_ in types for dim in type_.shape)
        return tuple(sorted({dim for dim in dims if isinstance(dim, str)}))

    @cached_property
    def _known(self) -> dict[tuple[int, ...], int]:
        return {}

    def nbytes(self, lengths: Mapping[str, int]) -> int:
        """Bytes of the arena at those extent lengths."""
        # A search over limits that values don't depend on asks the same again and again.
        key = tuple([lengths[name] for name in self.extents])
        if key not in self._known:
            size = _sizes(lengths)
            self._known[key] = sum(_slot_nbytes(types, size) for types in self.types)
        return self._known[key]

    def placements(self, lengths: Mapping[str, int]) -> tuple[Placement, ...]:
        """Every value's place at those extent lengths, in order of definition."""
        found = []
        offset = 0
        size = _sizes(lengths)
        for slot, types in zip(self.slots, self.types, strict=True):
            for life in slot:
                nbytes = aligned(size(life.value.type))
                found.append(Placement(life.value.name, offset, nbytes, life.first, life.last))
            offset += _slot_nbytes(types, size)
        return tuple(sorted(found, key=lambda p: (p.first, p.name)))


def plan_arena(program: Program, retained: Collection[str] = ()) -> Arena:
    """Slots for all values of a program.

    The largest values (at the program's capacities) come first, each into the first slot where
    nothing lives at the same time: greedy by size, after arXiv:2001.03288.
    """
    size = _sizes({extent.name: extent.capacity for extent in program.extents})
    lives = sorted(
        lifetimes(program),
        key=lambda life: (-size(life.value.type), life.first, life.value.name),
    )
    shared: list[_Slot] = []
    alone: list[tuple[Lifetime, ...]] = []
    for life in lives:
        if life.value.name in retained:
            alone.append((life,))
            continue
        slot = next((slot for slot in shared if slot.is_free(life)), None)
        if slot is None:
            slot = _Slot()
            shared.append(slot)
        slot.add(life)
    return Arena((*(tuple(slot.members) for slot in shared), *alone))


def lifetimes(program: Program) -> tuple[Lifetime, ...]:
    """How long each value must survive, in order of definition."""
    defined: dict[str, tuple[Value, int]] = {}
    last: dict[str, int] = {}
    for index, op in enumerate(program.ops):
        for operand in op.operands:
            if isinstance(operand, Value):
                last[operand.name] = index
        for result in op.results:
            defined[result.name] = (result, index)
            last[result.name] = index
    return tuple([Lifetime(value, first, last[name]) for name, (value, first) in defined.items()])


def aligned(nbytes: int) -> int:
    """Rounded up to whole cache lines."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


class _Slot:
    """Lifetimes that do not overlap, and their spans in order."""

    def __init__(self) -> None:
        self.members: list[Lifetime] = []
        self._spans: list[tuple[int, int]] = []

    def is_free(self, life: Lifetime) -> bool:
        after = bisect_left(self._spans, (life.first, 0))
        if after < len(self._spans) and self._spans[after][0] <= life.last:
            return False
        return after == 0 or self._spans[after - 1][1] < life.first

    def add(self, life: Lifetime) -> None:
        insort(self._spans, (life.first, life.last))
        self.members.append(life)


def _sizes(lengths: Mapping[str, int]) -> Callable[[TensorType], int]:
    """Bytes of a type, worked out once: a program's values are of few types."""
    return cache(lambda type_: type_.nbytes(lengths))


def _slot_nbytes(types: Sequence[TensorType], size: Callable[[TensorType], int]) -> int:
    return max([aligned(size(type_)) for type_ in types])
