"""The events of a chat stream."""

from typing import TYPE_CHECKING

import msgspec

from helios.frontend.output import End, Output, Step
from helios.frontend.parsing import (
    ContentDelta,
    Delta,
    ReasoningDelta,
    ToolCallArguments,
    ToolCallStart,
)
from helios.server.chat_response import performance_of
from helios.server.exchange import usage_of
from helios.server.protocol.chat import (
    ChatChunk,
    ChoiceDelta,
    Function,
    Logprobs,
    MessageDelta,
    ToolCallDelta,
)
from helios.server.protocol.fields import Usage
from helios.server.scores import chat_logprobs
from helios.server.sse import DONE, event

if TYPE_CHECKING:
    from helios.server.chat import ChatExchange


class ChatStreamer:
    """Turns outputs into chunks. With `include_usage` every chunk has a usage, null but for the
    last; otherwise only an observed stream's last choice chunk has one."""

    def __init__(self, exchange: "ChatExchange") -> None:
        self._exchange = exchange
        request = exchange.request
        options = request.stream_options
        self._include_usage = bool(options and options.include_usage)
        self._observed = bool(request.return_token_ids)
        self._timed = bool(request.return_token_timestamps)
        self._logprobs = bool(request.logprobs)
        self._encode = msgspec.json.Encoder().encode
        self._ends: dict[int, End] = {}
        self._frames = [self._frame(index) for index in range(len(exchange.jobs))]

    def begin(self) -> bytes:
        """Each choice's role; the first chunk also has the prompt's tokens where asked for."""
        chunks: list[bytes] = []
        for index in range(len(self._exchange.jobs)):
            chunk = self._chunk(ChoiceDelta(index, MessageDelta(role="assistant", content="")))
            if self._observed and not index:
                chunk.prompt_token_ids = list(self._exchange.prompt.tokens)
            chunks.append(self._event(chunk))
        return b"".join(chunks)

    def add(self, index: int, output: Output) -> bytes:
        """The chunks of what a choice settled."""
        if isinstance(output, Step):
            return self._step(index, output)
        if isinstance(output, End):
            return self._end(index, output)
        return b""

    def end(self) -> bytes:
        """The usage, where asked for, and the end mark."""
        if not self._include_usage:
            return DONE
        chunk = self._chunk()
        chunk.usage = self._usage()
        return self._event(chunk) + DONE

    def _step(self, index: int, step: Step) -> bytes:
        chunks = self._observations(index, step) if step.tokens else []
        if not step.scored:
            chunks += [self._delta(index, delta) for delta in step.deltas]
            return b"".join(chunks)
        deltas = [shown for delta in step.deltas if (shown := _message_delta(delta)) is not None]
        logprobs = self._scores(step)
        for message in deltas or [MessageDelta()]:
            chunks.append(self._event(self._chunk(ChoiceDelta(index, message, logprobs))))
            logprobs = None
        return b"".join(chunks)

    def _observations(self, index: int, step: Step) -> list[bytes]:
        """One chunk a token, which holds nothing else."""
        chunks: list[bytes] = []
        for number, token in enumerate(step.tokens):
            choice = ChoiceDelta(index, MessageDelta(), token_ids=[token])
            if self._timed:
                choice.token_timestamps_ns = [step.timestamps_ns[number]]
            chunks.append(self._event(self._chunk(choice)))
        return chunks

    def _delta(self, index: int, delta: Delta) -> bytes:
        """One delta's chunk. Content, by far the most frequent, goes into a ready frame."""
        if isinstance(delta, ContentDelta):
            head, tail = self._frames[index]
            return head + self._encode(delta.text) + tail
        message = _message_delta(delta)
        if message is None:
            return b""
        return self._event(self._chunk(ChoiceDelta(index, message)))

    def _frame(self, index: int) -> tuple[bytes, bytes]:
        """What surrounds the text of a content chunk."""
        mark = "\x00"
        chunk = self._event(self._chunk(ChoiceDelta(index, MessageDelta(content=mark))))
        head, _, tail = chunk.rpartition(self._encode(mark))
        return head, tail

    def _end(self, index: int, end: End) -> bytes:
        self._ends[index] = end
        choice = ChoiceDelta(index, MessageDelta(), finish_reason=end.reason)
        chunk = self._chunk(choice)
        if self._observed:
            chunk.reused_prompt_tokens = end.reused_prompt_tokens
            if not self._include_usage:
                chunk.usage = self._usage()
        if self._timed:
            chunk.performance = performance_of(self._exchange, end)
        return self._event(chunk)

    def _usage(self) -> Usage:
        ends = [end for _, end in sorted(self._ends.items())]
        return usage_of(ends, len(self._exchange.jobs))

    def _scores(self, step: Step) -> Logprobs | None:
        if not self._logprobs:
            return None
        return chat_logprobs(self._exchange.service.model.frontend.tokenizer, step.scored)

    def _chunk(self, *choices: ChoiceDelta) -> ChatChunk:
        return ChatChunk(
            id=self._exchange.id,
            created=self._exchange.created,
            model=self._exchange.request.model,
            choices=list(choices),
            usage=None if self._include_usage else msgspec.UNSET,
        )

    def _event(self, chunk: ChatChunk) -> bytes:
        return event(self._encode(chunk))


def _message_delta(delta: Delta) -> MessageDelta | None:
    """A delta as the message's addition; the end of a call adds nothing."""
    if isinstance(delta, ContentDelta):
        return MessageDelta(content=delta.text)
    if isinstance(delta, ReasoningDelta):
        return MessageDelta(reasoning_content=delta.text)
    if isinstance(delta, ToolCallStart):
        function = Function(delta.name, "")
        call = ToolCallDelta(delta.index, delta.id, "function", function)
        return MessageDelta(tool_calls=[call])
    if isinstance(delta, ToolCallArguments):
        function = Function(arguments=delta.fragment)
        return MessageDelta(tool_calls=[ToolCallDelta(delta.index, function=function)])
    return None
