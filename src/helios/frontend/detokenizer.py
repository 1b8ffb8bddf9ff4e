"""Tokens to text as they come, never splitting a character."""

import codecs
from collections.abc import Sequence
from typing import Protocol

from helios.frontend.parsing import Piece

_UTF8 = codecs.getincrementaldecoder("utf-8")


class TokenTexts(Protocol):
    """What decoding needs of a tokenizer."""

    @property
    def special_tokens(self) -> frozenset[int]:
        """Tokens that are a spelling of their own."""

    @property
    def leading_strip(self) -> bool:
        """Whether a text's first space belongs to the tokenizer."""

    def token_bytes(self, token: int) -> bytes:
        """The token's exact bytes."""

    def whole_piece(self, token: int) -> Piece | None:
        """The token where its bytes are whole characters."""


class Detokenizer:
    """One response's decoding.

    Bytes wait until they complete a character. Bytes that no later byte could complete become
    U+FFFD, one for each maximal part of a character, so that the joined texts equal the decoding
    of all bytes at once. `at_start` says that the response starts a text of its own.
    """

    def __init__(self, tokenizer: TokenTexts, *, at_start: bool = False) -> None:
        self._whole_piece = tokenizer.whole_piece
        self._token_bytes = tokenizer.token_bytes
        self._special = tokenizer.special_tokens
        self._strip = at_start and tokenizer.leading_strip
        self._decoder = _UTF8("replace")
        self._careful = self._strip

    def feed(self, tokens: Sequence[int]) -> list[Piece]:
        """The next tokens as pieces, one a token, and one more where a special token cuts
        unfinished bytes off."""
        pieces: list[Piece] = []
        for token in tokens:
            piece = None if self._careful else self._whole_piece(token)
            if piece is None:
                self._decode(token, pieces)
            else:
                pieces.append(piece)
        return pieces

    def finish(self) -> list[Piece]:
        """What can no longer be completed."""
        text = self._decoder.decode(b"", True)
        self._careful = self._strip
        return [Piece(text)] if text else []

    def _decode(self, token: int, pieces: list[Piece]) -> None:
        data = self._token_bytes(token)
        if token in self._special:
            pieces.extend(self.finish())
            pieces.append(Piece(data.decode(), token))
            return
        if self._strip and data:
            data = data.removeprefix(b" ")
            self._strip = False
        pieces.append(Piece(self._decoder.decode(data), token))
        self._careful = self._strip or bool(self._decoder.getstate()[0])
