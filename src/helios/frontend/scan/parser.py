"""Grammars as output parsers, and the rule that a client sees whole calls only."""

from collections.abc import Callable, Sequence

from helios.engine.messages import FinishReason
from helios.frontend.parsing import (
    ContentDelta,
    Delta,
    OutputParser,
    Piece,
    ReasoningDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from helios.frontend.scan.output import Output
from helios.frontend.scan.source import Cut, Source, Steps

_IN_GOOD_ORDER = (FinishReason.EOS, FinishReason.STOP)


class ScanningParser:
    """Runs a grammar over a response.

    `prefix` is what the prompt already holds of the message. It is read like the rest, so that
    the response starts wherever the prompt left off, but its text is not repeated.
    """

    def __init__(
        self,
        source: Source,
        output: Output,
        read: Callable[[Sequence[Piece]], str],
        run: Callable[[], Steps[None]],
        *,
        special_tokens: frozenset[int],
        prefix: str = "",
    ) -> None:
        self.special_tokens = special_tokens
        self._source = source
        self._output = output
        self._read = read
        self._steps = run()
        self._early: list[Delta] = []
        if prefix:
            source.push(prefix)
            self._go_on()
            self._early = output.take_calls()

    @property
    def work(self) -> int:
        """How many characters have been looked at."""
        return self._source.work

    def feed(self, pieces: Sequence[Piece]) -> list[Delta]:
        """Take the next pieces; return what they settle."""
        self._source.push(self._read(pieces))
        self._go_on()
        return self._take()

    def finish(self, reason: FinishReason) -> list[Delta]:
        """Flush what was held back."""
        self._source.end(natural=reason in _IN_GOOD_ORDER)
        self._go_on()
        return self._take()

    def _go_on(self) -> None:
        try:
            next(self._steps, None)
        except Cut:
            self._output.abandon()

    def _take(self) -> list[Delta]:
        deltas = self._early + self._output.take()
        self._early = []
        return deltas


class WholeCalls:
    """Passes a call on once it is complete, and never one that isn't.

    Server-sent events can't be taken back. A client that has seen the start of a call that was
    cut, or turned out to be none, holds a call that its model never made. Calls are numbered
    anew in the order in which they end.
    """

    def __init__(self, parser: OutputParser) -> None:
        self._parser = parser
        self._open: dict[int, ToolCallStart] = {}
        self._fragments: dict[int, list[str]] = {}
        self._ended = 0

    @property
    def special_tokens(self) -> frozenset[int]:
        """Special tokens that must arrive as pieces."""
        return self._parser.special_tokens

    def feed(self, pieces: Sequence[Piece]) -> list[Delta]:
        """Take the next pieces; return what they settle."""
        return self._settle(self._parser.feed(pieces))

    def finish(self, reason: FinishReason) -> list[Delta]:
        """Flush what was held back, incomplete calls aside."""
        return self._settle(self._parser.finish(reason))

    def _settle(self, deltas: list[Delta]) -> list[Delta]:
        settled: list[Delta] = []
        for delta in deltas:
            match delta:
                case ContentDelta() | ReasoningDelta():
                    settled.append(delta)
                case ToolCallStart():
                    self._open[delta.index] = delta
                    self._fragments[delta.index] = []
                case ToolCallArguments():
                    self._fragments[delta.index].append(delta.fragment)
                case ToolCallEnd():
                    settled += self._whole(delta.index)
        return settled

    def _whole(self, index: int) -> list[Delta]:
        start = self._open.pop(index)
        arguments = "".join(self._fragments.pop(index))
        number = self._ended
        self._ended += 1
        return [
            ToolCallStart(number, start.id, start.name),
            ToolCallArguments(number, arguments),
            ToolCallEnd(number),
        ]
