"""One request's way through the server, whichever of the two endpoints it came to."""

import secrets
import time
from collections.abc import Sequence
from typing import Protocol

from helios.engine.messages import Generate
from helios.errors import RequestError
from helios.frontend.grammar.constraints import Constraint
from helios.frontend.output import End, Output, OutputPipeline, Presentation
from helios.frontend.parsing import OutputParser
from helios.frontend.prompt import Prompt
from helios.frontend.stops import check_sequences, check_stops, check_tokens
from helios.records import dataclass
from helios.server.generation import Job
from helios.server.protocol.fields import (
    CompletionTokensDetails,
    GenerationFields,
    PromptTokensDetails,
    Usage,
)
from helios.server.sampling import first_seed, output_limit, sampling_of
from helios.server.service import Service


class Collector(Protocol):
    """Gathers a whole response."""

    def add(self, index: int, output: Output) -> None:
        """Take what a choice settled."""

    def body(self) -> bytes:
        """The response, once every choice has ended."""


class Streamer(Protocol):
    """Turns outputs into events."""

    def begin(self) -> bytes:
        """What is sent before anything is generated."""

    def add(self, index: int, output: Output) -> bytes:
        """The events of what a choice settled."""

    def end(self) -> bytes:
        """The last events, once every choice has ended."""


class Exchange(Protocol):
    """A prepared request: what to generate and how to answer."""

    @property
    def jobs(self) -> tuple[Job, ...]:
        """One job a choice, in the order of their indexes."""

    @property
    def streams(self) -> bool:
        """Whether the answer is a stream."""

    def enqueued(self, now_ns: int) -> None:
        """Note when the jobs are submitted."""

    def collector(self) -> Collector:
        """What gathers the whole response."""

    def streamer(self) -> Streamer:
        """What turns it into events."""


@dataclass(frozen=True, slots=True)
class Stops:
    """The stopping rules of a request, checked."""

    strings: tuple[str, ...]
    tokens: tuple[int, ...]
    sequences: tuple[tuple[int, ...], ...]

    @property
    def patterns(self) -> tuple[tuple[int, ...], ...]:
        """Single tokens and sequences alike."""
        return (*((token,) for token in self.tokens), *self.sequences)


def stops_of(fields: GenerationFields, vocabulary: int) -> Stops:
    """The request's stops; raises `RequestError` where they break a limit or exclude another."""
    strings = check_stops(fields.stop)
    tokens = check_tokens(fields.stop_token_ids or (), vocabulary, "stop_token_ids")
    sequences = check_sequences(fields.stop_token_sequences, vocabulary)
    if strings and (tokens or sequences):
        raise RequestError(
            "can't be combined with stop_token_ids or stop_token_sequences",
            field="stop",
            remedy="use either strings or tokens",
        )
    return Stops(strings, tokens, sequences)


@dataclass(frozen=True, slots=True)
class Scoring:
    """Which log-probabilities are wanted; -1 for none."""

    top_logprobs: int = -1
    prompt_logprobs: int = -1


class JobMaker:
    """Makes the jobs of one request: what is common to its choices is checked once.

    `max_tokens` is the request's explicit limit and `default_tokens` what stands in for it, as far
    as the context allows; `prompt_field` is the parameter that holds the prompt; `observe` and
    `timestamps` ask for raw tokens and their times.
    """

    def __init__(
        self,
        service: Service,
        fields: GenerationFields,
        scoring: Scoring,
        *,
        max_tokens: int | None,
        default_tokens: int | None,
        prompt_field: str,
        observe: bool = False,
        timestamps: bool = False,
        single_call: bool = False,
    ) -> None:
        self._service = service
        self._fields = fields
        self._max_tokens = max_tokens
        self._default_tokens = default_tokens
        self._prompt_field = prompt_field
        self._scoring = scoring
        self._observe = observe
        self._timestamps = timestamps
        self._single_call = single_call
        self._stops = stops_of(fields, service.model.vocabulary)
        self._seed = first_seed(fields.seed)
        self._made = 0

    def make(self, prompt: Prompt, parser: OutputParser, constraint: Constraint) -> Job:
        """The next choice's job. Each choice has a seed of its own, the first the request's."""
        model, fields = self._service.model, self._fields
        if constraint.forced and self._stops.strings:
            raise RequestError(
                "can't be combined with structured output",
                field="stop",
                remedy="leave it out: the answer ends where its form is complete",
            )
        eos = () if fields.ignore_eos else tuple(sorted(model.frontend.eos))
        request = Generate(
            id=self._service.next_number(),
            prompt=prompt.tokens,
            max_tokens=self._limit(prompt),
            sampling=sampling_of(
                fields,
                model.defaults,
                seed=self._seed + self._made,
                vocabulary=model.vocabulary,
                top_logprobs=self._scoring.top_logprobs,
                banned=constraint.banned,
            ),
            eos_tokens=eos,
            stop_tokens=self._stops.tokens,
            stop_sequences=self._stops.sequences,
            stop_strings=self._stops.strings,
            grammar=constraint.key,
            prompt_logprobs=self._scoring.prompt_logprobs,
            priority=fields.priority or 0,
            cache_salt=fields.cache_salt or "",
            timestamps=self._timestamps,
            boundaries=prompt.boundaries,
        )
        self._made += 1
        return Job(request, OutputPipeline(model.frontend.tokenizer, parser, self._shown(prompt)))

    def _limit(self, prompt: Prompt) -> int:
        return output_limit(
            len(prompt.tokens),
            self._service.model.context_tokens,
            self._max_tokens,
            self._default_tokens,
            field=self._prompt_field,
        )

    def _shown(self, prompt: Prompt) -> Presentation:
        return Presentation(
            eos=self._service.model.frontend.eos,
            stop_strings=self._stops.strings,
            stop_tokens=self._stops.patterns,
            minimum=self._fields.min_tokens or 0,
            starts_text=not prompt.continues,
            logprobs=self._scoring.top_logprobs >= 0,
            observe=self._observe,
            single_call=self._single_call,
        )


def response_id(prefix: str) -> str:
    """An identifier that no other response has."""
    return f"{prefix}-{secrets.token_hex(16)}"


def created_now() -> int:
    """Seconds since the epoch, as OpenAI's bodies want them."""
    return int(time.time())


def usage_of(ends: Sequence[End], choices: int) -> Usage:
    """Token counts of a request's choices, in the order of their indexes, as OpenAI words them.

    Each prompt has so many choices, and counts once.
    """
    firsts = ends[::choices]
    prompt = sum(end.prompt_tokens for end in firsts)
    output = sum(end.output_tokens for end in ends)
    return Usage(
        prompt,
        output,
        prompt + output,
        PromptTokensDetails(sum(end.reused_prompt_tokens for end in firsts)),
        CompletionTokensDetails(sum(end.reasoning_tokens for end in ends)),
    )
