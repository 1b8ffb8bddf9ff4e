"""A vocabulary for tests: a family's special tokens are single tokens, all else is bytes."""

import codecs
import re
from collections.abc import Iterable, Sequence

from helios.frontend.parsing import Piece

_UTF8 = codecs.getincrementaldecoder("utf-8")
_FIRST_SPECIAL = 256


class TestVocabulary:
    """Tokens 0 to 255 are bytes; the given spellings follow in order."""

    __test__ = False

    def __init__(self, spellings: Iterable[str]) -> None:
        self._ids = {text: _FIRST_SPECIAL + n for n, text in enumerate(dict.fromkeys(spellings))}
        self._texts = {token: text for text, token in self._ids.items()}
        self.special_tokens = frozenset(self._texts)
        longest_first = sorted(self._ids, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    def token_id(self, text: str) -> int | None:
        data = text.encode()
        return self._ids.get(text, data[0] if len(data) == 1 else None)

    def is_added(self, token: int) -> bool:
        return token in self.special_tokens

    def occurrences(self, text: str) -> list[tuple[int, int, int]]:
        """Where special tokens are spelled: start, end, token."""
        return [
            (found.start(), found.end(), self._ids[found.group()])
            for found in self._pattern.finditer(text)
        ]

    def encode(self, text: str, plain: Iterable[int] = ()) -> list[int]:
        """Tokens of a text. `plain` are the occurrences, by number, that are spelled in bytes."""
        tokens: list[int] = []
        done = 0
        for number, (start, end, token) in enumerate(self.occurrences(text)):
            if number in set(plain):
                continue
            tokens += [*text[done:start].encode(), token]
            done = end
        return tokens + list(text[done:].encode())

    def decoder(self) -> "Decoder":
        return Decoder(self._texts)


class Decoder:
    """Tokens to pieces, characters whole."""

    def __init__(self, texts: dict[int, str]) -> None:
        self._texts = texts
        self._bytes = _UTF8("replace")

    def feed(self, tokens: Sequence[int]) -> list[Piece]:
        pieces: list[Piece] = []
        for token in tokens:
            if token in self._texts:
                if cut := self._bytes.decode(b"", True):
                    pieces.append(Piece(cut))
                pieces.append(Piece(self._texts[token], token))
            else:
                pieces.append(Piece(self._bytes.decode(bytes([token])), token))
        return pieces

    def finish(self) -> list[Piece]:
        rest = self._bytes.decode(b"", True)
        return [Piece(rest)] if rest else []
