"""What the scheduler is asked for, and which requests are wrong in themselves."""

from collections.abc import Sequence
from math import isfinite
from typing import Protocol

from helios.contract.operation import Operation
from helios.contract.submission import Geometry, Sampling
from helios.errors import AdmissionError, RequestError
from helios.records import dataclass

PRIORITIES = range(-100, 101)
MOST_STOP_SEQUENCES = 16
LONGEST_STOP_SEQUENCE = 64


class HostMonitor(Protocol):
    """A request's grammar or string stops: what only the host can decide, token by token.

    A request with a monitor takes the barrier: its steps run with nothing else in flight, so
    that every token is seen here before the next is drawn. `accept` is called between steps, so
    it should be quick; `mask` is called while the step that needs it runs, and only where the
    request is `constrained`. Either may raise, which ends the request and no other.
    """

    def accept(self, token: int) -> bool:
        """Take a sampled token; true where it completes a stop."""

    def mask(self) -> bytes | None:
        """One bit per vocabulary token, little endian, for the next token; None allows all."""

    def masks_along(self, proposals: Sequence[int]) -> list[bytes | None]:
        """The masks of the next token and of that after each proposal, had those before it been
        drawn. Nothing is taken: `accept` follows for the tokens that are.

        Behind a proposal that is not allowed, or with which the response stops, nothing counts,
        and the masks are None.
        """


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt to continue. `max_tokens` 0 asks for prompt scores alone.

    `prompt_logprobs` is the number of alternatives scored per prompt token, or -1 for no
    scores. `constrained` marks a monitor that masks tokens, as against one that only stops.
    `boundaries` are prompt endpoints worth a snapshot. `images` are spans of the prompt whose
    tokens stand for an image, as (start, length, digest): equal tokens with another digest
    are another prompt to the cache.
    """

    id: int
    prompt: tuple[int, ...]
    max_tokens: int
    sampling: Sampling
    eos_tokens: tuple[int, ...] = ()
    stop_tokens: tuple[int, ...] = ()
    stop_sequences: tuple[tuple[int, ...], ...] = ()
    monitor: HostMonitor | None = None
    constrained: bool = False
    prompt_logprobs: int = -1
    priority: int = 0
    use_cache: bool = True
    cache_salt: str = ""
    boundaries: tuple[int, ...] = ()
    images: tuple[tuple[int, int, bytes], ...] = ()


def output_limit(request: Request, geometry: Geometry) -> int:
    """The most tokens the request may sample: what it asks for, within the context."""
    return min(request.max_tokens, geometry.context_tokens - len(request.prompt))


def most_consumed(request: Request, geometry: Geometry) -> int:
    """The most tokens the request ever keeps: the last one sampled is not consumed."""
    return len(request.prompt) + max(output_limit(request, geometry) - 1, 0)


def check_request(request: Request, geometry: Geometry) -> None:
    """Refuse a request that is wrong whatever else runs. Raises `RequestError`."""
    _check_prompt(request, geometry)
    _check_limits(request, geometry)
    _check_sampling(request.sampling, geometry)
    _check_stops(request, geometry)
    _check_spans(request)


def check_fits(request: Request, geometry: Geometry) -> None:
    """Refuse a request that the page pool could never hold. Raises `AdmissionError`."""
    consumed = most_consumed(request, geometry)
    needed = -(-consumed // geometry.page_tokens)
    if needed > geometry.pages:
        raise AdmissionError(
            f"{len(request.prompt)} prompt tokens and {request.max_tokens} new ones need "
            f"{needed} pages of {geometry.page_tokens} tokens; the pool has {geometry.pages}",
            field="max_tokens",
            value=request.max_tokens,
            remedy=f"keep prompt and output within {geometry.pages * geometry.page_tokens} tokens",
        )


def _check_prompt(request: Request, geometry: Geometry) -> None:
    prompt = request.prompt
    if not prompt:
        raise RequestError(
            "a prompt needs at least one token", field="prompt", remedy="send a prompt"
        )
    longest = geometry.context_tokens - (request.max_tokens > 0)
    if len(prompt) > longest:
        raise RequestError(
            f"the prompt has {len(prompt)} tokens; the context holds {geometry.context_tokens}",
            field="prompt",
            value=len(prompt),
            remedy=f"send at most {longest} tokens",
        )
    if min(prompt) < 0 or max(prompt) >= geometry.input_vocabulary:
        raise RequestError(
            "a prompt token is outside the vocabulary",
            field="prompt",
            value=min(prompt) if min(prompt) < 0 else max(prompt),
            remedy=f"use ids from 0 to {geometry.input_vocabulary - 1}",
        )


def _check_limits(request: Request, geometry: Geometry) -> None:
    if request.max_tokens < 0 or (request.max_tokens == 0 and request.prompt_logprobs < 0):
        raise RequestError(
            "nothing is asked for",
            field="max_tokens",
            value=request.max_tokens,
            remedy="ask for at least one token, or for prompt_logprobs",
        )
    if not -1 <= request.prompt_logprobs <= geometry.alternatives:
        raise RequestError(
            "too many alternatives",
            field="prompt_logprobs",
            value=request.prompt_logprobs,
            remedy=f"ask for at most {geometry.alternatives}",
        )
    scores = any(v.operation is Operation.SCORED_PREFILL for v in geometry.variants)
    if request.prompt_logprobs >= 0 and not scores:
        raise RequestError(
            "this core has no program that scores prompts",
            field="prompt_logprobs",
            value=request.prompt_logprobs,
            remedy="leave it out",
        )
    if request.priority not in PRIORITIES:
        raise RequestError(
            "priority out of range",
            field="priority",
            value=request.priority,
            remedy=f"use {PRIORITIES[0]} to {PRIORITIES[-1]}, the highest first",
        )


def _check_sampling(sampling: Sampling, geometry: Geometry) -> None:
    numbers = (
        sampling.temperature,
        sampling.top_p,
        sampling.min_p,
        sampling.repetition_penalty,
        sampling.presence_penalty,
        sampling.frequency_penalty,
        *(value for _, value in sampling.logit_bias),
    )
    if not all(isfinite(number) for number in numbers):
        raise RequestError("sampling values must be finite", field="sampling", value=sampling)
    if not -1 <= sampling.top_logprobs <= geometry.alternatives:
        raise RequestError(
            "too many alternatives",
            field="top_logprobs",
            value=sampling.top_logprobs,
            remedy=f"ask for at most {geometry.alternatives}",
        )
    if len(sampling.logit_bias) > geometry.bias_capacity:
        raise RequestError(
            "too many biased tokens",
            field="logit_bias",
            value=len(sampling.logit_bias),
            remedy=f"bias at most {geometry.bias_capacity}",
        )
    _check_ids("logit_bias", [token for token, _ in sampling.logit_bias], geometry)


def _check_stops(request: Request, geometry: Geometry) -> None:
    if len(request.eos_tokens) > geometry.eos_capacity:
        raise RequestError(
            "too many end tokens",
            field="eos_tokens",
            value=len(request.eos_tokens),
            remedy=f"name at most {geometry.eos_capacity}",
        )
    sequences = request.stop_sequences
    if len(sequences) > MOST_STOP_SEQUENCES or any(
        not 0 < len(sequence) <= LONGEST_STOP_SEQUENCE for sequence in sequences
    ):
        raise RequestError(
            "too many stop sequences, or one that is empty or too long",
            field="stop_sequences",
            value=[len(sequence) for sequence in sequences],
            remedy=f"send at most {MOST_STOP_SEQUENCES} of 1 to {LONGEST_STOP_SEQUENCE} tokens",
        )
    _check_ids("eos_tokens", request.eos_tokens, geometry)
    _check_ids("stop_tokens", request.stop_tokens, geometry)


def _check_ids(field: str, tokens: list[int] | tuple[int, ...], geometry: Geometry) -> None:
    for token in tokens:
        if not 0 <= token < geometry.vocabulary:
            raise RequestError(
                "a token is outside the vocabulary",
                field=field,
                value=token,
                remedy=f"use ids from 0 to {geometry.vocabulary - 1}",
            )


def _check_spans(request: Request) -> None:
    length = len(request.prompt)
    for boundary in request.boundaries:
        if not 0 < boundary <= length:
            raise RequestError(
                "a boundary lies outside the prompt", field="boundaries", value=boundary
            )
    end = 0
    for start, count, _ in request.images:
        if start < end or count <= 0 or start + count > length:
            raise RequestError(
                "image spans must lie in the prompt, in order and apart",
                field="images",
                value=(start, count),
            )
        end = start + count
