"""Memory demand as data: evaluating it is arithmetic and allocates nothing.

A provider states its demand before it knows an operation's shape, with *terms* over the names of
its row in the op table: `Term(36, ("A", "K"), 32)` is 36 bytes for every 32 of A · K, as a
quantised copy of `linear`'s input takes. Binding to one operation turns terms into amounts per
sequence, token or page, because at most one of the names stands for an extent.
"""

from bisect import bisect_left
from collections.abc import Mapping

from helios.contract.tensor import Dim
from helios.errors import CompileError
from helios.program.extents import PAGES, ROWS, SAMPLED, SLOTS, TOKENS
from helios.records import dataclass

Dims = Mapping[str, Dim | tuple[Dim, ...]]

CONTEXT = "context"

_AXES = {
    CONTEXT: "per_context",
    ROWS: "per_sequence",
    SAMPLED: "per_sequence",
    SLOTS: "per_sequence",
    TOKENS: "per_token",
    PAGES: "per_page",
}


@dataclass(frozen=True, slots=True)
class Workload:
    """What a model may be asked to hold and do at once.

    `sequences` are active, each with `frontier` tokens of history and room for `context`; a step
    computes `tokens` of them in all. `pages` of history exist; zero means as many as the
    sequences' histories fill.
    """

    context: int
    frontier: int
    sequences: int
    tokens: int
    pages: int = 0

    @classmethod
    def prefill(cls, context: int, chunk: int) -> "Workload":
        """One sequence that computes the last chunk of a full context."""
        return cls(context, context, 1, min(chunk, context))

    @classmethod
    def decode(cls, context: int, sequences: int) -> "Workload":
        """As many sequences as may be active, each at its first token, computing one each."""
        return cls(context, 1, sequences, sequences)


@dataclass(frozen=True, slots=True)
class Term:
    """`nbytes` for every `per` elements, rounded up once, of the product of some dimensions.

    A dimension is a name from the operation's row of the op table (of its shape patterns, or an
    attribute that is a length) or `context`, the tokens of history a sequence may have. A term
    never exceeds `most` bytes, unless that is 0.
    """

    nbytes: int
    dims: tuple[str, ...]
    per: int = 1
    most: int = 0

    def __post_init__(self) -> None:
        if self.nbytes < 0 or self.per < 1 or self.most < 0:
            raise CompileError("a term can't be negative", field="demand.terms", value=self)


@dataclass(frozen=True, slots=True)
class Capped:
    """A bound term with a limit: bytes per unit of one amount, and the most it comes to."""

    axis: str
    nbytes: int
    most: int

    def __post_init__(self) -> None:
        if self.axis not in _AMOUNTS or self.nbytes < 0 or self.most < 0:
            raise CompileError("no such demand", field="demand.capped", value=self)


_AMOUNTS = ("fixed", "per_sequence", "per_token", "per_page", "per_context")


@dataclass(frozen=True, slots=True)
class Demand:
    """fixed + per sequence + per token + per page + per context token + a table over tokens.

    The monotone table lists (tokens, bytes) in ascending order of both; a workload pays the entry
    of the smallest listed token count that covers it. `terms` must be bound before evaluation.
    """

    fixed: int = 0
    per_sequence: int = 0
    per_token: int = 0
    per_page: int = 0
    table: tuple[tuple[int, int], ...] = ()
    per_context: int = 0
    terms: tuple[Term, ...] = ()
    capped: tuple[Capped, ...] = ()

    def __post_init__(self) -> None:
        amounts = [getattr(self, name) for name in _AMOUNTS]
        if min(amounts) < 0:
            raise CompileError("a demand can't be negative", field="demand", value=amounts)
        steps = zip(self.table, self.table[1:], strict=False)
        if any(a[0] >= b[0] or a[1] > b[1] for a, b in steps):
            raise CompileError("a demand table must ascend", field="demand.table", value=self.table)

    def nbytes(self, workload: Workload) -> int:
        """Bytes the workload needs; `CompileError` past the table's end or with unbound terms."""
        if self.terms:
            raise CompileError(
                "a demand over shapes must be bound to an operation first",
                field="demand.terms",
                value=self.terms,
            )
        nbytes = (
            self.fixed
            + self.per_sequence * workload.sequences
            + self.per_token * workload.tokens
            + self.per_page * workload.pages
            + self.per_context * workload.context
        )
        for capped in self.capped:
            nbytes += min(capped.most, capped.nbytes * _units(capped.axis, workload))
        return nbytes + self._tabulated(workload.tokens)

    def bind(self, dims: Dims) -> "Demand":
        """The demand of one operation whose dimensions are given; extents stay symbolic."""
        amounts = {name: getattr(self, name) for name in _AMOUNTS}
        capped = list(self.capped)
        for term in self.terms:
            axis, nbytes = _bound(term, dims)
            if term.most:
                capped.append(Capped(axis, nbytes, term.most))
            else:
                amounts[axis] += nbytes
        return Demand(**amounts, table=self.table, capped=tuple(capped))

    def _tabulated(self, tokens: int) -> int:
        if not self.table:
            return 0
        place = bisect_left(self.table, (tokens, 0))
        if place == len(self.table):
            raise CompileError(
                "the workload lies past the demand table",
                field="demand.table",
                value=tokens,
                remedy=f"at most {self.table[-1][0]} tokens",
            )
        return self.table[place][1]


def _units(axis: str, workload: Workload) -> int:
    """How much of an amount a workload has."""
    return {
        "fixed": 1,
        "per_sequence": workload.sequences,
        "per_token": workload.tokens,
        "per_page": workload.pages,
        "per_context": workload.context,
    }[axis]


NO_DEMAND = Demand()


def _bound(term: Term, dims: Dims) -> tuple[str, int]:
    """The axis a term grows along, and its bytes per unit of it."""
    axis, elements = "fixed", 1
    for name in term.dims:
        found = CONTEXT if name == CONTEXT else dims.get(name)
        if found is None:
            raise _refusal("the operation has no such dimension", term, ", ".join(sorted(dims)))
        for dim in found if isinstance(found, tuple) else (found,):
            if isinstance(dim, int):
                elements *= dim
            elif axis == "fixed" and dim in _AXES:
                axis = _AXES[dim]
            else:
                raise _refusal("a demand grows with at most one extent", term, ", ".join(_AXES))
    return axis, -(-elements * term.nbytes // term.per)


def _refusal(message: str, term: Term, known: str) -> CompileError:
    return CompileError(message, field="demand.terms", value=term, remedy=f"known: {known}")
