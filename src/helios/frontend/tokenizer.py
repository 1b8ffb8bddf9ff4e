"""Text to tokens and back, with the exact bytes of every token."""

from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from typing import Any

from helios.errors import ContractError
from helios.frontend.detokenizer import Detokenizer, LeadingSpace
from helios.frontend.parsing import Piece
from helios.frontend.token_bytes import TokenSpelling, read_spelling
from helios.frontend.tokenizer_file import read_tokenizer


class Tokenizer:
    """A core's tokenizer. Immutable; may be shared by threads.

    `source` is the text of a `tokenizer.json`. Raises `ContractError` where it can't be read or
    decodes tokens in a way by which their bytes can't be known one token at a time.
    """

    def __init__(self, source: str) -> None:
        try:
            self._tokenizer, layout = read_tokenizer(source)
        except Exception as error:
            raise ContractError(
                f"the tokenizer can't be read: {error}",
                field="frontend.tokenizer_resource",
                remedy="prepare the core again from a complete checkpoint",
            ) from error
        # A tokenizer that truncates or pads would silently change prompts.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._spelling: TokenSpelling = read_spelling(layout.get("decoder"))
        added = layout.get("added_tokens") or []
        self._added: dict[int, str] = {token["id"]: token["content"] for token in added}
        self.special_tokens: frozenset[int] = frozenset(
            token["id"] for token in added if token.get("special")
        )
        self.vocabulary: int = self._tokenizer.get_vocab_size(with_added_tokens=True)
        self.leading_strip: bool = self._spelling.leading_strip
        self._longest = _longest_token(layout)
        self._bytes: dict[int, bytes] = {}
        self._pieces: dict[int, Piece | None] = {}

    @cached_property
    def id_limit(self) -> int:
        """One more than the highest token id."""
        entries: dict[str, int] = self._tokenizer.get_vocab(with_added_tokens=True)
        return max(entries.values()) + 1

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Tokens of a text. Spelled-out added tokens become those tokens; `special` also adds
        what the tokenizer itself puts around a text."""
        # A batch of one: only batches let other threads run meanwhile.
        ids: list[int] = self._tokenizer.encode_batch_fast([text], add_special_tokens=special)[
            0
        ].ids
        return ids

    def encode_with_ends(self, text: str) -> tuple[list[int], list[int]]:
        """Tokens of a text, and after how many of its characters each ends."""
        encoding = self._tokenizer.encode_batch([text], add_special_tokens=False)[0]
        return encoding.ids, [end for _, end in encoding.offsets]

    def fewest_tokens(self, text: str) -> int:
        """A lower bound of how many tokens a text has, known without encoding it."""
        return len(text) // self._longest if self._longest else 0

    def token_id(self, text: str) -> int | None:
        """The vocabulary entry of exactly this spelling."""
        found: int | None = self._tokenizer.token_to_id(text)
        return found

    def single_token(self, text: str) -> int | None:
        """The one token that a text encodes to, or None where it takes several or none."""
        ids = self.encode(text)
        return ids[0] if len(ids) == 1 else None

    def is_added(self, token: int) -> bool:
        """Whether the token is a whole spelling of its own, special or not."""
        return token in self._added

    def token_bytes(self, token: int) -> bytes:
        """The exact bytes of one token; none for an id that the tokenizer doesn't know."""
        data = self._bytes.get(token)
        if data is None:
            data = self._bytes[token] = self._read_bytes(token)
        return data

    def _read_bytes(self, token: int) -> bytes:
        if token in self.special_tokens:
            return self._added[token].encode()
        if token in self._added:
            return self._spelling.added_bytes(self._added[token])
        text = self._tokenizer.id_to_token(token) if token >= 0 else None
        return b"" if text is None else self._spelling.bytes_of(text)

    def token_text(self, token: int) -> str:
        """One token's text by itself; bytes that are no character become U+FFFD."""
        return self.token_bytes(token).decode("utf-8", "replace")

    def whole_piece(self, token: int) -> Piece | None:
        """The token as a piece where its bytes are whole characters, else None. Cached."""
        try:
            return self._pieces[token]
        except KeyError:
            try:
                piece = Piece(self.token_bytes(token).decode(), token)
            except UnicodeDecodeError:
                piece = None
            self._pieces[token] = piece
            return piece

    def decode(self, tokens: Sequence[int], *, at_start: bool = True) -> str:
        """The whole text of tokens, special ones spelled out. `at_start` applies the rule by
        which some tokenizers drop the space that they add before a text's first word."""
        detokenizer = Detokenizer(self)
        pieces = detokenizer.feed(tokens) + detokenizer.finish()
        if at_start and self.leading_strip:
            pieces = LeadingSpace(self).feed(pieces)
        return "".join([piece.text for piece in pieces])


def _longest_token(layout: dict[str, Any]) -> int:
    """The most characters of a text that one token can stand for; 0 where that isn't known.

    A normaliser may shorten a text, and an unknown token may stand for any length of it.
    """
    model = layout["model"]
    names = model.get("vocab")
    if (
        layout.get("normalizer") is not None
        or model.get("unk_token")
        or not isinstance(names, dict)
    ):
        return 0
    added = [token["content"] for token in layout.get("added_tokens") or ()]
    return max(map(len, chain(names, added)), default=0)
