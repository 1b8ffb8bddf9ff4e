"""Where a response stops by the request's own wish: at strings, tokens and token sequences.

String stops match the decoded text, reasoning and tool markup included, before presentation. The
first match to complete removes the matched string and all that follows, even inside a token; what
may still become a match is held back. The engine needs the same answer as presentation, so both
read one `StopScanner`.
"""

from collections import deque
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace

from helios.errors import RequestError
from helios.frontend.detokenizer import Detokenizer, TokenTexts
from helios.frontend.matching import Automaton
from helios.frontend.parsing import Piece

MAX_STOPS = 4
MAX_STOP_BYTES = 4096
MAX_SEQUENCES = 16
MAX_SEQUENCE_TOKENS = 64


def check_stops(stop: str | Sequence[str] | None) -> tuple[str, ...]:
    """A request's string stops; raises `RequestError` where they exceed the limits."""
    stops = (stop,) if isinstance(stop, str) else tuple(stop or ())
    if len(stops) > MAX_STOPS:
        raise _bad_stop(f"takes at most {MAX_STOPS} strings", len(stops))
    if not all(stops):
        raise _bad_stop("takes no empty string", "")
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in stops)
    if size > MAX_STOP_BYTES:
        raise _bad_stop(f"takes at most {MAX_STOP_BYTES} bytes in total", size)
    return stops


def check_sequences(
    sequences: Sequence[Sequence[int]] | None, vocabulary: int
) -> tuple[tuple[int, ...], ...]:
    """A request's stop sequences; raises `RequestError` where they exceed the limits."""
    field = "stop_token_sequences"
    checked = tuple(tuple(sequence) for sequence in sequences or ())
    if len(checked) > MAX_SEQUENCES:
        raise _bad_stop(f"takes at most {MAX_SEQUENCES} sequences", len(checked), field)
    for number, sequence in enumerate(checked):
        if not 0 < len(sequence) <= MAX_SEQUENCE_TOKENS:
            message = f"takes 1 to {MAX_SEQUENCE_TOKENS} tokens"
            raise _bad_stop(message, len(sequence), f"{field}[{number}]")
        check_tokens(sequence, vocabulary, f"{field}[{number}]")
    return checked


def check_tokens(tokens: Sequence[int], vocabulary: int, field: str) -> tuple[int, ...]:
    """Token ids below `vocabulary`; raises `RequestError` naming the first that isn't."""
    for number, token in enumerate(tokens):
        if not 0 <= token < vocabulary:
            raise RequestError(
                f"is not a token of this model, whose vocabulary is {vocabulary}",
                field=f"{field}[{number}]",
                value=token,
                remedy="use the model's own token ids",
            )
    return tuple(tokens)


class StopScanner:
    """Reads pieces as they come and tells where the first match starts.

    `minimum` is the number of tokens before which nothing stops; matching starts after them.
    `silent` tokens, those that end a response anyway, have no text to match.
    """

    def __init__(
        self, stops: Sequence[str], *, minimum: int = 0, silent: frozenset[int] = frozenset()
    ) -> None:
        self._automaton: Automaton[str] = Automaton(stops)
        self._stops = stops
        self._minimum = minimum
        self._silent = silent
        self._state = 0
        self.matched: str | None = None

    def copy(self) -> "StopScanner":
        """Another scanner that has read the same."""
        return copy(self)

    @property
    def held(self) -> int:
        """How many of the last characters may begin a match."""
        return self._automaton.depth[self._state]

    def length(self, piece: Piece) -> int:
        """How many characters of the piece count as text."""
        return 0 if piece.token in self._silent else len(piece.text)

    def read(self, piece: Piece) -> int | None:
        """None without a match; else how many of the piece's characters precede the match,
        negative where it began in an earlier piece."""
        if self._minimum:
            self._minimum -= piece.token >= 0
            return None
        if piece.token in self._silent:
            return None
        automaton, state = self._automaton, self._state
        if not state and automaton.first.isdisjoint(piece.text):
            return None
        for position, character in enumerate(piece.text, 1):
            state = automaton.step(state, character)
            if automaton.match[state] >= 0:
                self.matched = self._stops[automaton.match[state]]
                return position - len(self.matched)
        self._state = state
        return None


