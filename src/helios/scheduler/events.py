"""What the scheduler says of a request: tokens and scores, then exactly one terminal event."""

from enum import StrEnum

import msgspec


class FinishReason(StrEnum):
    """Why a request ended in good order."""

    EOS = "eos"
    STOP = "stop"  # a stop token, sequence or string
    LENGTH = "length"
    CANCELLED = "cancelled"


class FailureKind(StrEnum):
    """Whose fault a failure is; decides the HTTP status, never the message text."""

    ADMISSION = "admission"  # the scheduler can never run it: 503
    EXECUTION = "execution"  # device, model or worker: 500


class TokenLogprob(msgspec.Struct, frozen=True):
    """Log-probability of one token and of its most likely alternatives."""

    logprob: float
    top: tuple[tuple[int, float], ...] = ()


class Tokens(msgspec.Struct, frozen=True, tag=True):
    """Newly accepted tokens, EOS and stop tokens included."""

    id: int
    tokens: tuple[int, ...]
    logprobs: tuple[TokenLogprob, ...] = ()
    timestamps_ns: tuple[int, ...] = ()


class PromptScores(msgspec.Struct, frozen=True, tag=True):
    """Scores of the next prompt tokens, in order; the first prompt token has none."""

    id: int
    scores: tuple[TokenLogprob, ...]


class Finished(msgspec.Struct, frozen=True, tag=True):
    """The request ended in good order; `stop` is the token, sequence or string that matched."""

    id: int
    reason: FinishReason
    prompt_tokens: int
    output_tokens: int
    reused_prompt_tokens: int = 0
    stop: int | tuple[int, ...] | str | None = None


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The request ended in an error."""

    id: int
    kind: FailureKind
    message: str


Event = Tokens | PromptScores | Finished | Failed
