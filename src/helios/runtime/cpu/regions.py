"""Numbered workspace regions: quantised values while they are read, rotation tables for a step."""

from collections.abc import Iterator, Sequence

from helios.program.ir import Op, Ref, Value
from helios.runtime.cpu.schedule import Form, Gated, Node, Quantise, Round, Scheduled

ROPE_TABLES = 1000
"""Rotation tables are numbered from here; quantised values from 0."""


def quantised_regions(nodes: Sequence[Scheduled]) -> dict[Form, int]:
    """A region for every quantised value; those never wanted together share one."""
    spans: dict[Form, tuple[int, int]] = {}
    for index, node in enumerate(nodes):
        for form in _forms(node):
            spans[form] = (spans.get(form, (index, index))[0], index)
    found: dict[Form, int] = {}
    busy: list[tuple[int, int]] = []  # region, last node that reads it
    for form, (first, last) in sorted(spans.items(), key=lambda item: item[1]):
        busy = [(region, end) for region, end in busy if end >= first]
        taken = {region for region, _ in busy}
        region = next(r for r in range(len(busy) + 1) if r not in taken)
        found[form] = region
        busy.append((region, last))
    return found


def _forms(node: Scheduled) -> Iterator[Form]:
    if not isinstance(node, Node) and node.planes:
        yield node.x.name, node.planes
    if isinstance(node, Gated) and node.leaves:
        yield node.activation.results[0].name, node.leaves
    if isinstance(node, Node) and node.leaves:
        yield node.op.results[0].name, node.leaves


def rope_key(op: Op) -> tuple[Ref, Ref, float]:
    """What a rotation's table depends on: positions, frequencies, magnitude."""
    _, positions, frequencies = op.operands
    magnitude = op.attributes["magnitude"]
    assert positions is not None
    assert frequencies is not None
    assert isinstance(magnitude, float)
    return positions, frequencies, magnitude


def rope_tables(nodes: Sequence[Scheduled]) -> dict[tuple[Ref, Ref, float], int]:
    """A region for every distinct rotation table."""
    found: dict[tuple[Ref, Ref, float], int] = {}
    for node in nodes:
        if isinstance(node, Node) and node.op.kind == "rope":
            found.setdefault(rope_key(node.op), ROPE_TABLES + len(found))
    return found


def touched(node: Scheduled) -> Iterator[Ref]:
    """Everything a node reads or writes in plain form."""
    if isinstance(node, Quantise):
        yield node.x
    elif isinstance(node, Round):
        if not node.planes:
            yield node.x
        for product in node.products:
            yield product.out
            if product.residual is not None:
                yield product.residual
    elif isinstance(node, Gated):
        if not node.planes:
            yield node.x
        if node.plain:
            yield node.activation.results[0]
    else:
        yield from (o for o in node.op.operands if o is not None)
        if node.plain:
            yield from node.op.results


def plain_values(nodes: Sequence[Scheduled]) -> Iterator[tuple[int, Value]]:
    """Every use of a value in plain form, as (node, value)."""
    for index, node in enumerate(nodes):
        for ref in touched(node):
            if isinstance(ref, Value):
                yield index, ref
