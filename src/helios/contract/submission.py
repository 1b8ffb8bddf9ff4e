"""The words of a step: what the host submits, and what the device answers.

These are plain facts about requests, free of tensors. The scheduler writes submissions, packing
turns them into frames by the contract's value bindings, the device answers with completions. A
simulated device understands them as they are. What is made anew for every lane of every step is a
`msgspec` struct, which is made forty times as fast as a frozen dataclass.
"""

from collections.abc import Sequence

import msgspec

from helios.contract.operation import Operation
from helios.errors import HeliosError
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a request's tokens are chosen; sent once, at admission.

    `temperature` 0 is greedy. `top_k` 0, `top_p` 1 and `min_p` 0 keep every token. `seed` keys
    the counter-based generator together with the position of the token drawn. `top_logprobs`
    is the number of alternatives reported with each token, or -1 for no log-probabilities.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int = 0
    min_output: int = 0
    logit_bias: tuple[tuple[int, float], ...] = ()
    top_logprobs: int = -1


@dataclass(frozen=True, slots=True)
class LaneAdmission:
    """What INITIALIZE and RESUME write into a slot's state rows.

    `prompt` and `output` fill the histograms. RESUME also hands back the pending token, which
    was sampled before and is not yet consumed; INITIALIZE has none.
    """

    sampling: Sampling
    prompt: Sequence[int]
    output: Sequence[int] = ()
    output_limit: int = 0
    eos_tokens: tuple[int, ...] = ()
    pending_token: int = -1


class Lane(msgspec.Struct, frozen=True):
    """One request's part of a submission.

    `endpoint` counts the tokens the request has consumed before this step; `query_length` those
    that it consumes in it. `tokens` are supplied by the host, one per consumed token, or empty
    where the device supplies the pending token itself. `new_pages` are the page-table entries
    assigned since the last submission that named this slot and generation, as (index, page).
    """

    slot: int
    generation: int
    endpoint: int
    query_length: int = 0
    tokens: Sequence[int] = ()
    sample: bool = False
    new_pages: tuple[tuple[int, int], ...] = ()
    admission: LaneAdmission | None = None
    targets: Sequence[int] = ()  # SCORED_PREFILL: the token each position is scored for
    restore_source: int = -1  # RESTORE: continuation row to read
    snapshot_destination: int = -1  # continuation row to write after the step
    proposals: Sequence[int] = ()  # SPECULATIVE: drafts that the host copies, to be verified
    masked: bool = False  # its token is drawn under a grammar mask, supplied while the step runs


LaneMasks = Sequence[bytes | None]
"""The grammar masks of one lane: one bit per vocabulary token, little endian; None allows all.

The first is that of the next token, then comes that after each copied proposal, had those before
it been drawn. Empty for a lane that is not `masked`.
"""


class Submission(msgspec.Struct, frozen=True):
    """One step. `sequence` grows by one per submission; `frame` alternates.

    Where lanes are `masked`, the host supplies their masks after it has submitted the step, which
    waits for them when it gets there.
    """

    sequence: int
    frame: int
    operation: Operation
    program: str
    lanes: tuple[Lane, ...]

    @property
    def masked(self) -> bool:
        """Whether masks are still to be supplied."""
        return any(lane.masked for lane in self.lanes)


class LaneCompletion(msgspec.Struct, frozen=True):
    """What the device reports of one lane, in lane order. Nothing here is trusted yet.

    `endpoint` counts consumed tokens after the step; `tokens` are the tokens sampled (their
    number is `accepted`); `cursor` is -1 where the graph keeps no draft cursor; `scores` and
    `score_tops` belong to scored prefill, one per consumed token.
    """

    slot: int
    generation: int
    endpoint: int
    accepted: int
    tokens: tuple[int, ...]
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()
    offered: int = 0
    cursor: int = -1
    model: int = -1
    scores: tuple[float, ...] = ()
    score_tops: tuple[tuple[tuple[int, float], ...], ...] = ()


class Completion(msgspec.Struct, frozen=True):
    """The terminal record of one submission: lanes in order, or the error that ended it."""

    sequence: int
    frame: int
    lanes: tuple[LaneCompletion, ...] = ()
    error: HeliosError | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """One program the scheduler may choose: `rows` is B, `tokens` is P, `width` is W.

    `cursor_lag` is how far its draft cursor trails consumption, or -1 where it keeps none.
    """

    program: str
    operation: Operation
    rows: int
    tokens: int
    width: int = 1
    cursor_lag: int = -1


@dataclass(frozen=True, slots=True)
class Geometry:
    """What was loaded: capacities that scheduling decides within.

    `recurrent` says that a request's state is more than its pages, so that only a snapshot
    restores it. The last three bound what one request may carry into a slot's state rows.
    """

    context_tokens: int
    page_tokens: int
    pages: int
    slots: int
    snapshots: int
    vocabulary: int
    input_vocabulary: int
    variants: tuple[Variant, ...]
    frames: int = 2
    cache_identity: str = ""
    recurrent: bool = False
    eos_capacity: int = 16
    bias_capacity: int = 256
    alternatives: int = 20