class StopMonitor:
    """The engine's view of string stops: told every sampled token, it says when to stop."""

    def __init__(
        self,
        tokenizer: TokenTexts,
        stops: Sequence[str],
        *,
        minimum: int = 0,
        silent: frozenset[int] = frozenset(),
    ) -> None:
        self._detokenizer = Detokenizer(tokenizer)
        self._scanner = StopScanner(stops, minimum=minimum, silent=silent)

    @property
    def matched(self) -> str | None:
        """The stop that matched."""
        return self._scanner.matched

    def accept(self, token: int) -> bool:
        """Read one sampled token. True where the response must stop with it."""
        pieces = self._detokenizer.feed((token,))
        return any(self._scanner.read(piece) is not None for piece in pieces)

    def mask(self) -> bytes | None:
        """String stops forbid no token."""
        return None

    def masks_along(self, proposals: Sequence[int]) -> list[bytes | None]:
        """Nor along any proposals."""
        return [None] * (len(proposals) + 1)

    def copy(self) -> "StopMonitor":
        """Another monitor that was told the same, to be told what may not come true."""
        made = copy(self)
        made._detokenizer = self._detokenizer.copy()
        made._scanner = self._scanner.copy()
        return made


class StopFilter:
    """Presentation's view of string stops: passes pieces on once they are settled.

    `is_whole` names tokens that are a spelling of their own. One that a match cuts goes
    altogether: what is left of a delimiter must not show.
    """

    def __init__(self, scanner: StopScanner, is_whole: Callable[[int], bool]) -> None:
        self._scanner = scanner
        self._is_whole = is_whole
        self._held: deque[Piece] = deque()
        self._length = 0  # of the texts held

    @property
    def matched(self) -> str | None:
        """The stop that matched; nothing is passed on after it."""
        return self._scanner.matched

    def feed(self, piece: Piece) -> list[Piece]:
        """Pieces that are settled by this one, in order; a matched one is cut short."""
        if self.matched is not None:
            return []
        before = self._length
        cut = self._scanner.read(piece)
        self._held.append(piece)
        self._length += self._scanner.length(piece)
        if cut is None:
            return self._release(self._length - self._scanner.held)
        return self._cut(before + cut)

    def finish(self) -> list[Piece]:
        """What was held back by a prefix that no longer can become a match."""
        return self._release(self._length)

    def _release(self, length: int) -> list[Piece]:
        """Pieces that lie in the first `length` characters held."""
        released: list[Piece] = []
        while self._held and self._scanner.length(self._held[0]) <= length:
            piece = self._held.popleft()
            length -= self._scanner.length(piece)
            self._length -= self._scanner.length(piece)
            released.append(piece)
        return released

    def _cut(self, length: int) -> list[Piece]:
        """The first `length` characters held; the rest goes."""
        released = self._release(length)
        length -= sum([self._scanner.length(piece) for piece in released])
        if length and not self._is_whole(self._held[0].token):
            released.append(replace(self._held[0], text=self._held[0].text[:length]))
        self._held.clear()
        self._length = 0
        return released


class TokenStopFilter:
    """Holds back tokens that may begin a token stop.

    It does not decide: the engine does, which also knows the least output. At the end the
    pipeline drops the tokens that the engine says matched.
    """

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        self._automaton: Automaton[int] = Automaton(sequences)
        self._state = 0

    def held(self, token: int) -> int:
        """Read one token; how many of the last ones must wait."""
        self._state = self._automaton.step(self._state, token)
        return self._automaton.depth[self._state]


def _bad_stop(message: str, value: object, field: str = "stop") -> RequestError:
    return RequestError(message, field=field, value=value, remedy="send fewer or shorter stops")
