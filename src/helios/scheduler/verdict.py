"""Whether a token ends its request, and why."""

from helios.scheduler.events import FinishReason
from helios.scheduler.job import Job

Stop = int | tuple[int, ...] | None
Verdict = tuple[FinishReason, Stop]


def verdict(job: Job, token: int) -> Verdict | None:
    """The end that an accepted token brings, if any. Advances the request's monitor.

    An end token wins over stops, stops over the output limit. Stops are heeded once
    `min_output` tokens are out.
    """
    request = job.request
    if token in job.stop_tokens:
        if token in request.eos_tokens:
            return FinishReason.EOS, token
        if job.outputs >= request.sampling.min_output:
            return FinishReason.STOP, token
    if request.stop_sequences and (sequence := _matched(job)) is not None:
        return FinishReason.STOP, sequence
    if request.monitor is not None and request.monitor.accept(token):
        return FinishReason.STOP, None
    if job.outputs >= job.limit:
        return FinishReason.LENGTH, None
    return None


def _matched(job: Job) -> tuple[int, ...] | None:
    """The stop sequence that the output ends with."""
    outputs = job.outputs
    if outputs < job.request.sampling.min_output:
        return None
    for sequence in job.request.stop_sequences:
        length = len(sequence)
        if length <= outputs and tuple(job.tokens[-length:]) == sequence:
            return sequence
    return None
