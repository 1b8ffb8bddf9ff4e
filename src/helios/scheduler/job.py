"""A request's life in the scheduler: what the device has confirmed, and what is in flight."""

from enum import Enum, auto

from helios.scheduler.prefix import Node
from helios.scheduler.request import Request
from helios.scheduler.snapshots import Element, Tail


class Phase(Enum):
    """What a job does next. A change of phase waits for the completion that causes it."""

    WAITING = auto()  # holds neither slot nor pages
    SETUP = auto()  # INITIALIZE or RESUME writes its state rows
    RESTORE = auto()  # a snapshot is copied into its own page
    FILL = auto()  # consumes tokens that the host knows
    DECODE = auto()  # consumes the token that the device sampled last


class Job:
    """A request that was admitted, until its last fence.

    `tokens` are the prompt and every accepted token; `identity` is what the cache compares, the
    same list unless there are images. `consumed` is the endpoint the device has confirmed,
    `ahead` the one it will have after everything in flight; `sampled` counts tokens drawn,
    including those in flight.
    """

    __slots__ = (
        "ahead",
        "boundaries",
        "broken",
        "closes",
        "closing",
        "consumed",
        "fill_to",
        "finished",
        "generation",
        "identity",
        "inflight",
        "keeps",
        "leaving",
        "limit",
        "mark",
        "most_consumed",
        "order",
        "pages",
        "path",
        "phase",
        "prompt_length",
        "request",
        "reused",
        "sampled",
        "scored",
        "sent",
        "slot",
        "stop_tokens",
        "tail",
        "tokens",
    )

    def __init__(self, request: Request, order: tuple[int, int], limit: int) -> None:
        self.request = request
        self.order = order  # smaller is served sooner
        self.limit = limit  # most tokens to sample
        self.tokens: list[int] = list(request.prompt)
        self.identity: list[Element] | list[int] = _identity(request, self.tokens)
        self.prompt_length = len(request.prompt)
        self.most_consumed = self.prompt_length + max(limit - 1, 0)
        self.stop_tokens = frozenset(request.eos_tokens + request.stop_tokens)
        self.boundaries = frozenset(request.boundaries)

        self.phase = Phase.WAITING
        self.slot = -1
        self.generation = 0
        self.pages: list[int] = []
        self.path: list[Node] = []  # the published pages it holds on to, from their root
        self.tail: Tail | None = None  # the snapshot it is restored from
        self.sent = 0  # page-table entries the device has
        self.reused: int | None = None  # prompt tokens that were cached when it was first seated

        self.consumed = 0
        self.ahead = 0
        self.fill_to = 0
        self.sampled = 0
        self.scored = 0  # prompt tokens whose scores were reported
        self.inflight = 0  # submissions in flight that name it

        self.finished = False  # its terminal event is out
        self.broken = False  # it failed, and what it holds is worth nothing
        self.keeps = False  # finished in a way that makes its turn worth keeping
        self.closes = False  # finished where its last page may be worth a step
        self.closing = False  # finished, and writes its last snapshot
        self.leaving = False  # to be preempted at its fence
        self.mark: int | None = None  # outputs when it was preempted last

    @property
    def outputs(self) -> int:
        """How many tokens were accepted."""
        return len(self.tokens) - self.prompt_length

    @property
    def scores_prompt(self) -> bool:
        """Whether its prompt is yet to be scored, which takes programs of its own."""
        return self.request.prompt_logprobs >= 0 and self.outputs == 0

    @property
    def samples(self) -> bool:
        """Whether a token is drawn once it has consumed what the host knows."""
        return self.outputs == 0 and self.limit > 0 and not self.closing

    @property
    def progressed(self) -> bool:
        """Whether it accepted a token since it was preempted last, so that it may be again."""
        return self.mark is None or self.outputs > self.mark

    def worth_keeping(self, endpoint: int) -> bool:
        """Whether prefill should leave a snapshot here: prompt end, turn end, or as declared."""
        if endpoint in self.boundaries or (self.closing and endpoint == self.fill_to):
            return True
        return endpoint == self.prompt_length and self.outputs == 0

    def accept(self, token: int) -> None:
        """Take a sampled token."""
        self.tokens.append(token)
        if self.identity is not self.tokens:
            self.identity.append(token)


def _identity(request: Request, tokens: list[int]) -> list[Element] | list[int]:
    if not request.images:
        return tokens
    identity: list[Element] = list(tokens)
    for start, count, digest in request.images:
        for offset in range(count):
            identity[start + offset] = (tokens[start + offset], offset, digest)
    return identity
