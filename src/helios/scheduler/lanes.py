"""Lanes: what a submission says of one job."""

from helios.contract.operation import Operation
from helios.contract.submission import Lane, LaneAdmission
from helios.scheduler.job import Job


def decode_lane(job: Job, page_tokens: int, row: int) -> Lane:
    """Consume the token that the device holds, and draw the next one."""
    return Lane(
        slot=job.slot,
        generation=job.generation,
        endpoint=job.ahead,
        query_length=1,
        sample=True,
        new_pages=_new_pages(job, job.ahead // page_tokens + 1),
        snapshot_destination=row,
        masked=job.request.constrained,
    )


def fill_lane(
    job: Job, length: int, sample: bool, page_tokens: int, row: int, scored: bool
) -> Lane:
    """Consume tokens that the host knows."""
    end = job.ahead + length
    return Lane(
        slot=job.slot,
        generation=job.generation,
        endpoint=job.ahead,
        query_length=length,
        tokens=job.tokens[job.ahead : end],
        sample=sample,
        new_pages=_new_pages(job, -(-end // page_tokens)),
        targets=_targets(job, end) if scored else (),
        snapshot_destination=row,
        masked=sample and job.request.constrained,
    )


def setup_lane(job: Job, operation: Operation, page_tokens: int) -> Lane:
    """Write a slot's state rows, or copy a snapshot into the page that the job goes on in.

    Only a restoring program looks at pages, so only its lane carries page-table entries.
    """
    if operation is Operation.RESTORE:
        assert job.tail is not None, "a job in this phase has a snapshot"
        return Lane(
            slot=job.slot,
            generation=job.generation,
            endpoint=job.ahead,
            new_pages=_new_pages(job, -(-job.ahead // page_tokens)),
            restore_source=job.tail.row,
        )
    request = job.request
    resumes = operation is Operation.RESUME
    outputs = tuple(job.tokens[job.prompt_length :]) if resumes else ()
    return Lane(
        slot=job.slot,
        generation=job.generation,
        endpoint=job.ahead,
        admission=LaneAdmission(
            sampling=request.sampling,
            prompt=request.prompt,
            output=outputs,
            output_limit=job.limit,
            eos_tokens=request.eos_tokens,
            pending_token=outputs[-1] if resumes else -1,
        ),
    )


def _new_pages(job: Job, held: int) -> tuple[tuple[int, int], ...]:
    """Entries up to `held` that the device has not seen under this generation."""
    sent = job.sent
    if held <= sent:
        return ()
    job.sent = held
    return tuple((index, job.pages[index]) for index in range(sent, held))


def _targets(job: Job, end: int) -> list[int]:
    """For each consumed position the prompt token that follows it; the last has none."""
    targets = job.tokens[job.ahead + 1 : end + 1]
    if end == job.prompt_length:
        targets.append(-1)
    return targets
