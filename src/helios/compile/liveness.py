"""Where each value lies in a program's arena, by liveness.

Operations run in order, so two values may share bytes exactly if one's last use comes before the
other's definition. An operation's results never share with its own operands. Retained values
(checkpoints, observation) live to the end and never share.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from helios.program.ir import Program, Value

ALIGNMENT = 64  # a cache line, and a full vector register


@dataclass(frozen=True, slots=True)
class Placement:
    """A value's place: [offset, offset + nbytes) of the arena."""

    name: str
    offset: int
    nbytes: int
    first: int  # operation that defines it
    last: int  # operation that uses it last


def plan_arena(
    program: Program, lengths: Mapping[str, int], retained: Collection[str] = ()
) -> tuple[tuple[Placement, ...], int]:
    """Places for all values at the given extent lengths, and the arena's size in bytes.

    Largest values are placed first, each at the lowest gap between the values it overlaps in
    time (greedy by size, arXiv:2001.03288).
    """
    lives = _lifetimes(program, retained)
    order = sorted(
        lives, key=lambda value: (-_aligned(value.type.nbytes(lengths)), lives[value][0], value.name)
    )
    placed: list[Placement] = []
    for value in order:
        first, last = lives[value]
        nbytes = _aligned(value.type.nbytes(lengths))
        rivals = sorted(
            (p.offset, p.offset + p.nbytes) for p in placed if p.first <= last and first <= p.last
        )
        placed.append(Placement(value.name, _lowest_gap(rivals, nbytes), nbytes, first, last))
    size = max((p.offset + p.nbytes for p in placed), default=0)
    return tuple(sorted(placed, key=lambda p: (p.first, p.name))), size


def _lifetimes(program: Program, retained: Collection[str]) -> dict[Value, tuple[int, int]]:
    lives: dict[Value, tuple[int, int]] = {}
    for index, op in enumerate(program.ops):
        for operand in op.operands:
            if isinstance(operand, Value):
                lives[operand] = (lives[operand][0], index)
        for result in op.results:
            lives[result] = (index, index)
    end = len(program.ops)
    return {v: (first, end if v.name in retained else last) for v, (first, last) in lives.items()}


def _lowest_gap(rivals: list[tuple[int, int]], nbytes: int) -> int:
    offset = 0
    for start, end in rivals:
        if start - offset >= nbytes:
            break
        offset = max(offset, end)
    return offset


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
