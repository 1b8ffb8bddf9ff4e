"""Lowering the packed layout, state rows and pages."""

from helios.program.ir import Ref
from helios.runtime.cpu.lowering import Lowering, operands
from helios.runtime.cpu.schedule import Node


def token_rows(low: Lowering, node: Node) -> None:
    """token_rows."""
    query_length, endpoints = operands(node, 2)
    rows, positions = node.op.results
    low.emit(
        "token_rows",
        query_length=low.at(query_length),
        endpoints=low.at(endpoints),
        rows=low.at(rows),
        positions=low.at(positions),
        tokens=low.count(rows),
    )


def resolve_tokens(low: Lowering, node: Node) -> None:
    """resolve_tokens."""
    low.named(node, "tokens", "rows", "pending")


def last_tokens(low: Lowering, node: Node) -> None:
    """last_tokens."""
    low.named(node, "query_length", "sampled_rows")


def add_integers(low: Lowering, node: Node) -> None:
    """add_integers."""
    low.named(node, "left", "right")


def ones(low: Lowering, node: Node) -> None:
    """ones."""
    low.named(node, "like")


def gather(low: Lowering, node: Node) -> None:
    """gather, and state_read, which is one."""
    source, index = operands(node, 2)
    low.emit(
        "gather",
        count=low.count(node.op.results[0]),
        source=low.at(source),
        index=low.at(index),
        out=low.at(node.op.results[0]),
        bytes=low.bytes(source),
        source_count=low.count(source),
    )


def state_write(low: Lowering, node: Node) -> None:
    """state_write, and state_clear, which has no value."""
    state, rows = operands(node, 2)
    value = node.op.operands[2] if len(node.op.operands) > 2 else None
    low.emit(
        "state_write",
        count=low.count(rows),
        state=low.at(state),
        rows=low.at(rows),
        value=low.at(value),
        bytes=low.bytes(state),
        state_rows=low.rows(state),
    )


def state_add(low: Lowering, node: Node) -> None:
    """state_add."""
    state, rows, value = operands(node, 3)
    low.emit(
        "state_add",
        count=low.count(rows),
        state=low.at(state),
        rows=low.at(rows),
        value=low.at(value),
        state_rows=low.rows(state),
        columns=1,
    )


def histogram_add(low: Lowering, node: Node) -> None:
    """histogram_add."""
    histogram, rows, tokens = operands(node, 3)
    low.emit(
        "state_add",
        count=low.count(rows),
        state=low.at(histogram),
        rows=low.at(rows),
        column=low.at(tokens),
        state_rows=low.rows(histogram),
        columns=low.inner(histogram),
    )


def current_page(low: Lowering, node: Node) -> None:
    """current_page."""
    slots, endpoints, selector, table = operands(node, 4)
    low.emit(
        "current_page",
        count=low.count(slots),
        slots=low.at(slots),
        endpoints=low.at(endpoints),
        selector=low.at(selector),
        page_table=low.at(table),
        out=low.at(node.op.results[0]),
        table_rows=low.rows(table),
        table_columns=low.inner(table),
        page_tokens=node.op.attributes["page_tokens"],
    )


def _page_copy(low: Lowering, source: Ref, from_row: Ref, target: Ref, to_row: Ref) -> None:
    low.emit(
        "page_copy",
        count=low.count(from_row),
        **{"from": low.at(source)},
        to=low.at(target),
        from_row=low.at(from_row),
        to_row=low.at(to_row),
        from_rows=low.rows(source),
        to_rows=low.rows(target),
        bytes=low.bytes(source),
    )


def page_save(low: Lowering, node: Node) -> None:
    """page_save."""
    plane, page, continuation, row = operands(node, 4)
    _page_copy(low, plane, page, continuation, row)


def page_load(low: Lowering, node: Node) -> None:
    """page_load."""
    continuation, row, plane, page = operands(node, 4)
    _page_copy(low, continuation, row, plane, page)


def store(low: Lowering, node: Node) -> None:
    """store: a copy into a completion buffer."""
    value, record = operands(node, 2)
    low.emit(
        "copy",
        count=low.count(value),
        source=low.at(value),
        source_pitch=low.bytes(value),
        out=low.at(record),
        bytes=low.bytes(value),
    )
