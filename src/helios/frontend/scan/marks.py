"""Which tokens are markers, and one private character for each of them.

A marker that the tokenizer holds as one token delimits only where it was generated as that
token. The scanner sees such a token as a single lone surrogate, a character that decoded text
can't contain, so that the same spelling in ordinary text never matches.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from helios.frontend.parsing import Piece

_FIRST_MARK = 0xD800
_FIRST_FOREIGN = 0xDC00
_FOREIGN_LIMIT = 0x400
_PRIVATE = re.compile("[\ud800-\udfff]+")


class Vocabulary(Protocol):
    """What parsers need to know of a tokenizer."""

    @property
    def special_tokens(self) -> frozenset[int]:
        """Tokens that are no text."""

    def token_id(self, text: str) -> int | None:
        """The vocabulary entry of exactly this spelling."""

    def is_added(self, token: int) -> bool:
        """Whether the token is a whole spelling of its own, special or not."""


class Marks:
    """The marker tokens of one core's syntax. Immutable.

    `spellings` are the markers and those parts of markers that may be tokens. A spelling of
    letters or whitespace alone is never a marker token.
    """

    def __init__(self, spellings: Iterable[str], vocabulary: Vocabulary) -> None:
        self.special_tokens = vocabulary.special_tokens
        found: dict[str, int] = {}
        for spelling in spellings:
            token = vocabulary.token_id(spelling)
            distinct = len(spelling) > 1 and not spelling.isalnum() and not spelling.isspace()
            if distinct and token is not None and vocabulary.is_added(token):
                found[spelling] = token
        self._marks = {spelling: chr(_FIRST_MARK + n) for n, spelling in enumerate(found)}
        self.characters = {found[spelling]: mark for spelling, mark in self._marks.items()}
        self.spellings = {ord(mark): spelling for spelling, mark in self._marks.items()}
        longest_first = sorted(self._marks, key=len, reverse=True)
        self._spelled = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    def private(self, text: str) -> str:
        """The text as the scanner sees it where every marker in it is its token."""
        return self._spelled.sub(lambda found: self._marks[found.group()], text)

    def is_token(self, marker: str) -> bool:
        """Whether a marker holds a token and so can't be spelled in ordinary text."""
        return self._spelled.search(marker) is not None


class Lettering:
    """One response's reading and spelling of tokens.

    Special tokens that are no markers get private characters too, as they come: they are no text,
    except inside an argument's value.
    """

    def __init__(self, marks: Marks) -> None:
        self._special = marks.special_tokens
        self._characters = dict(marks.characters)
        self._spellings = dict(marks.spellings)
        self._own = dict(marks.spellings)

    def read(self, pieces: Sequence[Piece]) -> str:
        """The pieces as the scanner sees them."""
        characters, special = self._characters, self._special
        return "".join(
            [
                characters[piece.token]
                if piece.token in characters
                else self._foreign(piece)
                if piece.token in special
                else piece.text
                for piece in pieces
            ]
        )

    def _foreign(self, piece: Piece) -> str:
        count = len(self._characters) - len(self._own)
        if count >= _FOREIGN_LIMIT:
            return ""
        character = chr(_FIRST_FOREIGN + count)
        self._characters[piece.token] = character
        self._spellings[ord(character)] = piece.text
        return character

    def spell(self, text: str) -> str:
        """Every token spelled out."""
        return text if text.isascii() else text.translate(self._spellings)

    def spell_markers(self, text: str) -> str:
        """Markers spelled out, other special tokens dropped."""
        return text if text.isascii() else self.drop(text.translate(self._own))

    @staticmethod
    def drop(text: str) -> str:
        """Text without tokens."""
        return text if text.isascii() else _PRIVATE.sub("", text)
