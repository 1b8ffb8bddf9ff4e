"""The running generations of one HTTP request, from submission to their last event."""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import TracebackType

from helios.engine.ingress import QueueFull
from helios.engine.messages import Event, Failed, Finished, Generate, Tokens
from helios.errors import HeliosError
from helios.frontend.output import Broken, Output, OutputPipeline
from helios.server.errors import OverloadedError, failure
from helios.server.service import Service


@dataclass(slots=True)
class Job:
    """One choice: what the engine is asked, and what makes its tokens presentable."""

    request: Generate
    pipeline: OutputPipeline


class Generation:
    """Submits jobs on entry and cancels on exit what has not ended, whatever the way out."""

    def __init__(self, service: Service, jobs: tuple[Job, ...]) -> None:
        self._service = service
        self._jobs = jobs
        self._mailbox = service.mailbox()
        self._open: dict[int, int] = {}  # request number to choice index
        self._started = time.monotonic()
        self._first_token = False

    def __enter__(self) -> "Generation":
        try:
            for index, job in enumerate(self._jobs):
                self._service.engine.submit(job.request, self._mailbox.put)
                self._open[job.request.id] = index
        except QueueFull as error:
            self._cancel()
            raise OverloadedError("the engine's queue is full", remedy="try again later") from error
        except BaseException:
            self._cancel()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._cancel()

    def _cancel(self) -> None:
        for number in self._open:
            self._service.engine.cancel(number)
        self._open.clear()

    async def batches(self) -> AsyncIterator[list[tuple[int, Output]]]:
        """What the choices settled, in order, as (choice index, output): all that has come since
        the last batch. Raises the `HeliosError` of a choice that failed."""
        while self._open:
            outputs: list[tuple[int, Output]] = []
            error: HeliosError | None = None
            for event in await self._mailbox.take():
                error = error or self._present(event, outputs)
            if outputs:
                yield outputs
            if error is not None:
                raise error

    def _present(self, event: Event, outputs: list[tuple[int, Output]]) -> HeliosError | None:
        index = self._open.get(event.id)
        if index is None:
            return None
        self._observe(event)
        if isinstance(event, Finished | Failed):
            del self._open[event.id]
        for output in self._jobs[index].pipeline.feed((event,)):
            if isinstance(output, Broken):
                return failure(output.kind, output.message)
            outputs.append((index, output))
        return None

    def _observe(self, event: Event) -> None:
        metrics = self._service.metrics
        if isinstance(event, Tokens):
            if not self._first_token:
                self._first_token = True
                metrics.first_token.observe(time.monotonic() - self._started)
        elif isinstance(event, Finished):
            metrics.prompt_tokens.add(event.prompt_tokens)
            metrics.reused_tokens.add(event.reused_prompt_tokens)
            metrics.output_tokens.add(event.output_tokens)
