"""One request driven through a loaded model step by step, without a scheduler.

For tools that look at a model's numbers: the steps, their programs and their chunks are exactly
those that were asked for.
"""

from collections.abc import Callable, Iterator, Sequence

from helios.contract.operation import Operation
from helios.contract.submission import (
    Lane,
    LaneAdmission,
    LaneCompletion,
    Sampling,
    Submission,
    Variant,
)
from helios.errors import ConfigurationError, DeviceError
from helios.program.extents import ROWS, SAMPLED, TOKENS
from helios.records import dataclass
from helios.runtime.executor import StepExecutor
from helios.runtime.packing import PackedStep

GREEDY = Sampling(temperature=0.0)

Watcher = Callable[[PackedStep], None]


@dataclass(frozen=True, slots=True)
class StepResult:
    """The token a step sampled and how many tokens the request has consumed after it."""

    token: int
    consumed: int


class SingleRequest:
    """A request in slot 0 of an otherwise idle model, with pages handed out from the first on.

    `watch`, if given, is called after each submission, while the device still holds what the
    step retained. A model is used by one `SingleRequest` after the other, never by two at once.
    """

    def __init__(self, model: StepExecutor, watch: Watcher | None = None) -> None:
        self._model = model
        self._watch = watch
        self._geometry = model.geometry
        self._sequence = 0
        self._generation = 1
        self._pages = 0
        self.consumed = 0

    def start(self, prompt: Sequence[int], sampling: Sampling = GREEDY) -> None:
        """Initialise the slot; nothing is consumed yet."""
        admission = LaneAdmission(sampling, prompt, output_limit=self._geometry.context_tokens)
        lane = Lane(0, self._generation, 0, admission=admission)
        self._submit(self._variant(Operation.INITIALIZE), lane)

    def consume(self, tokens: Sequence[int], chunk: int = 0) -> StepResult:
        """Consume tokens from the host, in chunks of at most `chunk`, and sample after the last.

        A pending token is dropped: what the host says comes next takes its place.
        """
        if not tokens:
            raise ConfigurationError("no tokens to consume", field="tokens", remedy="give some")
        variant = self._variant(Operation.PREFILL)
        most = min(chunk or variant.tokens, variant.tokens)
        for start in range(0, len(tokens), most):
            part = tokens[start : start + most]
            last = start + len(part) == len(tokens)
            done = self._submit(variant, self._lane(len(part), part, sample=last))
        return self._result(done)

    def decode(self) -> StepResult:
        """Consume the pending token and sample the next one."""
        variant = self._variant(Operation.DECODE)
        return self._result(self._submit(variant, self._lane(1, (), sample=True)))

    def generate(
        self, prompt: Sequence[int], count: int, forced: Sequence[int] = (), chunk: int = 0
    ) -> Iterator[StepResult]:
        """Up to `count` steps: the prompt, then one token each.

        Tokens of `forced` are consumed instead of the sampled ones, as far as they reach.
        """
        self.start(prompt)
        yield self.consume(prompt, chunk)
        for step in range(count - 1):
            yield self.consume(forced[step : step + 1]) if step < len(forced) else self.decode()

    def _lane(self, length: int, tokens: Sequence[int], *, sample: bool) -> Lane:
        endpoint = self.consumed + length
        if endpoint > self._geometry.context_tokens:
            raise ConfigurationError(
                "the request outgrows the context",
                field="tokens",
                value=endpoint,
                remedy=f"at most {self._geometry.context_tokens} tokens were planned for",
            )
        needed = -(-endpoint // self._geometry.page_tokens)
        pages = tuple((page, page) for page in range(self._pages, needed))
        lane = Lane(0, self._generation, self.consumed, length, tokens, sample, pages)
        self._pages = max(self._pages, needed)
        self.consumed = endpoint
        return lane

    def _submit(self, variant: Variant, lane: Lane) -> LaneCompletion:
        frame = self._sequence % self._geometry.frames
        step = Submission(self._sequence, frame, variant.operation, variant.program, (lane,))
        self._sequence += 1
        self._model.submit(step)
        done = self._model.wait()
        if done is None or done.error is not None:
            lost = DeviceError("the device returned no completion", field=variant.program)
            raise (done.error if done is not None else None) or lost
        if self._watch is not None:
            lengths = {ROWS: 1, TOKENS: lane.query_length, SAMPLED: int(lane.sample)}
            self._watch(PackedStep(variant.program, frame, lengths, ()))
        return done.lanes[0]

    def _result(self, done: LaneCompletion) -> StepResult:
        if done.endpoint != self.consumed or len(done.tokens) != 1:
            raise DeviceError(
                "a completion does not match its submission",
                field="completion",
                value=(done.endpoint, done.tokens),
                remedy=f"{self.consumed} tokens consumed and one sampled were expected",
            )
        return StepResult(done.tokens[0], done.endpoint)

    def _variant(self, operation: Operation) -> Variant:
        found = [v for v in self._geometry.variants if v.operation is operation]
        if not found:
            raise ConfigurationError(
                "the model has no such program", field="operation", value=operation.name
            )
        return max(found, key=lambda variant: variant.tokens)
