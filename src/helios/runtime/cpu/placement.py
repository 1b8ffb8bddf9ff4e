"""Where everything a program names lies in memory."""

from bisect import insort
from collections.abc import Iterable, Mapping
from dataclasses import field

from helios.compile.liveness import aligned
from helios.errors import CompileError
from helios.program.ir import Buffer, Ref, Value, Weight
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class PackedWeight:
    """A weight in one of the native layouts, at an absolute address."""

    address: int
    layout: str
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Placement:
    """The addresses of one program: an arena with its values, buffers and weights.

    `keys` names the planes that hold keys, and `late` the buffers that the host may still fill
    while the program runs; `latch` is where the program waits for it.
    """

    arena: int
    value_offset: Mapping[str, int] = field(hash=False)
    buffer_address: Mapping[str, int] = field(hash=False)
    weights: Mapping[str, PackedWeight] = field(hash=False)
    keys: frozenset[str] = frozenset()
    late: frozenset[str] = frozenset()
    latch: int = 0

    def address(self, ref: Ref) -> int:
        """The absolute address of whatever an operation names."""
        if isinstance(ref, Value):
            return self.arena + self.value_offset[ref.name]
        if isinstance(ref, Buffer):
            return self.buffer_address[ref.name]
        return self.weights[ref.name].address

    def weight(self, ref: Ref | None) -> PackedWeight:
        """The packed form of a weight operand."""
        assert isinstance(ref, Weight)
        return self.weights[ref.name]


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Bytes that must survive from one step to another, both included."""

    name: str
    nbytes: int
    first: int
    last: int


def place(lifetimes: Iterable[Lifetime], limit: int) -> dict[str, int]:
    """Offsets at which no two lifetimes that overlap share a byte.

    The largest go first, each to the lowest place that is free for as long as it lives. Raises
    `CompileError` where they need more than `limit` bytes.
    """
    placed: list[tuple[int, Lifetime]] = []
    for life in sorted(lifetimes, key=lambda x: (-x.nbytes, x.first, x.name)):
        offset = 0
        for taken, other in placed:
            if other.last < life.first or life.last < other.first:
                continue
            if offset + aligned(life.nbytes) <= taken:
                break
            offset = max(offset, taken + aligned(other.nbytes))
        if offset + life.nbytes > limit:
            raise CompileError(
                "the fused program needs a larger arena than was planned",
                field=f"values.{life.name}",
                value=offset + life.nbytes,
                remedy=f"the arena has {limit} bytes",
            )
        insort(placed, (offset, life), key=lambda x: x[0])
    return {life.name: offset for offset, life in placed}
