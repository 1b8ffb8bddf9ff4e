"""Random walks: a grammar followed by a sampler that knows nothing but its masks."""

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from helios.contract.syntax import PreparedFrontend
from helios.engine.messages import FinishReason
from helios.frontend.detokenizer import Detokenizer
from helios.frontend.grammar.constraints import Constraint, Constraints, Demands
from helios.frontend.grammar.monitor import GrammarMonitor
from helios.frontend.parsers import marks_of, parser_factory
from helios.frontend.parsing import (
    ContentDelta,
    ParserRequest,
    Piece,
    ReasoningDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)

PIECES = [
    *(" ", "  ", "\n", "\n\n", " a", "the", "Rome", " Tokyo", "é", "東", "🚀", "ab", "foo", "bar"),
    *('{"', '":', '": ', '", "', '"}', '"]', "}}", "]}", "},", "1", "12", "7.5", "-3", "true"),
    *("false", "null", "True", "None", "[{", "}]", "</", "<", ">", "=", "\\n", "\\u00e9"),
]


class WalkTokens:
    """A tokenizer for tests: every byte, some pieces of text, and special tokens."""

    def __init__(
        self, special: Iterable[str], closers: Iterable[str] = (), *, leading_strip: bool = False
    ) -> None:
        self.leading_strip = leading_strip
        specials = list(dict.fromkeys(special))
        texts = [text for text in dict.fromkeys([*PIECES, *closers]) if text not in specials]
        self._bytes = [bytes([byte]) for byte in range(256)]
        self._bytes += [text.encode() for text in (*texts, *specials, "<eos>")]
        self.id_limit = len(self._bytes)
        first = self.id_limit - len(specials) - 1
        self._ids = {text: first + number for number, text in enumerate([*specials, "<eos>"])}
        self.eos = self._ids["<eos>"]
        self.special_tokens = frozenset(self._ids.values())
        ends = (*closers, '"', "}", "]", "</")
        self.closers = {
            n for n, data in enumerate(self._bytes) if data in {t.encode() for t in ends}
        }

    def token_bytes(self, token: int) -> bytes:
        return self._bytes[token]

    def token_id(self, text: str) -> int | None:
        return self._ids.get(text)

    def is_added(self, token: int) -> bool:
        return token in self.special_tokens

    def whole_piece(self, token: int) -> Piece | None:
        try:
            return Piece(self._bytes[token].decode(), token)
        except UnicodeDecodeError:
            return None

    def encode(self, text: str) -> list[int]:
        """Special tokens where they are spelled, bytes elsewhere."""
        tokens: list[int] = []
        while text:
            found = next((t for t in self._ids if text.startswith(t)), None)
            if found is not None:
                tokens.append(self._ids[found])
                text = text[len(found) :]
            else:
                tokens += text[0].encode()
                text = text[1:]
        return tokens


@dataclass
class Reply:
    """What a parser made of a walk."""

    content: str = ""
    reasoning: str = ""
    calls: list[tuple[str, object]] = field(default_factory=list)
    complete: bool = True


