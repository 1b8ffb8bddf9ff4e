"""Rules of persistent state: views, accesses, pending tokens, draft cursors."""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from helios.contract.kinds import Access
from helios.contract.operation import Operation
from helios.contract.prepared import PreparedContract, PreparedGraph, StateAccess, StateView
from helios.contract.reading import refusal
from helios.contract.sources import CONSUMERS
from helios.contract.tensor import BufferKind

FROM_PENDING = frozenset({Operation.DECODE, Operation.MIXED, Operation.SPECULATIVE})
"""Operations that consume a pending token."""
TO_PENDING = CONSUMERS | {Operation.INITIALIZE, Operation.RESUME}
"""Operations that leave a pending token, or the absence of one."""
PRODUCERS = TO_PENDING | {Operation.RESTORE}
"""Operations that produce state of a request."""

MAX_STATE_ROWS = 1 << 10
MAX_VIEWS_PER_BUFFER = 64


def views_are_state(contract: PreparedContract) -> None:
    """A view lies in a registered persistent buffer, which has a moderate number of them."""
    counts = Counter(v.buffer for v in contract.state_views.values())
    for view in contract.state_views.values():
        buffer = contract.buffers.get(view.buffer)
        field = f"state_views.{view.name}.buffer"
        if buffer is None:
            raise refusal(field, "there is no such buffer", view.buffer, "declare it")
        if buffer.kind is not BufferKind.STATE:
            raise refusal(field, "must be a STATE buffer", buffer.kind.name, "view a state buffer")
        if counts[view.buffer] > MAX_VIEWS_PER_BUFFER:
            raise refusal(
                field, "has too many views", counts[view.buffer], f"at most {MAX_VIEWS_PER_BUFFER}"
            )


def views_fit_buffers(contract: PreparedContract) -> None:
    """A view's rows do not overlap each other and end within its buffer.

    A buffer of constant size has a row of the view for every request slot. Where load chooses the
    number of rows, the view is a part of each of the buffer's own rows.
    """
    for view in contract.state_views.values():
        field = f"state_views.{view.name}"
        if view.row_bytes == 0:
            raise refusal(f"{field}.row_bytes", "a row needs bytes", 0, "give its size")
        if view.row_bytes > view.row_stride:
            raise refusal(
                f"{field}.row_stride",
                f"rows of {view.row_bytes} bytes would overlap",
                view.row_stride,
                f"give at least {view.row_bytes}",
            )
        _check_extent(contract, view, field)


def _check_extent(contract: PreparedContract, view: StateView, field: str) -> None:
    type_ = contract.buffers[view.buffer].type
    if not type_.shape:
        raise refusal(f"{field}.buffer", "has no rows", str(type_), "give it a row dimension")
    row = type_.dtype.nbytes
    for dim in type_.shape[1:]:
        if isinstance(dim, str):
            raise refusal(
                f"{field}.buffer", "only the row dimension may be an extent", dim, "fix its length"
            )
        row *= dim
    rows = type_.shape[0]
    if isinstance(rows, int):
        end, limit = _end(view, contract.request_slots), rows * row
    else:
        if view.row_stride != row:
            raise refusal(
                f"{field}.row_stride",
                f"the rows of {type_} are {row} bytes apart",
                view.row_stride,
                f"give {row}",
            )
        end, limit = view.byte_offset + view.row_bytes, row
    if end > limit:
        raise refusal(
            f"{field}.byte_offset",
            f"the view ends at byte {end} of {limit}",
            view.byte_offset,
            "move or shorten it",
        )


def accesses_do_not_overlap(contract: PreparedContract) -> None:
    """Two views of one graph share bytes only if the graph writes neither."""
    for graph in contract.graphs:
        by_buffer: dict[str, list[StateAccess]] = {}
        for access in graph.state:
            by_buffer.setdefault(access.view.buffer, []).append(access)
        for accesses in by_buffer.values():
            for one, other in combinations(accesses, 2):
                written = (one.access | other.access) & Access.WRITE
                if written and _overlap(one.view, other.view, contract.request_slots):
                    raise refusal(
                        f"graphs.{graph.program}.state.{other.view.name}",
                        f"overlaps {one.view.name} and one of them is written",
                        other.access.name,
                        "separate the views",
                    )


def _overlap(one: StateView, other: StateView, rows: int) -> bool:
    """Whether rows of two views of one buffer share bytes.

    Views that do not interleave are apart; interleaved rows of unequal stride are taken to meet.
    """
    if _end(one, rows) <= other.byte_offset or _end(other, rows) <= one.byte_offset:
        return False
    if one.row_stride != other.row_stride:
        return True
    stride = one.row_stride
    first, second = one.byte_offset % stride, other.byte_offset % stride
    ahead, behind = (second - first) % stride, (first - second) % stride
    return ahead < one.row_bytes or behind < other.row_bytes


def _end(view: StateView, rows: int) -> int:
    return view.byte_offset + (rows - 1) * view.row_stride + view.row_bytes


def producers_write(contract: PreparedContract) -> None:
    """An operation that produces state declares a write."""
    for graph in contract.graphs:
        if graph.operation in PRODUCERS and not any(a.access & Access.WRITE for a in graph.state):
            raise refusal(
                f"graphs.{graph.program}.state",
                f"{graph.operation.name} produces state and writes none",
                len(graph.state),
                "declare the views it writes",
            )


