"""Tokens to text as they come, never splitting a character."""

import codecs
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Protocol

from helios.frontend.parsing import Piece

_UTF8 = codecs.getincrementaldecoder("utf-8")


class TokenTexts(Protocol):
    """What decoding needs of a tokenizer."""

    @property
    def special_tokens(self) -> frozenset[int]:
        """Tokens that are a spelling of their own."""

    def token_bytes(self, token: int) -> bytes:
        """The token's exact bytes."""

    def whole_piece(self, token: int) -> Piece | None:
        """The token where its bytes are whole characters."""


class Detokenizer:
    """One response's decoding.

    Bytes wait until they complete a character. Bytes that no later byte could complete become
    U+FFFD, one for each maximal part of a character, so that the joined texts equal the decoding
    of all bytes at once.
    """

    def __init__(self, tokenizer: TokenTexts) -> None:
        self._whole_piece = tokenizer.whole_piece
        self._token_bytes = tokenizer.token_bytes
        self._special = tokenizer.special_tokens
        self._decoder = _UTF8("replace")
        self._pending = False

    def feed(self, tokens: Sequence[int]) -> list[Piece]:
        """The next tokens as pieces, one a token, and one more where a special token cuts
        unfinished bytes off."""
        pieces: list[Piece] = []
        for token in tokens:
            piece = None if self._pending else self._whole_piece(token)
            if piece is None:
                self._decode(token, pieces)
            else:
                pieces.append(piece)
        return pieces

    def copy(self) -> "Detokenizer":
        """Another one that has read the same."""
        made = copy(self)
        made._decoder = _UTF8("replace")
        made._decoder.setstate(self._decoder.getstate())
        return made

    def finish(self) -> list[Piece]:
        """What can no longer be completed."""
        text = self._decoder.decode(b"", True)
        self._pending = False
        return [Piece(text)] if text else []

    def _decode(self, token: int, pieces: list[Piece]) -> None:
        data = self._token_bytes(token)
        if token in self._special:
            pieces.extend(self.finish())
            pieces.append(Piece(data.decode(), token))
            return
        pieces.append(Piece(self._decoder.decode(data), token))
        self._pending = bool(self._decoder.getstate()[0])


class LeadingSpace:
    """Drops the space that some tokenizers add before a text's first word.

    It belongs to a text of its own, not to one that continues a prompt's last words. Special
    tokens before the first word don't count as text.
    """

    def __init__(self, tokenizer: TokenTexts) -> None:
        self._special = tokenizer.special_tokens
        self._waiting = True

    def feed(self, pieces: list[Piece]) -> list[Piece]:
        """The pieces, the first text without its first space."""
        if not self._waiting:
            return pieces
        for number, piece in enumerate(pieces):
            if piece.text and piece.token not in self._special:
                self._waiting = False
                first = replace(piece, text=piece.text.removeprefix(" "))
                return [*pieces[:number], first, *pieces[number + 1 :]]
        return pieces
