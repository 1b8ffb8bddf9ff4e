"""Preparing /v1/completions: from the request's fields to jobs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from helios.errors import RequestError
from helios.frontend.parsing import PlainParser
from helios.frontend.prompt import Prompt
from helios.frontend.stops import check_tokens
from helios.server.completion_response import CompletionCollector, CompletionStreamer
from helios.server.exchange import JobMaker, Scoring, created_now, response_id
from helios.server.generation import Job
from helios.server.protocol.completions import CompletionRequest
from helios.server.service import ServedModel, Service
from helios.server.structured import answer_of

_DEFAULT_TOKENS = 16  # as OpenAI's endpoint


@dataclass(slots=True)
class CompletionExchange:
    """A prepared completion request. Choice i belongs to prompt i // n."""

    service: Service
    request: CompletionRequest
    prompts: tuple[Prompt, ...]
    jobs: tuple[Job, ...]
    id: str = field(default_factory=partial(response_id, "cmpl"))
    created: int = field(default_factory=created_now)

    @property
    def streams(self) -> bool:
        """Whether the answer is a stream."""
        return bool(self.request.stream)

    def prompt_of(self, index: int) -> Prompt:
        """The prompt that a choice continues."""
        return self.prompts[index // (self.request.n or 1)]

    def enqueued(self, now_ns: int) -> None:
        """Completions report no such time."""

    def collector(self) -> CompletionCollector:
        """What gathers the whole response."""
        return CompletionCollector(self)

    def streamer(self) -> CompletionStreamer:
        """What turns it into events."""
        return CompletionStreamer(self)


def prepare_completion(
    service: Service, request: CompletionRequest, ingress_ns: int
) -> CompletionExchange:
    """Validate and encode; runs in a frontend thread. Raises `RequestError`."""
    service.model.check_name(request.model)
    _check_fields(request)
    prompts = _prompts(service.model, request.prompt)
    count = request.n or 1
    if len(prompts) * count > service.limits.max_choices:
        raise RequestError(
            "asks for too many choices",
            field="prompt",
            value=len(prompts) * count,
            remedy=f"ask for at most {service.limits.max_choices} in one request",
        )
    maker = JobMaker(
        service,
        request,
        _scoring(request),
        max_tokens=request.max_tokens,
        default_tokens=_DEFAULT_TOKENS,
        prompt_field="prompt",
    )
    constraint = service.model.frontend.constrain_text(answer_of(request))
    jobs = tuple(
        maker.make(prompt, PlainParser(), constraint) for prompt in prompts for _ in range(count)
    )
    return CompletionExchange(service, request, prompts, jobs)


def _check_fields(request: CompletionRequest) -> None:
    """Refuse what would change the output and can't be honoured."""
    if request.suffix:
        raise RequestError("is not supported", field="suffix", remedy="leave it out")
    if request.best_of is not None and request.best_of != (request.n or 1):
        raise RequestError(
            "is not supported", field="best_of", value=request.best_of, remedy="use n"
        )
    if request.max_tokens == 0 and not request.echo and request.prompt_logprobs is None:
        raise RequestError(
            "asks for nothing", field="max_tokens", value=0, remedy="set echo, or ask for a token"
        )
    if request.prompt_logprobs is not None and request.stream:
        raise RequestError(
            "is not supported in a stream", field="prompt_logprobs", remedy="leave stream out"
        )


def _scoring(request: CompletionRequest) -> Scoring:
    """Echoed tokens are scored where scores are asked for. An echo alone asks the engine for
    scores too, since an engine that is asked for nothing refuses."""
    wanted = -1 if request.logprobs is None else request.logprobs
    prompt = -1 if request.prompt_logprobs is None else request.prompt_logprobs
    if request.echo:
        prompt = max(prompt, wanted)
        if request.max_tokens == 0:
            prompt = max(prompt, 0)
    return Scoring(top_logprobs=wanted, prompt_logprobs=prompt)


def _prompts(model: ServedModel, given: str | list[str | int | list[int]]) -> tuple[Prompt, ...]:
    if isinstance(given, str):
        return (_text_prompt(model, given),)
    if not given:
        raise RequestError("must not be empty", field="prompt", remedy="send a prompt")
    tokens = [part for part in given if isinstance(part, int)]
    if len(tokens) == len(given):
        return (_token_prompt(model, tokens, "prompt"),)
    return tuple(
        _one_of_many(model, part, f"prompt[{number}]") for number, part in enumerate(given)
    )


def _one_of_many(model: ServedModel, part: str | int | list[int], where: str) -> Prompt:
    if isinstance(part, str):
        return _text_prompt(model, part)
    if isinstance(part, int):
        raise RequestError(
            "tokens and texts are mixed", field=where, value=part, remedy="send lists of tokens"
        )
    return _token_prompt(model, part, where)


def _text_prompt(model: ServedModel, text: str) -> Prompt:
    return model.frontend.text_prompt(text, model.context_tokens)


def _token_prompt(model: ServedModel, tokens: Sequence[int], where: str) -> Prompt:
    check_tokens(tokens, model.vocabulary, where)
    return model.frontend.token_prompt(tokens)
