"""Memory demand as data: evaluating it is arithmetic and allocates nothing."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

from helios.errors import CompileError


@dataclass(frozen=True, slots=True)
class Workload:
    """What a step may be asked to do, in tokens and sequences.

    `context` tokens of history for each of `sequences`, of which the step adds up to `frontier`
    to any one of them and `tokens` in all; `pages` cache pages exist.
    """

    context: int
    frontier: int
    sequences: int
    tokens: int
    pages: int = 0


@dataclass(frozen=True, slots=True)
class Demand:
    """fixed + per sequence + per token + per page, plus a monotone table over tokens.

    The table lists (tokens, bytes) in ascending order of both; a workload pays the entry of the
    smallest listed token count that covers it.
    """

    fixed: int = 0
    per_sequence: int = 0
    per_token: int = 0
    per_page: int = 0
    table: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        amounts = (self.fixed, self.per_sequence, self.per_token, self.per_page)
        if min(amounts) < 0:
            raise CompileError("a demand can't be negative", field="demand", value=amounts)
        if any(a[0] >= b[0] or a[1] > b[1] for a, b in zip(self.table, self.table[1:], strict=False)):
            raise CompileError("a demand table must ascend", field="demand.table", value=self.table)

    def nbytes(self, workload: Workload) -> int:
        """Bytes the workload needs; `CompileError` past the table's end."""
        return (
            self.fixed
            + self.per_sequence * workload.sequences
            + self.per_token * workload.tokens
            + self.per_page * workload.pages
            + self._tabulated(workload.tokens)
        )

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

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Demand":
        """The inverse of `dataclasses.asdict`."""
        table = tuple((int(tokens), int(nbytes)) for tokens, nbytes in data["table"])
        return cls(**{**data, "table": table})
