"""Preparing /v1/chat/completions: from the request's fields to jobs."""

from dataclasses import dataclass, field
from functools import partial

from helios.errors import RequestError
from helios.frontend.parsing import ParserRequest
from helios.frontend.prompt import ChatInput, Prompt
from helios.server.chat_response import ChatCollector
from helios.server.chat_stream import ChatStreamer
from helios.server.exchange import JobMaker, Scoring, created_now, response_id
from helios.server.generation import Job
from helios.server.protocol.chat import ChatRequest
from helios.server.service import Service
from helios.server.structured import chat_demands, uses_tools


@dataclass(slots=True)
class ChatExchange:
    """A prepared chat request. `model` is the name by which the client asked for it."""

    service: Service
    request: ChatRequest
    prompt: Prompt
    jobs: tuple[Job, ...]
    ingress_ns: int
    enqueue_ns: int = 0
    id: str = field(default_factory=partial(response_id, "chatcmpl"))
    created: int = field(default_factory=created_now)

    @property
    def streams(self) -> bool:
        """Whether the answer is a stream."""
        return bool(self.request.stream)

    def enqueued(self, now_ns: int) -> None:
        """Note when the jobs are submitted."""
        self.enqueue_ns = now_ns

    def collector(self) -> ChatCollector:
        """What gathers the whole response."""
        return ChatCollector(self)

    def streamer(self) -> ChatStreamer:
        """What turns it into events."""
        return ChatStreamer(self)


def prepare_chat(service: Service, request: ChatRequest, ingress_ns: int) -> ChatExchange:
    """Validate, render, encode; runs in a frontend thread. Raises `RequestError`."""
    service.model.check_name(request.model)
    _check_fields(request)
    maker = JobMaker(
        service,
        request,
        _scoring(request),
        max_tokens=_max_tokens(request),
        default_tokens=service.model.defaults.max_output_tokens,
        prompt_field="messages",
        observe=bool(request.return_token_ids),
        timestamps=bool(request.return_token_timestamps),
        single_call=request.parallel_tool_calls is False,
    )
    model = service.model
    prompt = model.frontend.chat_prompt(_chat_input(request), model.context_tokens)
    demands = chat_demands(request, prompt.tools)
    constraint = model.frontend.constrain(demands, prompt)
    parser_request = ParserRequest(prompt.text, prompt.tools, constraint.structured)
    jobs = tuple(
        maker.make(prompt, model.frontend.parsers(parser_request), constraint)
        for _ in range(request.n or 1)
    )
    return ChatExchange(service, request, prompt, jobs, ingress_ns)


def _chat_input(request: ChatRequest) -> ChatInput:
    return ChatInput(
        messages=request.messages,
        tools=request.tools,
        use_tools=uses_tools(request),
        template_arguments=request.chat_template_kwargs or {},
        enable_thinking=request.enable_thinking,
        reasoning_effort=request.reasoning_effort,
        add_generation_prompt=request.add_generation_prompt,
        continue_final_message=bool(request.continue_final_message),
    )


def _check_fields(request: ChatRequest) -> None:
    """Refuse what would change the output and can't be honoured."""
    if request.modalities not in (None, ["text"]):
        raise _unsupported("modalities", request.modalities, "use ['text']")
    if request.top_logprobs is not None and not request.logprobs:
        raise RequestError(
            "needs logprobs", field="top_logprobs", remedy="set logprobs to true as well"
        )
    if request.return_token_timestamps and not request.return_token_ids:
        raise RequestError(
            "needs return_token_ids",
            field="return_token_timestamps",
            remedy="set return_token_ids to true as well",
        )
    if request.return_token_ids and (request.n or 1) > 1:
        raise _unsupported("return_token_ids", True, "ask for one choice")
    if request.prompt_logprobs is not None and request.stream:
        raise _unsupported("prompt_logprobs", request.prompt_logprobs, "leave stream out")


def _max_tokens(request: ChatRequest) -> int | None:
    for name in ("max_completion_tokens", "max_tokens"):
        asked: int | None = getattr(request, name)
        if asked == 0:
            raise RequestError("must be at least 1", field=name, value=0)
        if asked is not None:
            return asked
    return None


def _scoring(request: ChatRequest) -> Scoring:
    return Scoring(
        top_logprobs=(request.top_logprobs or 0) if request.logprobs else -1,
        prompt_logprobs=-1 if request.prompt_logprobs is None else request.prompt_logprobs,
    )


def _unsupported(field: str, value: object, remedy: str) -> RequestError:
    return RequestError("is not supported", field=field, value=value, remedy=remedy)
