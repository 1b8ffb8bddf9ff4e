"""Lowering attention over paged history."""

from helios.program.ir import Ref
from helios.runtime.cpu.lowering import Lowering, Params, operands
from helios.runtime.cpu.schedule import Node


def _paging(low: Lowering, table: Ref, plane: Ref) -> Params:
    pages, page_tokens, heads, dim = plane.type.shape
    return {
        "page_table": low.at(table),
        "table_rows": low.rows(table),
        "table_columns": low.inner(table),
        "pages": low.dim(pages),
        "page_tokens": low.dim(page_tokens),
        "key_heads": low.dim(heads),
        "dim": low.dim(dim),
        "dtype": int(plane.type.dtype),
        "bfloat16": int(low.numerics.bfloat16),
    }


def cache_write(low: Lowering, node: Node) -> None:
    """cache_write. Keys lie otherwise than values, so what attention reads a plane as decides."""
    x, rows, positions, slots, table, plane = operands(node, 6)
    low.emit(
        "cache_write",
        count=low.count(x),
        x=low.at(x),
        rows=low.at(rows),
        positions=low.at(positions),
        slots=low.at(slots),
        plane=low.at(plane),
        keys=int(low.holds_keys(plane)),
        **_paging(low, table, plane),
    )


def paged_attention(low: Lowering, node: Node) -> None:
    """paged_attention, quantised where products read it."""
    q, rows, positions, slots, table, keys, values = operands(node, 7)
    sinks = node.op.operands[7] if len(node.op.operands) > 7 else None
    result = node.op.results[0]
    _, heads, _ = q.type.shape
    attributes = node.op.attributes
    low.emit(
        "paged_attention",
        count=low.count(q),
        q=low.at(q),
        rows=low.at(rows),
        positions=low.at(positions),
        slots=low.at(slots),
        keys=low.at(keys),
        values=low.at(values),
        sinks=low.at(sinks),
        out=low.at(result) if node.plain else 0,
        heads=low.dim(heads),
        scale=attributes["scale"],
        window=attributes["window"],
        softcap=attributes["softcap"],
        **_paging(low, table, keys),
        **low.region(result, node.leaves),
    )
