"""Which values of a program may share memory, and where each lies, by liveness.

Operations run in order, so two values may share bytes exactly if one's last use comes before the
other's definition. An operation's results never share with its own operands. Retained values
(checkpoints, observation) live to the end and never share.

Sharing is decided once per program, not once per size: values are gathered in slots, and a slot
is as large as its largest member at the lengths at hand. So the size of an arena is a monotone
function of the extents, known without planning again.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

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


@dataclass(frozen=True, slots=True)
class Arena:
    """The slots of one program. Members of a slot are never alive at the same time.

    `types` lists each slot's distinct types, which alone decide its size.
    """

    slots: tuple[tuple[Lifetime, ...], ...]
    types: tuple[tuple[TensorType, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        types = (tuple(dict.fromkeys(life.value.type for life in slot)) for slot in self.slots)
        object.__setattr__(self, "types", tuple(types))

    def nbytes(self, lengths: Mapping[str, int]) -> int:
        """Bytes of the arena at those extent lengths."""
        return sum(_slot_nbytes(types, lengths) for types in self.types)

    def placements(self, lengths: Mapping[str, int]) -> tuple[Placement, ...]:
        """Every value's place at those extent lengths, in order of definition."""
        found = []
        offset = 0
        for slot, types in zip(self.slots, self.types, strict=True):
            for life in slot:
                nbytes = aligned(life.value.type.nbytes(lengths))
                found.append(Placement(life.value.name, offset, nbytes, life.first, life.last))
            offset += _slot_nbytes(types, lengths)
        return tuple(sorted(found, key=lambda p: (p.first, p.name)))


def plan_arena(program: Program, retained: Collection[str] = ()) -> Arena:
    """Slots for all values of a program.

    The largest values (at the program's capacities) come first, each into the first slot where
    nothing lives at the same time: greedy by size, after arXiv:2001.03288.
    """
    capacities = {extent.name: extent.capacity for extent in program.extents}
    lives = sorted(
        lifetimes(program),
        key=lambda life: (-life.value.type.nbytes(capacities), life.first, life.value.name),
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
    spans: dict[Value, tuple[int, int]] = {}
    for index, op in enumerate(program.ops):
        for operand in op.operands:
            if isinstance(operand, Value):
                spans[operand] = (spans[operand][0], index)
        for result in op.results:
            spans[result] = (index, index)
    return tuple(Lifetime(value, first, last) for value, (first, last) in spans.items())


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


def _slot_nbytes(types: Sequence[TensorType], lengths: Mapping[str, int]) -> int:
    return max(aligned(type_.nbytes(lengths)) for type_ in types)
