"""The prefix tree: complete pages by the tokens they hold, shared and never written again.

Each node is one page, found under its parent by the page's whole content, so that equal hashes
of different tokens can't be confused. A referenced node has referenced ancestors only, and a path
is let go from its deepest node upwards: the least recently used node never has children.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from helios.scheduler.snapshots import Element, SnapshotRows, Tail

PageKey = tuple[Element, ...]


class Node:
    """A complete page, and what is known to follow it."""

    __slots__ = ("children", "key", "page", "parent", "references", "tails")

    def __init__(self, key: PageKey, page: int, parent: "Node | None") -> None:
        self.key = key
        self.page = page
        self.parent = parent
        self.children: dict[PageKey, Node] = {}
        self.references = 0
        self.tails: list[Tail] = []


class Root(Node):
    """Where the prompts of one salt begin. It holds no page."""

    __slots__ = ("salt",)

    def __init__(self, salt: str) -> None:
        super().__init__((), -1, None)
        self.salt = salt


class PrefixTree:
    """One tree per salt. A path starts with its root; its nodes are locked together."""

    def __init__(self, rows: SnapshotRows) -> None:
        self._rows = rows
        self._roots: dict[str, Root] = {}
        self._unreferenced: OrderedDict[Node, None] = OrderedDict()  # the oldest first
        self.pages = 0

    @property
    def unreferenced(self) -> int:
        """How many pages could be evicted, one after the other."""
        return len(self._unreferenced)

    def lock(self, salt: str, keys: Iterator[PageKey]) -> list[Node]:
        """Walk down as far as the keys are known, and lock that path."""
        node: Node | None = self._roots.get(salt)
        if node is None:
            node = self._roots[salt] = Root(salt)
        path = []
        while node is not None:
            self._reference(node)
            path.append(node)
            key = next(keys, None)
            node = None if key is None else node.children.get(key)
        return path

    def extend(self, path: list[Node], key: PageKey, page: int) -> bool:
        """Add a page below a locked path, or step to the equal one that is there already.

        True where the page was taken: it is the tree's from now on.
        """
        parent = path[-1]
        node = parent.children.get(key)
        taken = node is None
        if node is None:
            node = parent.children[key] = Node(key, page, parent)
            self.pages += 1
        self._reference(node)
        path.append(node)
        return taken

    def unlock(self, path: Sequence[Node]) -> None:
        """Let go of a path; what nobody else uses becomes the most recently used."""
        for node in reversed(path):
            node.references -= 1
            if not node.references and node.parent is not None:
                self._unreferenced[node] = None
        self._prune(path[0])

    def cut(self, path: list[Node], length: int) -> None:
        """Let go of all but the first nodes of a path."""
        rest = path[length:]
        del path[length:]
        if rest:
            self.unlock(rest)

    def evict(self) -> int:
        """Forget the least recently used page and return it, or -1 where all are in use."""
        if not self._unreferenced:
            return -1
        node, _ = self._unreferenced.popitem(last=False)
        for tail in list(node.tails):
            self._rows.drop(tail)
        parent = node.parent
        assert parent is not None, "roots are never unreferenced pages"
        del parent.children[node.key]
        node.parent = None
        self.pages -= 1
        self._prune(parent)
        return node.page

    def drop_tail(self, tail: Tail) -> None:
        """Forget a snapshot that no step reads."""
        self._rows.drop(tail)
        self._prune(tail.node)

    def nodes(self) -> Iterator[Node]:
        """Every node that holds a page."""
        stack: list[Node] = list(self._roots.values())
        while stack:
            node = stack.pop()
            stack.extend(node.children.values())
            if node.page >= 0:
                yield node

    def roots(self) -> Sequence[Root]:
        """Every root."""
        return tuple(self._roots.values())

    def _reference(self, node: Node) -> None:
        node.references += 1
        self._unreferenced.pop(node, None)

    def _prune(self, node: Node) -> None:
        """Forget a root that leads nowhere, so that salts leave nothing behind."""
        if isinstance(node, Root) and not (node.references or node.children or node.tails):
            del self._roots[node.salt]
