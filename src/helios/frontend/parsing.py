"""What the output pipeline and its parsers say to each other.

The pipeline decodes sampled tokens into pieces; a parser turns pieces into deltas; presentation
turns deltas into JSON or SSE. A parser never sees token ids that the syntax has no use for, and
never sees what a string stop or a token stop has removed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from helios.engine.messages import FinishReason
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """The decoded text of one token.

    `text` is '' while the token's bytes do not yet complete a character; the token that completes
    it carries the whole character. `token` is -1 for text without a token of its own: bytes that
    turned out to be no character, flushed before a special token or at the end. A special token
    is always a piece of its own, its text the token's spelling.
    """

    text: str
    token: int = -1


@dataclass(frozen=True, slots=True)
class ContentDelta:
    """More visible answer text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More reasoning text."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """A call opens. Indexes count from zero; `id` is unique in the response; `name` is whole."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolCallArguments:
    """More of a call's arguments. All fragments of a complete call join to one JSON object."""

    index: int
    fragment: str


@dataclass(frozen=True, slots=True)
class ToolCallEnd:
    """The call is complete. A call that was cut has no end."""

    index: int


Delta = ContentDelta | ReasoningDelta | ToolCallStart | ToolCallArguments | ToolCallEnd


class OutputParser(Protocol):
    """One response's parser. It raises nothing, whatever the pieces hold.

    `special_tokens` are the special tokens that the syntax uses; the pipeline drops all other
    special tokens before they reach `feed`. Tokens that are not special always arrive.
    """

    @property
    def special_tokens(self) -> frozenset[int]:
        """Special tokens that must arrive as pieces."""

    def feed(self, pieces: Sequence[Piece]) -> list[Delta]:
        """Take the next pieces, in order; return what they settle."""

    def finish(self, reason: FinishReason) -> list[Delta]:
        """Flush what was held back. Called once, after the last piece."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A function the request offers; `parameters` is its JSON Schema, which a call to a `strict`
    one keeps to."""

    name: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    strict: bool = False


@dataclass(frozen=True, slots=True)
class ParserRequest:
    """What a parser may know of its request.

    `prompt` is the rendered prompt, whose end decides whether the response starts inside
    reasoning, content or a tool body. `structured` says that a grammar constrains the answer,
    whose literal delimiters are then answer text.
    """

    prompt: str
    tools: tuple[ToolDefinition, ...] = ()
    structured: bool = False


ParserFactory = Callable[[ParserRequest], OutputParser]


class PlainParser:
    """Every text is content."""

    special_tokens: frozenset[int] = frozenset()

    def feed(self, pieces: Sequence[Piece]) -> list[Delta]:
        """Join the pieces into one delta."""
        text = "".join([piece.text for piece in pieces])
        return [ContentDelta(text)] if text else []

    def finish(self, reason: FinishReason) -> list[Delta]:
        """Nothing is ever held back."""
        return []


def plain_parser(request: ParserRequest) -> OutputParser:
    """The factory of a contract without tool and reasoning syntax."""
    return PlainParser()
