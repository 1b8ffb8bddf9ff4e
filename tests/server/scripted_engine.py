"""An engine that answers from a script, in a thread of its own as the real one does."""

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from helios.engine.messages import (
    Event,
    Finished,
    FinishReason,
    Generate,
    PromptScores,
    TokenLogprob,
    Tokens,
)
from helios.frontend.stops import StopMonitor
from helios.frontend.tokenizer import Tokenizer

Sink = Callable[[Sequence[Event]], None]
Script = Callable[[Generate], Iterator[list[Event]]]


@dataclass
class ScriptedEngine:
    """`script` yields a request's steps; `refuse` is raised by every submission."""

    script: Script
    healthy: bool = True
    refuse: Exception | None = None
    submitted: list[Generate] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    clock: int = 1000

    def __post_init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[Generate, Sink] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def submit(self, request: Generate, sink: Sink) -> None:
        if self.refuse is not None:
            raise self.refuse
        self.submitted.append(request)
        self._queue.put((request, sink))

    def cancel(self, id: int) -> None:
        self.cancelled.append(id)

    def stats(self) -> Mapping[str, float]:
        return {"steps_total": 7, "slots": 4}

    def now_ns(self) -> int:
        self.clock += 1000
        return self.clock

    def stop(self) -> None:
        self._queue.put(None)
        self._thread.join(10)
        assert not self._thread.is_alive()

    def _work(self) -> None:
        """Run all requests side by side, a step of each in turn."""
        running: list[tuple[Generate, Sink, Iterator[list[Event]]]] = []
        while True:
            while not running or not self._queue.empty():
                item = self._queue.get()
                if item is None:
                    return
                running.append((*item, self.script(item[0])))
            for entry in list(running):
                request, sink, steps = entry
                events = None if request.id in self.cancelled else next(steps, None)
                if events is None:
                    running.remove(entry)
                else:
                    sink(events)


def answering(tokenizer: Tokenizer, text: str | Callable[[Generate], str], eos: int) -> Script:
    """Says a text, one token a step, honouring limits and stops as the real engine does."""

    def script(request: Generate) -> Iterator[list[Event]]:
        said = text if isinstance(text, str) else text(request)
        tokens = [*tokenizer.encode(said), eos]
        if request.prompt_logprobs >= 0:
            yield [prompt_scores(request)]
        monitor = StopMonitor(
            tokenizer,
            request.stop_strings,
            minimum=request.sampling.min_output,
            silent=frozenset({eos}),
        )
        reason: FinishReason | None = None
        stop: int | tuple[int, ...] | str | None = None
        done: list[int] = []
        while reason is None and len(done) < request.max_tokens:
            token = tokens[len(done) % len(tokens)]
            done.append(token)
            yield [step(request, token, len(done))]
            if token in request.eos_tokens:
                reason = FinishReason.EOS
            elif monitor.accept(token):
                reason, stop = FinishReason.STOP, monitor.matched
            else:
                stop = token_stop(request, done)
                reason = None if stop is None else FinishReason.STOP
        yield [
            Finished(
                request.id,
                reason or FinishReason.LENGTH,
                len(request.prompt),
                len(done),
                reused_prompt_tokens=2,
                stop=stop,
            )
        ]

    return script


def token_stop(request: Generate, done: list[int]) -> int | tuple[int, ...] | None:
    if done[-1] in request.stop_tokens:
        return done[-1]
    for sequence in request.stop_sequences:
        if tuple(done[-len(sequence) :]) == sequence:
            return sequence
    return None


def step(request: Generate, token: int, count: int) -> Tokens:
    scored = request.sampling.top_logprobs >= 0
    others = tuple((other, -float(other)) for other in range(request.sampling.top_logprobs))
    return Tokens(
        request.id,
        (token,),
        (TokenLogprob(-0.5, others),) if scored else (),
        (count * 100,) if request.timestamps else (),
    )


def prompt_scores(request: Generate) -> PromptScores:
    others = tuple((other, -float(other)) for other in range(request.prompt_logprobs))
    return PromptScores(request.id, tuple(TokenLogprob(-1.5, others) for _ in request.prompt[1:]))
