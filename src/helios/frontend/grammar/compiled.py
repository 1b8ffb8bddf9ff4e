"""Compiled grammars: bounded in size and work, and kept by content."""

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from helios.errors import RequestError
from helios.frontend.grammar.diagnosis import blame
from helios.frontend.grammar.lark import Writer
from helios.frontend.grammar.limits import parser_limits
from helios.frontend.grammar.vocabulary import GrammarVocabulary

if TYPE_CHECKING:
    from llguidance import LLMatcher

MAX_GRAMMAR = 1 << 19
"""Characters of one grammar, request parts and envelope together."""
KEPT = 64
"""Grammars kept for requests to come."""


class CompiledGrammars:
    """Compiles grammars and keeps the latest. May be used by several threads.

    A grammar's key is its text, so that one that was dropped can be compiled again.
    """

    def __init__(self, vocabulary: GrammarVocabulary, kept: int = KEPT) -> None:
        self._vocabulary = vocabulary
        self._kept = kept
        self._lock = threading.Lock()
        self._matchers: OrderedDict[str, LLMatcher] = OrderedDict()

    def add(self, writer: Writer, start: str) -> str:
        """Compile a grammar; its key. Raises `RequestError` naming the part of the request that
        can't be followed."""
        key = writer.grammar(start)
        if len(key) > MAX_GRAMMAR:
            raise RequestError(
                f"makes a grammar of {len(key)} characters",
                field=max(writer.parts, key=lambda part: len(part.grammar)).where,
                remedy=f"keep schemas and grammars below {MAX_GRAMMAR} characters in all",
            )
        if self._find(key) is None:
            matcher = self._compile(key)
            if matcher.is_error():
                raise blame(writer.parts, matcher.get_error())
            self._keep(key, matcher)
        return key

    def matcher(self, key: str) -> "LLMatcher":
        """A matcher of its own at the start of a grammar."""
        matcher = self._find(key)
        if matcher is None:
            matcher = self._compile(key)
            self._keep(key, matcher)
        return matcher.deep_copy()

    def _find(self, key: str) -> "LLMatcher | None":
        with self._lock:
            matcher = self._matchers.get(key)
            if matcher is not None:
                self._matchers.move_to_end(key)
            return matcher

    def _keep(self, key: str, matcher: "LLMatcher") -> None:
        with self._lock:
            self._matchers[key] = matcher
            while len(self._matchers) > self._kept:
                self._matchers.popitem(last=False)

    def _compile(self, key: str) -> "LLMatcher":
        from llguidance import LLMatcher

        matcher = LLMatcher(self._vocabulary.tokens, key, log_level=0, limits=parser_limits())
        if not matcher.is_error():
            matcher.compute_bitmask()  # what the first mask builds is then shared by all copies
        return matcher
