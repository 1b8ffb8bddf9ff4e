"""What the scheduler counts over its life."""

from collections import Counter
from dataclasses import dataclass, field

from helios.contract.operation import Operation
from helios.scheduler.events import FinishReason


@dataclass(slots=True)
class Counters:
    """Totals since the start, for metrics. `constrained_max_inflight` is a high-water mark: the
    most submissions in flight just after one with a monitored lane. It must never exceed one."""

    admitted: int = 0
    refused: int = 0
    failed: int = 0
    finished: Counter[FinishReason] = field(default_factory=Counter)
    steps: Counter[Operation] = field(default_factory=Counter)
    overlapped_steps: int = 0  # submitted while another was in flight
    failed_steps: int = 0
    rejected_records: int = 0
    prompt_tokens: int = 0
    prefilled_tokens: int = 0
    sampled_tokens: int = 0
    prefix_lookups: int = 0
    prefix_hits: int = 0
    cached_tokens: int = 0
    preemptions: int = 0
    readmissions: int = 0
    mixed_grammar_decode_steps: int = 0
    constrained_max_inflight: int = 0
