"""Bodies of /v1/completions."""

from typing import Literal

import msgspec

from helios.server.protocol.chat import PromptScoreList
from helios.server.protocol.fields import Alternatives, Choices, GenerationFields, Token, Usage


class CompletionRequest(GenerationFields, kw_only=True, forbid_unknown_fields=True):
    """A request to continue texts or token lists. Each prompt gets `n` choices."""

    prompt: str | list[str | Token | list[Token]]
    best_of: Choices | None = None
    echo: bool | None = None
    logprobs: Alternatives | None = None
    prompt_logprobs: Alternatives | None = None
    suffix: str | None = None


class CompletionLogprobs(msgspec.Struct):
    """Four lists, one entry a token. The first token of an echoed prompt has no score."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]


class CompletionChoice(msgspec.Struct, kw_only=True):
    """One continuation, or in a stream what is added to it."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None = None
    finish_reason: str | None = None
    prompt_logprobs: PromptScoreList | msgspec.UnsetType = msgspec.UNSET


class Completion(msgspec.Struct, kw_only=True):
    """The whole response, or one event of a stream."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage | msgspec.UnsetType | None = msgspec.UNSET
