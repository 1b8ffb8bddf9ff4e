"""The body and the events of a completion."""

from typing import TYPE_CHECKING

import msgspec

from helios.engine.messages import PromptScores, TokenLogprob
from helios.frontend.output import End, Output, Step
from helios.frontend.parsing import ContentDelta
from helios.server.exchange import usage_of
from helios.server.protocol.chat import PromptScoreList
from helios.server.protocol.completions import Completion, CompletionChoice, CompletionLogprobs
from helios.server.protocol.fields import Usage
from helios.server.scores import CompletionScores, join_scores, prompt_scores
from helios.server.sse import DONE, event

if TYPE_CHECKING:
    from helios.server.completions import CompletionExchange


class _Continuation:
    """One choice as it grows: each part has its text and, where asked for, its scores.

    An echoed prompt is the first part. Its scores must be complete before it can be shown.
    """

    def __init__(self, exchange: "CompletionExchange", index: int) -> None:
        request = exchange.request
        self._tokenizer = exchange.service.model.frontend.tokenizer
        self._prompt = exchange.prompt_of(index)
        self._scored = request.logprobs is not None
        self._scores = CompletionScores(self._tokenizer)
        self._waits_for_echo = bool(request.echo)
        self.prompt_scores: list[TokenLogprob] = []
        self.end: End | None = None

    def add(self, output: Output) -> list[tuple[str, CompletionLogprobs | None]]:
        """The parts that an output adds."""
        if isinstance(output, PromptScores):
            self.prompt_scores += output.scores
            return []
        parts = self._echo()
        if isinstance(output, Step):
            text = "".join([d.text for d in output.deltas if isinstance(d, ContentDelta)])
            if text or output.scored:
                parts.append((text, self._scores.add(output.scored) if self._scored else None))
        elif isinstance(output, End):
            self.end = output
        return parts

    def _echo(self) -> list[tuple[str, CompletionLogprobs | None]]:
        if not self._waits_for_echo:
            return []
        self._waits_for_echo = False
        if not self._scored:
            return [(self._prompt.text, None)]
        scores = [None, *self.prompt_scores]
        tokens = zip(self._prompt.tokens, scores, strict=True)
        return [(self._prompt.text, self._scores.add(tokens, spelled=True))]

    def prompt_score_list(self) -> PromptScoreList:
        """The prompt's scores in their own form."""
        return prompt_scores(self._tokenizer, self._prompt.tokens, self.prompt_scores)


class CompletionCollector:
    """Gathers the choices of one completion."""

    def __init__(self, exchange: "CompletionExchange") -> None:
        self._exchange = exchange
        self._choices = [_Continuation(exchange, index) for index in range(len(exchange.jobs))]
        self._parts: list[list[tuple[str, CompletionLogprobs | None]]] = [[] for _ in exchange.jobs]

    def add(self, index: int, output: Output) -> None:
        """Take what a choice settled."""
        self._parts[index] += self._choices[index].add(output)

    def body(self) -> bytes:
        """The response, once every choice has ended."""
        exchange = self._exchange
        ends = [choice.end for choice in self._choices if choice.end is not None]
        response = Completion(
            id=exchange.id,
            created=exchange.created,
            model=exchange.request.model,
            choices=[self._choice(index) for index in range(len(self._choices))],
            usage=usage_of(ends, exchange.request.n or 1),
        )
        return msgspec.json.encode(response)

    def _choice(self, index: int) -> CompletionChoice:
        continuation, parts = self._choices[index], self._parts[index]
        assert continuation.end is not None
        request = self._exchange.request
        scores = [scores for _, scores in parts if scores is not None]
        choice = CompletionChoice(
            index=index,
            text="".join([text for text, _ in parts]),
            logprobs=None if request.logprobs is None else join_scores(scores),
            finish_reason=continuation.end.reason,
        )
        if request.prompt_logprobs is not None:
            choice.prompt_logprobs = continuation.prompt_score_list()
        return choice


class CompletionStreamer:
    """Turns outputs into events."""

    def __init__(self, exchange: "CompletionExchange") -> None:
        self._exchange = exchange
        options = exchange.request.stream_options
        self._include_usage = bool(options and options.include_usage)
        self._choices = [_Continuation(exchange, index) for index in range(len(exchange.jobs))]

    def begin(self) -> bytes:
        """Completions have no opening event."""
        return b""

    def add(self, index: int, output: Output) -> bytes:
        """The events of what a choice settled."""
        choice = self._choices[index]
        events = [
            self._event(CompletionChoice(index=index, text=text, logprobs=scores))
            for text, scores in choice.add(output)
        ]
        if isinstance(output, End):
            last = CompletionChoice(index=index, text="", finish_reason=output.reason)
            events.append(self._event(last))
        return b"".join(events)

    def end(self) -> bytes:
        """The usage, where asked for, and the end mark."""
        if not self._include_usage:
            return DONE
        ends = [choice.end for choice in self._choices if choice.end is not None]
        return self._event(usage=usage_of(ends, self._exchange.request.n or 1)) + DONE

    def _event(self, *choices: CompletionChoice, usage: Usage | None = None) -> bytes:
        completion = Completion(
            id=self._exchange.id,
            created=self._exchange.created,
            model=self._exchange.request.model,
            choices=list(choices),
            usage=usage if self._include_usage else msgspec.UNSET,
        )
        return event(msgspec.json.encode(completion))
