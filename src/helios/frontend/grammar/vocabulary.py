"""A core's tokens as llguidance needs them, built the first time that a grammar does."""

import threading
from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from llguidance import LLTokenizer


class TokenSource(Protocol):
    """What grammars need of a tokenizer."""

    @property
    def special_tokens(self) -> frozenset[int]:
        """Tokens that are no text."""

    @property
    def id_limit(self) -> int:
        """One more than the highest token id."""

    @property
    def leading_strip(self) -> bool:
        """Whether a space at the start of a text belongs to the tokenizer."""

    def token_bytes(self, token: int) -> bytes:
        """The token's exact bytes."""

    def encode(self, text: str) -> list[int]:
        """Tokens of a text."""


class GrammarVocabulary:
    """Shared by all grammars of a core. May be used by several threads.

    `markers` are tokens that no text may hold unless a grammar names them, like special ones;
    `eos` are those that end a response where a grammar accepts.
    """

    def __init__(
        self, tokenizer: TokenSource, markers: Collection[int], eos: Collection[int]
    ) -> None:
        self._source = tokenizer
        self._markers = frozenset(markers) | tokenizer.special_tokens | frozenset(eos)
        self.eos = tuple(sorted(eos))
        self._lock = threading.Lock()
        self._built: LLTokenizer | None = None

    @property
    def size(self) -> int:
        """One more than the highest token id."""
        return self._source.id_limit

    @property
    def tokens(self) -> "LLTokenizer":
        """The vocabulary in llguidance's form. The first use takes some tenths of a second."""
        with self._lock:
            if self._built is None:
                self._built = self._build()
            return self._built

    def _build(self) -> "LLTokenizer":
        from llguidance import LLTokenizer, TokenizerWrapper

        source = _Source(self._source, self._markers, self.eos)
        return LLTokenizer(TokenizerWrapper(source), eos_token=list(self.eos))


class _Source:
    """What llguidance asks of a tokenizer. It would encode text that a grammar leaves no choice
    about, but grammars are written so that it never does."""

    def __init__(
        self, tokenizer: TokenSource, special: frozenset[int], eos: tuple[int, ...]
    ) -> None:
        limit = tokenizer.id_limit
        self.eos_token_id = eos[0]
        self.bos_token_id = None
        self.tokens = [tokenizer.token_bytes(token) for token in range(limit)]
        self.special_token_ids = sorted(token for token in special if token < limit)
        self._encode = tokenizer.encode

    def __call__(self, text: str) -> list[int]:
        """The tokens of a text."""
        return self._encode(text)
