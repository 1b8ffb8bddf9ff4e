"""Finding the first of several patterns in a stream, one symbol at a time.

The automaton of Aho and Corasick, "Efficient string matching: an aid to bibliographic search",
CACM 18(6), 1975: the time is linear in patterns plus stream, however they overlap.
"""

from collections import deque
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

Symbol = TypeVar("Symbol", bound=Hashable)


class Automaton(Generic[Symbol]):
    """Patterns as states. State 0 is the start; immutable once made.

    `depth[state]` is the number of last symbols that may begin a pattern; `match[state]` is the
    number of the longest pattern that ends here, or -1.
    """

    def __init__(self, patterns: Sequence[Sequence[Symbol]]) -> None:
        self._next: list[dict[Symbol, int]] = [{}]
        self.depth: list[int] = [0]
        self.match: list[int] = [-1]
        for number, pattern in enumerate(patterns):
            self._add(number, pattern)
        self._failure = [0] * len(self._next)
        self._link()
        self.first: frozenset[Symbol] = frozenset(self._next[0])

    def step(self, state: int, symbol: Symbol) -> int:
        """The state after one more symbol."""
        while state and symbol not in self._next[state]:
            state = self._failure[state]
        return self._next[state].get(symbol, 0)

    def _add(self, number: int, pattern: Sequence[Symbol]) -> None:
        state = 0
        for symbol in pattern:
            following = self._next[state].get(symbol)
            if following is None:
                following = self._next[state][symbol] = len(self._next)
                self._next.append({})
                self.depth.append(self.depth[state] + 1)
                self.match.append(-1)
            state = following
        self.match[state] = number

    def _link(self) -> None:
        """Point each state to the longest proper suffix that is a state too, breadth first."""
        waiting = deque(self._next[0].values())
        while waiting:
            state = waiting.popleft()
            for symbol, following in self._next[state].items():
                self._failure[following] = self.step(self._failure[state], symbol)
                waiting.append(following)
            if self.match[state] < 0:
                self.match[state] = self.match[self._failure[state]]
