"""From engine events to what a client sees, one pipeline per response.

Tokens → decoded pieces → stops → the parser's deltas. Presentation turns the results into JSON
or SSE; the pipeline knows neither.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import field

from helios.engine.messages import (
    Event,
    Failed,
    FailureKind,
    Finished,
    FinishReason,
    PromptScores,
    TokenLogprob,
    Tokens,
)
from helios.frontend.calls import CallTracker
from helios.frontend.detokenizer import Detokenizer, LeadingSpace
from helios.frontend.parsing import Delta, OutputParser, Piece, ReasoningDelta
from helios.frontend.stops import StopFilter, StopScanner, TokenStopFilter
from helios.frontend.tokenizer import Tokenizer
from helios.records import dataclass

ScoredToken = tuple[int, TokenLogprob]


@dataclass(frozen=True, slots=True)
class Presentation:
    """How one response is to be presented.

    `starts_text` says that the response is a text of its own; `minimum` is the number of tokens
    before which string stops don't match; `observe` asks for raw tokens and their times.
    """

    eos: frozenset[int] = frozenset()
    stop_strings: tuple[str, ...] = ()
    stop_tokens: tuple[tuple[int, ...], ...] = ()
    minimum: int = 0
    starts_text: bool = False
    logprobs: bool = False
    observe: bool = False
    single_call: bool = False


@dataclass(slots=True)
class Step:
    """What some tokens settled.

    `scored` are the presented tokens with their log-probabilities: no end token and none that a
    stop removed. `tokens` are all sampled tokens, raw, where they were asked for.
    """

    deltas: list[Delta] = field(default_factory=list)
    scored: list[ScoredToken] = field(default_factory=list)
    tokens: tuple[int, ...] = ()
    timestamps_ns: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.deltas or self.scored or self.tokens)


@dataclass(frozen=True, slots=True)
class End:
    """The response is whole. `reason` is OpenAI's word for why; `reasoning_tokens` are those whose
    text was reasoning."""

    reason: str
    prompt_tokens: int
    output_tokens: int
    reused_prompt_tokens: int
    stop: int | tuple[int, ...] | str | None = None
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Broken:
    """The response ended in an error."""

    kind: FailureKind
    message: str


Output = Step | PromptScores | End | Broken


class OutputPipeline:
    """One response's way from tokens to deltas. Used by one thread at a time."""

    def __init__(
        self, tokenizer: Tokenizer, parser: OutputParser, presentation: Presentation
    ) -> None:
        self._presentation = presentation
        self._parser = parser
        self._detokenizer = Detokenizer(tokenizer)
        self._hidden = (tokenizer.special_tokens | presentation.eos) - parser.special_tokens
        self._is_added = tokenizer.is_added
        self._leading: LeadingSpace | None = None
        if presentation.starts_text and tokenizer.leading_strip:
            self._leading = LeadingSpace(tokenizer)
        self._strings: StopFilter | None = None
        if presentation.stop_strings:
            scanner = StopScanner(
                presentation.stop_strings, minimum=presentation.minimum, silent=presentation.eos
            )
            self._strings = StopFilter(scanner, tokenizer.is_added)
        self._sequences: TokenStopFilter | None = None
        if presentation.stop_tokens:
            self._sequences = TokenStopFilter(presentation.stop_tokens)
        self._calls = CallTracker(single=presentation.single_call)
        self._held: list[int] = []  # tokens that may begin a token stop
        self._unsaid = 0  # tokens of whose text nothing was settled yet
        self._reasoning = 0  # tokens whose text began as reasoning
        self._unscored: deque[ScoredToken] = deque()  # of tokens whose pieces are held

    def feed(self, events: Sequence[Event]) -> list[Output]:
        """The next events, in order, as what they mean to the client."""
        outputs: list[Output] = []
        for event in events:
            if isinstance(event, Tokens):
                step = self._step(event)
                if step:
                    outputs.append(step)
            elif isinstance(event, PromptScores):
                outputs.append(event)
            else:
                outputs.extend(self._end(event))
        return outputs

    def _step(self, event: Tokens) -> Step:
        step = Step()
        if self._presentation.observe:
            step.tokens, step.timestamps_ns = event.tokens, event.timestamps_ns
        if self._presentation.logprobs:
            self._unscored.extend(zip(event.tokens, event.logprobs, strict=True))
        settled = self._settle(event.tokens) if self._sequences else event.tokens
        self._present(self._detokenizer.feed(settled), step)
        return step

    def _settle(self, tokens: Sequence[int]) -> list[int]:
        """The tokens held so far that can no longer be part of a token stop."""
        assert self._sequences is not None
        settled: list[int] = []
        for token in tokens:
            self._held.append(token)
            cut = len(self._held) - self._sequences.held(token)
            settled += self._held[:cut]
            del self._held[:cut]
        return settled

    def _present(self, pieces: list[Piece], step: Step) -> None:
        if self._strings is not None:
            pieces = [kept for piece in pieces for kept in self._strings.feed(piece)]
        self._parse(pieces, step)

    def _parse(self, pieces: list[Piece], step: Step) -> None:
        if self._unscored:
            self._score(pieces, step)
        hidden = self._hidden
        visible = [piece for piece in pieces if piece.token not in hidden]
        if self._leading is not None:
            visible = self._leading.feed(visible)
        if visible:
            deltas = self._parser.feed(visible)
            if not deltas:
                self._unsaid += len(visible) - sum([self._is_added(p.token) for p in visible])
            else:
                self._unsaid += len(visible)
                self._count(deltas)
                step.deltas += self._calls.follow(deltas)

    def _count(self, deltas: Sequence[Delta]) -> None:
        """Tokens count as what they settle first; a delimiter that is a token of its own settles
        nothing, and counts as nothing."""
        if isinstance(deltas[0], ReasoningDelta):
            self._reasoning += self._unsaid
        self._unsaid = 0

    def _score(self, pieces: Sequence[Piece], step: Step) -> None:
        """Every token has one piece, in order, so the next score is the next piece's."""
        eos = self._presentation.eos
        for piece in pieces:
            if piece.token >= 0:
                scored = self._unscored.popleft()
                if piece.token not in eos:
                    step.scored.append(scored)

    def _end(self, event: Finished | Failed) -> list[Output]:
        if isinstance(event, Failed):
            return [Broken(event.kind, event.message)]
        if event.reason is FinishReason.CANCELLED:
            return [Broken(FailureKind.EXECUTION, "the request was cancelled")]
        step = Step()
        self._present(self._detokenizer.feed(self._unmatched(event)), step)
        if self._strings is not None and self._strings.matched is None:
            self._parse(self._strings.finish(), step)
        if self._strings is None or self._strings.matched is None:
            self._parse(self._detokenizer.finish(), step)
        deltas = self._parser.finish(event.reason)
        if deltas:
            self._count(deltas)
            step.deltas += self._calls.follow(deltas)
        end = End(
            self._calls.finish_reason(event.reason),
            event.prompt_tokens,
            event.output_tokens,
            event.reused_prompt_tokens,
            event.stop,
            self._reasoning,
        )
        return [step, end] if step else [end]

    def _unmatched(self, event: Finished) -> list[int]:
        """The tokens still held, without those of the stop that matched."""
        if event.reason is not FinishReason.STOP or isinstance(event.stop, str | None):
            return self._held
        matched = 1 if isinstance(event.stop, int) else len(event.stop)
        return self._held[: len(self._held) - matched]
