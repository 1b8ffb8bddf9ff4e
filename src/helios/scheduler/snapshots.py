"""Continuation rows: copies of partial pages (and of recurrent state) at exact endpoints."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from helios.scheduler.prefix import Node

Element = int | tuple[int, int, bytes]
"""What a position holds, to the cache: a token, or an image token with offset and digest."""


class Tail:
    """A published snapshot: what follows a node's last complete page, and the row that keeps it."""

    __slots__ = ("elements", "node", "pins", "row")

    def __init__(self, node: "Node", elements: tuple[Element, ...], row: int) -> None:
        self.node = node
        self.elements = elements
        self.row = row
        self.pins = 0


class SnapshotRows:
    """Rows by number: free, reserved for a step in flight, or published and kept by recency.

    With `exact`, a snapshot holds state that only its own endpoint may continue. Without, its
    payload is a page of per-token records, of which any leading part may be used.
    """

    def __init__(self, rows: int, *, exact: bool) -> None:
        self.total = rows
        self.exact = exact
        self._free = list(range(rows - 1, -1, -1))
        self._recent: OrderedDict[Tail, None] = OrderedDict()  # unpinned, the oldest first
        self._pinned: set[Tail] = set()

    @property
    def free(self) -> int:
        """How many rows hold nothing."""
        return len(self._free)

    @property
    def published(self) -> int:
        """How many snapshots there are."""
        return len(self._recent) + len(self._pinned)

    def tails(self) -> Iterator[Tail]:
        """Every published snapshot."""
        yield from self._recent
        yield from self._pinned

    def take(self) -> int:
        """A free row to write to, now the caller's, or -1."""
        return self._free.pop() if self._free else -1

    def give(self, row: int) -> None:
        """Return a row whose snapshot is not to be published."""
        self._free.append(row)

    def oldest(self) -> Tail | None:
        """The least recently used snapshot that no step reads."""
        return next(iter(self._recent), None)

    def publish(self, node: "Node", elements: tuple[Element, ...], row: int) -> bool:
        """Make a written row usable; false where an equal snapshot already serves."""
        covered = self.covering(node, elements)
        if covered is not None:
            self.give(row)
            self._touch(covered)
            return False
        if not self.exact:
            for tail in [t for t in node.tails if elements[: len(t.elements)] == t.elements]:
                if not tail.pins:
                    self.drop(tail)
        tail = Tail(node, elements, row)
        node.tails.append(tail)
        self._recent[tail] = None
        return True

    def covering(self, node: "Node", elements: tuple[Element, ...]) -> Tail | None:
        """A snapshot that serves this endpoint already."""
        for tail in node.tails:
            if tail.elements == elements:
                return tail
            if not self.exact and tail.elements[: len(elements)] == elements:
                return tail
        return None

    def best(self, node: "Node", rest: Sequence[Element]) -> tuple[Tail | None, int]:
        """The snapshot below `node` that serves most of `rest`, and how much it serves."""
        found, most = None, -1 if self.exact else 0
        for tail in node.tails:
            shared = _shared(tail.elements, rest)
            if self.exact and shared < len(tail.elements):
                continue
            if shared > most:
                found, most = tail, shared
        return found, max(most, 0)

    def pin(self, tail: Tail) -> None:
        """Keep a snapshot while a step reads it."""
        if not tail.pins:
            del self._recent[tail]
            self._pinned.add(tail)
        tail.pins += 1

    def unpin(self, tail: Tail) -> None:
        """The step that read it is over."""
        tail.pins -= 1
        if not tail.pins:
            self._pinned.remove(tail)
            self._recent[tail] = None

    def drop(self, tail: Tail) -> None:
        """Forget an unpinned snapshot."""
        del self._recent[tail]
        tail.node.tails.remove(tail)
        self._free.append(tail.row)

    def _touch(self, tail: Tail) -> None:
        if not tail.pins:
            self._recent.move_to_end(tail)


def _shared(left: Sequence[Element], right: Sequence[Element]) -> int:
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count