def reads_have_writers(contract: PreparedContract) -> None:
    """State that some graph reads, some graph writes."""
    written = {a.view.name for _, a in _accesses(contract) if a.access & Access.WRITE}
    for graph, access in _accesses(contract):
        if access.view.name not in written:
            raise refusal(
                f"graphs.{graph.program}.state.{access.view.name}",
                "is read and no graph writes it",
                access.access.name,
                "declare the write, or make it a weight",
            )


def carried_state_is_initialized(contract: PreparedContract) -> None:
    """State that a graph carries on is first written by INITIALIZE, not left from another."""
    initialized = {
        a.view.name
        for g, a in _accesses(contract)
        if g.operation is Operation.INITIALIZE and a.access & Access.WRITE
    }
    for graph, access in _accesses(contract):
        if access.access == Access.READ_WRITE and access.view.name not in initialized:
            raise refusal(
                f"graphs.{graph.program}.state.{access.view.name}",
                "is carried from step to step and INITIALIZE does not write it",
                access.access.name,
                "write it in INITIALIZE",
            )


def _accesses(contract: PreparedContract) -> Iterator[tuple[PreparedGraph, StateAccess]]:
    for graph in contract.graphs:
        for access in graph.state:
            yield graph, access


def pending_token_has_an_owner(contract: PreparedContract) -> None:
    """A graph that consumes a pending token says where it is."""
    for graph in contract.graphs:
        owned = graph.pending_view is not None or graph.pending_destination is not None
        if graph.operation in FROM_PENDING and not owned:
            raise refusal(
                f"graphs.{graph.program}.pending_token",
                f"{graph.operation.name} consumes one",
                "unset",
                "name a state view or a value binding",
            )


def pending_view_is_readable(contract: PreparedContract) -> None:
    """A device-owned pending token is a view that its graph reads."""
    for graph in contract.graphs:
        view = graph.pending_view
        if view is None:
            continue
        if not _access(graph, view) & Access.READ:
            raise refusal(
                f"graphs.{graph.program}.pending_view",
                "the graph does not read this view",
                view.name,
                "declare the read access",
            )


def pending_view_is_written(contract: PreparedContract) -> None:
    """All graphs agree on the device-owned pending token, and those that produce one write it."""
    named = [g for g in contract.graphs if g.pending_view is not None]
    for graph in named:
        if graph.pending_view != named[0].pending_view:
            raise refusal(
                f"graphs.{graph.program}.pending_view",
                f"{named[0].program} names another view",
                graph.pending_view.name if graph.pending_view else None,
                "keep the pending token in one view",
            )
    view = named[0].pending_view if named else None
    if view is None:
        return
    for graph in contract.graphs:
        if graph.operation in TO_PENDING and not _access(graph, view) & Access.WRITE:
            raise refusal(
                f"graphs.{graph.program}.state.{view.name}",
                f"{graph.operation.name} leaves a pending token and does not write it",
                _access(graph, view).name or "NONE",
                "declare the write access",
            )


def pending_ownership_is_one(contract: PreparedContract) -> None:
    """Device and host do not both own the pending token."""
    device = [g.program for g in contract.graphs if g.pending_view is not None]
    host = [g.program for g in contract.graphs if g.pending_destination is not None]
    if device and host:
        raise refusal(
            f"graphs.{host[0]}.pending_destination",
            f"{device[0]} leaves the pending token to the device",
            host[0],
            "let one of them own it",
        )


def _access(graph: PreparedGraph, view: StateView) -> Access:
    return next((a.access for a in graph.state if a.view == view), Access(0))


def cursor_is_committed(contract: PreparedContract) -> None:
    """A draft cursor names state that its graph commits, and lags less than a context."""
    for graph in contract.graphs:
        cursor = graph.draft_cursor
        if cursor is None:
            continue
        field = f"graphs.{graph.program}.draft_cursor"
        if not _access(graph, cursor.view) & Access.WRITE:
            raise refusal(
                f"{field}.view", "the graph does not write this view", cursor.view.name, "write it"
            )
        if cursor.lag_tokens >= contract.context_tokens:
            raise refusal(
                f"{field}.lag_tokens",
                "exceeds the context",
                cursor.lag_tokens,
                f"give less than {contract.context_tokens}",
            )


def state_rows_are_counted(contract: PreparedContract) -> None:
    """A graph that touches state says how many rows a request needs."""
    for graph in contract.graphs:
        least = 1 if graph.state else 0
        if not least <= graph.state_rows_per_request <= MAX_STATE_ROWS:
            raise refusal(
                f"graphs.{graph.program}.state_rows_per_request",
                "out of range",
                graph.state_rows_per_request,
                f"give {least} to {MAX_STATE_ROWS}",
            )


RULES = (
    views_are_state,
    views_fit_buffers,
    accesses_do_not_overlap,
    producers_write,
    reads_have_writers,
    carried_state_is_initialized,
    pending_token_has_an_owner,
    pending_view_is_readable,
    pending_ownership_is_one,
    pending_view_is_written,
    cursor_is_committed,
    state_rows_are_counted,
)
