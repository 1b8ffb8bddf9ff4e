"""Which operations run together: programs as nodes that save passes over memory.

Fusing never changes a number. Products of the same input share its quantised form and one round
of work; gate and up run with their activation; a residual is added as a product is stored; norms,
gates and attention leave their results quantised where products read them. Views of heads are
not copied, and logits that nothing else reads are masked where they lie.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import TypeGuard

from helios.program.ir import Op, Program, Ref, Value
from helios.records import dataclass
from helios.runtime.cpu.numerics import Numerics

INTEGER_LAYOUTS = frozenset({"w4g32", "w4g32f", "w8g32", "w8g32m", "w8g16", "w8g16m"})
GROUP = 32

Form = tuple[str, int]
"""A quantised value: its name, and the bytes of an element."""


@dataclass(frozen=True, slots=True)
class Node:
    """An operation and the forms in which its result is left.

    `leaves`: bytes of an element in quantised form, 0 where that is not wanted; `plain`: it is
    wanted as it is.
    """

    op: Op
    leaves: int = 0
    plain: bool = True


@dataclass(frozen=True, slots=True)
class Product:
    """One matrix of a round: where its result goes, and what is added to it."""

    linear: Op
    out: Value
    residual: Ref | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """Products of one input. `planes`: bytes of its quantised form, 0 where it is read as it is."""

    x: Ref
    products: tuple[Product, ...]
    planes: int


@dataclass(frozen=True, slots=True)
class Gated:
    """function(gate · x) · (up · x), in one round; see `Round` and `Node`."""

    x: Ref
    gate: Op
    up: Op
    activation: Op
    planes: int
    leaves: int = 0
    plain: bool = True


@dataclass(frozen=True, slots=True)
class Quantise:
    """A quantised form of a value that no earlier node could leave."""

    x: Ref
    planes: int


Scheduled = Node | Round | Gated | Quantise


@dataclass(frozen=True, slots=True)
class Schedule:
    """Nodes in order, and by its name the value that each view is a view of."""

    nodes: tuple[Scheduled, ...]
    views: Mapping[str, Value] = field(hash=False)

    def root(self, ref: Ref) -> Ref:
        """What a reference stands for once views are seen through."""
        return _root(ref, self.views)


def _root(ref: Ref, views: Mapping[str, Value]) -> Ref:
    # A name means one thing in all of a program, and is looked up faster than a thing.
    while (seen := views.get(ref.name)) is not None:
        ref = seen
    return ref


def schedule(
    program: Program, layouts: Mapping[str, str], *, fuse: bool, numerics: Numerics
) -> Schedule:
    """Nodes for a program whose weights have the given layouts.

    Without `fuse` every operation stands alone, as it must where values are observed.
    """
    return _Scheduler(program, layouts, fuse, numerics).run()


def is_view(op: Op) -> bool:
    """Whether a result has the bytes of its operand."""
    if op.kind != "split_heads":
        return op.kind == "merge_heads"
    operand = op.operands[0]
    assert operand is not None
    heads, dim = op.attributes["heads"], op.attributes["dim"]
    assert isinstance(heads, int)
    assert isinstance(dim, int)
    return operand.type.shape[-1] == heads * dim


class _Scheduler:
    def __init__(
        self, program: Program, layouts: Mapping[str, str], fuse: bool, numerics: Numerics
    ) -> None:
        self._ops = program.ops
        self._layouts = layouts
        self._fuse = fuse
        self._numerics = numerics
        self._views: dict[str, Value] = {}
        self._users: dict[str, list[int]] = {}
        self._taken: set[int] = set()
        self._defined: set[str] = set()

    def run(self) -> Schedule:
        if self._fuse:
            self._see_views()
        for index, op in enumerate(self._ops):
            for operand in op.operands:
                if isinstance(operand, Value):
                    self._users.setdefault(self._root(operand).name, []).append(index)
        nodes = tuple(self._nodes())
        return Schedule(tuple(self._with_quantisation(nodes)), self._views)

    def _see_views(self) -> None:
        uses = Counter(o.name for op in self._ops for o in op.operands if isinstance(o, Value))
        for index, op in enumerate(self._ops):
            x = op.operands[0] if op.operands else None
            if not isinstance(x, Value):
                continue
            if is_view(op):
                self._views[op.results[0].name] = x
                self._taken.add(index)
            elif op.kind == "mask_logits" and uses[x.name] == 1 and x.name not in self._views:
                self._views[op.results[0].name] = x

    def _root(self, ref: Ref) -> Ref:
        return _root(ref, self._views)

    # ---- grouping ----------------------------------------------------------------------------

    def _nodes(self) -> Iterator[Scheduled]:
        for index, op in enumerate(self._ops):
            if index in self._taken:
                continue
            if op.kind == "linear":
                yield from self._products(index)
            else:
                self._defined.update([r.name for r in op.results])
                yield Node(op)

    def _products(self, index: int) -> Iterator[Scheduled]:
        """All products of one form of an input, moved up to the first of them."""
        x = self._input(index)
        planes = self._planes(self._ops[index])
        members = [index]
        if self._fuse:
            members += [
                other
                for other in self._users.get(x.name, [])
                if other > index
                and self._ops[other].kind == "linear"
                and self._planes(self._ops[other]) == planes
            ]
        for gate, up, activation in self._gates(members):
            members = [m for m in members if m not in (gate, up)]
            self._taken.update((gate, up, activation))
            ops = self._ops
            self._defined.add(ops[activation].results[0].name)
            yield Gated(x, ops[gate], ops[up], ops[activation], planes)
        if members:
            self._taken.update(members)
            products = tuple(self._product(member) for member in members)
            self._defined.update([p.out.name for p in products])
            yield Round(x, products, planes)

    def _product(self, index: int) -> Product:
        op = self._ops[index]
        added = self._residual(index) if self._fuse else None
        if added is None:
            return Product(op, op.results[0])
        self._taken.add(added)
        add = self._ops[added]
        left, right = (self._root(o) for o in add.operands if o is not None)
        return Product(op, add.results[0], right if left == op.results[0] else left)

    def _residual(self, index: int) -> int | None:
        """The addition that is the only use of a product, if its other side is already there."""
        result = self._ops[index].results[0]
        users = self._users.get(result.name, [])
        if len(users) != 1 or self._ops[users[0]].kind != "add":
            return None
        sides = [self._root(o) for o in self._ops[users[0]].operands if o is not None]
        others = [side for side in sides if side != result]
        if len(others) != 1 or (
            isinstance(others[0], Value) and others[0].name not in self._defined
        ):
            return None
        return users[0]

    def _gates(self, members: list[int]) -> Iterator[tuple[int, int, int]]:
        made = {self._ops[m].results[0].name: m for m in members}
        if not self._fuse:
            return
        for result, gate in list(made.items()):
            users = self._users.get(result, [])
            if len(users) != 1 or self._ops[users[0]].kind != "gated_activation":
                continue
            sides = self._ops[users[0]].operands
            other = sides[1]
            up = made.get(other.name) if isinstance(other, Value) else None
            alone = other is not None and len(self._users[other.name]) == 1
            if sides[0] is not None and sides[0].name == result and up is not None and alone:
                yield gate, up, users[0]

    def _input(self, index: int) -> Ref:
        x = self._ops[index].operands[0]
        assert x is not None
        return self._root(x)

    def _planes(self, op: Op) -> int:
        weight = op.operands[1]
        assert weight is not None
        return self._numerics.planes(op) if self._layouts[weight.name] in INTEGER_LAYOUTS else 0

    # ---- quantised forms ---------------------------------------------------------------------

    def _with_quantisation(self, nodes: tuple[Scheduled, ...]) -> Iterator[Scheduled]:
        """Have producers quantise what products read, or do it before the first that reads it."""
        wanted: dict[str, set[int]] = {}
        for node in nodes:
            if isinstance(node, Round | Gated) and node.planes:
                wanted.setdefault(node.x.name, set()).add(node.planes)
        plain = {ref.name for node in nodes for ref in self._plain_reads(node)}
        # A producer leaves one form; another is made from the plain value.
        plain.update(name for name, forms in wanted.items() if len(forms) > 1)
        done: set[Form] = set()
        for node in nodes:
            if isinstance(node, Round | Gated) and node.planes:
                form = node.x.name, node.planes
                if form not in done:
                    done.add(form)
                    yield Quantise(node.x, node.planes)
            result = _result(node)
            if result is not None and result.name in wanted and self._fuse and _can_quantise(node):
                leaves = max(wanted[result.name])
                done.add((result.name, leaves))
                yield replace(node, leaves=leaves, plain=result.name in plain)
            else:
                yield node

    def _plain_reads(self, node: Scheduled) -> Iterator[Ref]:
        """What a node reads in plain form."""
        if isinstance(node, Node):
            yield from (self._root(o) for o in node.op.operands if o is not None)
        elif isinstance(node, Quantise):
            yield node.x
        else:
            if not node.planes:
                yield node.x
            if isinstance(node, Round):
                yield from (p.residual for p in node.products if p.residual is not None)


def _result(node: Scheduled) -> Value | None:
    if isinstance(node, Gated):
        return node.activation.results[0]
    if isinstance(node, Node) and len(node.op.results) == 1:
        return node.op.results[0]
    return None


def _can_quantise(node: Scheduled) -> TypeGuard[Node | Gated]:
    if isinstance(node, Gated):
        width = node.activation.results[0].type.shape[-1]
        return isinstance(width, int) and width % GROUP == 0
    if not isinstance(node, Node):
        return False
    shape = node.op.results[0].type.shape
    width = shape[-1]
    if not isinstance(width, int) or width % GROUP != 0:
        return False
    return node.op.kind == "paged_attention" or (node.op.kind == "rms_norm" and len(shape) == 2)