@dataclass
class Walker:
    """One core's constraints and parsers."""

    frontend: PreparedFrontend
    tokens: WalkTokens
    constraints: Constraints

    def walk(
        self, constraint: Constraint, seed: int, *, restless: int = 120, limit: int = 4000
    ) -> list[int]:
        """Tokens up to the end token; after `restless` of them the walk looks for the end."""
        assert constraint.key is not None
        ends = frozenset({self.tokens.eos})
        monitor = self.constraints.monitor(constraint.key, ends=ends)
        return follow(monitor, self.tokens, seed, restless=restless, limit=limit)

    def allows(self, constraint: Constraint, tokens: Sequence[int]) -> bool:
        """Whether a whole response is allowed, the end token after it included."""
        assert constraint.key is not None
        monitor = self.constraints.monitor(constraint.key, ends=frozenset({self.tokens.eos}))
        for token in (*tokens, self.tokens.eos):
            if not allowed(monitor, token):
                return False
            monitor.accept(token)
        return True

    def read(self, tokens: Sequence[int], demands: Demands, prompt: str, structured: bool) -> Reply:
        """The parser's reading of a response that ended by itself."""
        parser = parser_factory(self.frontend, self.tokens)(
            ParserRequest(prompt, tuple(demands.tools), structured)
        )
        decoder = Detokenizer(self.tokens)
        pieces = [p for p in decoder.feed(tokens) + decoder.finish() if p.token != self.tokens.eos]
        reply = Reply()
        arguments: dict[int, list[str]] = {}
        names: dict[int, str] = {}
        for delta in [*parser.feed(pieces), *parser.finish(FinishReason.EOS)]:
            match delta:
                case ContentDelta(text):
                    reply.content += text
                case ReasoningDelta(text):
                    reply.reasoning += text
                case ToolCallStart(index, _, name):
                    names[index], arguments[index] = name, []
                case ToolCallArguments(index, fragment):
                    arguments[index].append(fragment)
                case ToolCallEnd(index):
                    reply.calls.append((names[index], json.loads("".join(arguments[index]))))
        reply.complete = len(reply.calls) == len(names)
        return reply


def walker(
    frontend: PreparedFrontend,
    special: Iterable[str],
    closers: Iterable[str] = (),
    *,
    leading_strip: bool = False,
) -> Walker:
    """A core's constraints over a vocabulary with these special tokens; `closers` are markers
    that stand as text."""
    tokens = WalkTokens(special, closers, leading_strip=leading_strip)
    facts = replace(frontend, eos_tokens=(tokens.eos,))
    return Walker(facts, tokens, Constraints(facts, tokens, marks_of(facts, tokens)))


def allowed_tokens(monitor: GrammarMonitor) -> list[int]:
    mask = monitor.mask()
    assert mask is not None
    bits = np.unpackbits(np.frombuffer(mask, np.uint8), bitorder="little")
    return [int(token) for token in np.flatnonzero(bits)]


def allowed(monitor: GrammarMonitor, token: int) -> bool:
    return token in allowed_tokens(monitor)


def follow(
    monitor: GrammarMonitor, tokens: WalkTokens, seed: int, *, restless: int, limit: int
) -> list[int]:
    """Choose among what the masks allow: readily first, then whatever leads to an end."""
    chance = random.Random(seed)
    walked: list[int] = []
    while len(walked) < limit:
        choices = allowed_tokens(monitor)
        assert choices, "a dead end"
        token = _choose(chance, choices, tokens, hurried=len(walked) >= restless)
        walked.append(token)
        if token == tokens.eos:
            return walked
        monitor.accept(token)
    raise AssertionError(f"no end in sight: {tokens_text(tokens, walked[-200:])!r}")


def _choose(chance: random.Random, choices: list[int], tokens: WalkTokens, *, hurried: bool) -> int:
    """One of the choices. In a hurry it is what most likely closes something."""
    special = [token for token in choices if token in tokens.special_tokens - {tokens.eos}]
    if hurried:
        closers = [token for token in choices if token in tokens.closers]
        for group in ([tokens.eos] if tokens.eos in choices else [], special, closers):
            if group and chance.random() < 0.9:
                return chance.choice(group)
    rest = [token for token in choices if token != tokens.eos] or choices
    if special and chance.random() < 0.2:
        return chance.choice(special)
    pieces = [token for token in rest if token >= 256 and token not in tokens.special_tokens]
    if pieces and chance.random() < 0.7:
        return chance.choice(pieces)
    readable = [token for token in rest if token < 256 and 32 <= token < 127]
    return chance.choice(readable or rest)


def tokens_text(tokens: WalkTokens, walked: Sequence[int]) -> str:
    return b"".join(tokens.token_bytes(token) for token in walked).decode("utf-8", "replace")
