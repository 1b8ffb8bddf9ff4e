"""The whole body of a chat response."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from helios.engine.messages import PromptScores, TokenLogprob
from helios.frontend.output import End, Output, ScoredToken, Step
from helios.frontend.parsing import (
    ContentDelta,
    Delta,
    ReasoningDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from helios.server.exchange import usage_of
from helios.server.protocol.chat import (
    ChatCompletion,
    Choice,
    Function,
    Message,
    Performance,
    ToolCall,
)
from helios.server.scores import chat_logprobs, prompt_scores

if TYPE_CHECKING:
    from helios.server.chat import ChatExchange


@dataclass(slots=True)
class _Call:
    start: ToolCallStart
    fragments: list[str] = field(default_factory=list)
    complete: bool = False


@dataclass(slots=True)
class _Answer:
    """What one choice has said so far."""

    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: dict[int, _Call] = field(default_factory=dict)
    scored: list[ScoredToken] = field(default_factory=list)
    prompt_scores: list[TokenLogprob] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    timestamps_ns: list[int] = field(default_factory=list)
    end: End | None = None

    def add(self, output: Output) -> None:
        if isinstance(output, Step):
            self.scored += output.scored
            self.tokens += output.tokens
            self.timestamps_ns += output.timestamps_ns
            for delta in output.deltas:
                self._add_delta(delta)
        elif isinstance(output, PromptScores):
            self.prompt_scores += output.scores
        elif isinstance(output, End):
            self.end = output

    def _add_delta(self, delta: Delta) -> None:
        match delta:
            case ContentDelta(text):
                self.content.append(text)
            case ReasoningDelta(text):
                self.reasoning.append(text)
            case ToolCallStart():
                self.calls[delta.index] = _Call(delta)
            case ToolCallArguments(index, fragment):
                self.calls[index].fragments.append(fragment)
            case ToolCallEnd(index):
                self.calls[index].complete = True

    def message(self) -> Message:
        """The message; a call that was cut is not in it."""
        calls = [_tool_call(call) for call in self.calls.values() if call.complete]
        content = "".join(self.content)
        return Message(
            content=None if calls and not content else content,
            reasoning_content="".join(self.reasoning) if self.reasoning else msgspec.UNSET,
            tool_calls=calls or msgspec.UNSET,
        )


class ChatCollector:
    """Gathers the choices of one chat response."""

    def __init__(self, exchange: "ChatExchange") -> None:
        self._exchange = exchange
        self._answers = [_Answer() for _ in exchange.jobs]

    def add(self, index: int, output: Output) -> None:
        """Take what a choice settled."""
        self._answers[index].add(output)

    def body(self) -> bytes:
        """The response, once every choice has ended."""
        exchange = self._exchange
        ends = [answer.end for answer in self._answers if answer.end is not None]
        response = ChatCompletion(
            id=exchange.id,
            created=exchange.created,
            model=exchange.request.model,
            choices=[self._choice(index) for index in range(len(self._answers))],
            usage=usage_of(ends, len(ends)),
        )
        self._add_prompt_scores(response)
        if exchange.request.return_token_ids:
            response.prompt_token_ids = list(exchange.prompt.tokens)
            response.reused_prompt_tokens = ends[0].reused_prompt_tokens
        if exchange.request.return_token_timestamps:
            response.performance = performance_of(exchange, ends[0])
        return msgspec.json.encode(response)

    def _choice(self, index: int) -> Choice:
        answer = self._answers[index]
        assert answer.end is not None
        request = self._exchange.request
        tokenizer = self._exchange.service.model.frontend.tokenizer
        choice = Choice(
            index=index,
            message=answer.message(),
            logprobs=chat_logprobs(tokenizer, answer.scored) if request.logprobs else None,
            finish_reason=answer.end.reason,
        )
        if request.return_token_ids:
            choice.token_ids = answer.tokens
        if request.return_token_timestamps:
            choice.token_timestamps_ns = answer.timestamps_ns
        return choice

    def _add_prompt_scores(self, response: ChatCompletion) -> None:
        exchange = self._exchange
        if exchange.request.prompt_logprobs is not None:
            response.prompt_logprobs = prompt_scores(
                exchange.service.model.frontend.tokenizer,
                exchange.prompt.tokens,
                self._answers[0].prompt_scores,
            )


def performance_of(exchange: "ChatExchange", end: End) -> Performance:
    """When the request came in and was queued."""
    return Performance(exchange.ingress_ns, exchange.enqueue_ns, end.reused_prompt_tokens)


def _tool_call(call: _Call) -> ToolCall:
    arguments = "".join(call.fragments)
    return ToolCall(call.start.id, Function(call.start.name, arguments))
