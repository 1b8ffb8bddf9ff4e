"""What server and engine say to each other: small immutable messages over bounded queues.

Requests are numbered by the caller; a number is never used twice in one engine's life. For each
`Generate` the engine emits any number of `Tokens` and `PromptScores` and then exactly one
terminal event: `Finished` or `Failed`.
"""

import msgspec

from helios.contract.submission import Sampling
from helios.scheduler.events import (
    Event,
    Failed,
    FailureKind,
    Finished,
    FinishReason,
    PromptScores,
    TokenLogprob,
    Tokens,
)

__all__ = [
    "Cancel",
    "Command",
    "Event",
    "Failed",
    "FailureKind",
    "FinishReason",
    "Finished",
    "Generate",
    "PromptScores",
    "TokenLogprob",
    "Tokens",
]


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
    priority: int = 0  # higher is served sooner
    use_cache: bool = True
    cache_salt: str = ""
    timestamps: bool = False
    boundaries: tuple[int, ...] = ()  # prompt endpoints whose state is worth a snapshot
    images: tuple[tuple[int, int, bytes], ...] = ()  # spans of the prompt: start, length, digest


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Stop a request: its output ends at once, its resources go after the last fence."""

    id: int


Command = Generate | Cancel
