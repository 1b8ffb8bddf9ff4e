"""A syntax's markers as expressions: tokens by number, the rest as text."""

from collections.abc import Iterable

from helios.frontend.grammar.lark import literal, sequence
from helios.frontend.scan.marks import Marks
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker split at its first token: text before it, the token, everything from it on."""

    lead: str
    token: int | None
    rest: str


class Markers:
    """Turns markers into expressions. A marker that is a token is that token and no spelling."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._tokens = {ord(mark): token for token, mark in marks.characters.items()}
        self.tokens = frozenset(marks.characters)

    def expression(self, *texts: str) -> str:
        """Markers in a row."""
        return sequence(*self._parts("".join(map(self._marks.private, texts))))

    def split(self, text: str) -> Marker:
        """A marker at its first token; without one all of it is lead."""
        private = self._marks.private(text)
        at = next((n for n, c in enumerate(private) if ord(c) in self._tokens), None)
        if at is None:
            return Marker(text, None, "")
        return Marker(
            private[:at], self._tokens[ord(private[at])], sequence(*self._parts(private[at:]))
        )

    def is_token(self, text: str) -> bool:
        """Whether a marker holds a token."""
        return self._marks.is_token(text)

    def spelled(self, texts: Iterable[str]) -> list[str]:
        """Those of the markers that ordinary text could spell."""
        return [text for text in dict.fromkeys(texts) if text and not self.is_token(text)]

    def _parts(self, private: str) -> Iterable[str]:
        run = ""
        for character in private:
            token = self._tokens.get(ord(character))
            if token is None:
                run += character
                continue
            yield literal(run)
            yield f"<[{token}]>"
            run = ""
        yield literal(run)
