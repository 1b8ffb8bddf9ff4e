"""What server and engine say to each other: small immutable messages over bounded queues.

Requests are numbered by the caller; a number is never used twice in one engine's life. For each
`Generate` the engine emits any number of `Tokens` and `PromptScores` and then exactly one
terminal event: `Finished` or `Failed`.
"""

from enum import StrEnum

import msgspec

from helios.contract.submission import Sampling


class Generate(msgspec.Struct, frozen=True, tag=True):
    """Generate from a prompt. `max_tokens` counts sampled tokens and is at least one,
    except that 0 asks for prompt scores alone."""

    id: int
    prompt: tuple[int, ...]
    max_tokens: int
    sampling: Sampling
    eos_tokens: tuple[int, ...] = ()
    stop_tokens: tuple[int, ...] = ()
    stop_sequences: tuple[tuple[int, ...], ...] = ()
    stop_strings: tuple[str, ...] = ()
    grammar: str | None = None  # a compiled-grammar key understood by the injected monitor factory
    prompt_logprobs: int = -1  # alternatives per prompt token; -1 for no scores
    priority: int = 0
    use_cache: bool = True
    cache_salt: str = ""
    timestamps: bool = False


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Stop a request: its output ends at once, its resources go after the last fence."""

    id: int


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


Command = Generate | Cancel
Event = Tokens | PromptScores | Finished | Failed
