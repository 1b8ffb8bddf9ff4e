"""What lowering knows of a program: addresses, counts, regions; and the steps made so far.

A step is a kind and its parameters by name; `native/src/steps/` reads them. A count is the name of
a dynamic extent, or a number.
"""

from collections.abc import Mapping
from math import prod
from typing import Any

from helios.program.extents import ROWS, SAMPLED, TOKENS
from helios.program.ir import Buffer, Dim, Ref
from helios.runtime.cpu.numerics import Numerics
from helios.runtime.cpu.placement import Placement
from helios.runtime.cpu.regions import quantised_regions, rope_tables
from helios.runtime.cpu.schedule import Node, Schedule

Params = dict[str, Any]
Step = tuple[str, Params]

_DYNAMIC = (ROWS, TOKENS, SAMPLED)


class Lowering:
    """One program on its way to native steps. `lengths` has the capacity of every extent."""

    def __init__(
        self, plan: Schedule, placement: Placement, lengths: Mapping[str, int], numerics: Numerics
    ) -> None:
        self.placement = placement
        self.numerics = numerics
        self.regions = quantised_regions(plan.nodes)
        self.tables = rope_tables(plan.nodes)
        self.tables_made: set[int] = set()
        self.steps: list[Step] = []
        self._plan = plan
        self._lengths = lengths

    def emit(self, kind: str, **params: Any) -> None:
        """Append a step."""
        self.steps.append((kind, params))

    def named(self, node: Node, *names: str, **more: Any) -> None:
        """Append a step of the operation's own name whose operands keep these names."""
        result = node.op.results[0]
        found = dict(zip(names, map(self.at, operands(node, len(names))), strict=True))
        out = self.at(result) if node.plain else 0
        self.emit(node.op.kind, count=self.count(result), out=out, **found, **more)

    def at(self, ref: Ref | None) -> int:
        """The absolute address, or 0 for an absent operand."""
        return 0 if ref is None else self.placement.address(self._plan.root(ref))

    def holds_keys(self, plane: Ref) -> bool:
        """Whether attention reads a plane as keys."""
        return plane.name in self.placement.keys

    def is_late(self, ref: Ref | None) -> bool:
        """Whether it is a buffer that the host may fill while the program runs."""
        return isinstance(ref, Buffer) and ref.name in self.placement.late

    def dim(self, dim: Dim) -> int:
        """A dimension's capacity."""
        return dim if isinstance(dim, int) else self._lengths[dim]

    def count(self, ref: Ref) -> str | int:
        """The leading dimension as a step takes it."""
        lead = ref.type.shape[0]
        return lead if isinstance(lead, str) and lead in _DYNAMIC else self.dim(lead)

    def rows(self, ref: Ref) -> int:
        """The capacity of the leading dimension."""
        return self.dim(ref.type.shape[0])

    def inner(self, ref: Ref) -> int:
        """Elements of one row of the leading dimension."""
        return prod([self.dim(d) for d in ref.type.shape[1:]])

    def bytes(self, ref: Ref) -> int:
        """Bytes of one row of the leading dimension."""
        return self.inner(ref) * ref.type.dtype.nbytes

    def region(self, ref: Ref, planes: int) -> Params:
        """Where a quantised form of a value lies; nothing for none."""
        return {"region": self.regions[ref.name, planes], "planes": planes} if planes else {}


def operands(node: Node, count: int) -> tuple[Ref, ...]:
    """The first `count` operands, none of which may be absent."""
    return tuple(ref for ref in node.op.operands[:count] if ref is not None)
