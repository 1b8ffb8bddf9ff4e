"""What the engine tells of itself: flat counters and gauges, read from any thread."""

from helios.contract.operation import Operation
from helios.engine.worker import Worker
from helios.scheduler.events import FinishReason
from helios.scheduler.scheduler import Scheduler

EngineStats = dict[str, float]
"""Values by name. A counter's name ends with `_total`; all others are gauges."""


def engine_stats(worker: Worker, queued: int, rejected: int) -> EngineStats:
    """A snapshot. Numbers are read one by one while the worker runs on."""
    return {
        "queued_requests": queued + worker.scheduler.waiting,
        "queue_rejections_total": rejected,
        "sink_errors_total": worker.delivery.sink_errors,
        "integrity_checks_total": worker.integrity_checks,
        "integrity_problems": len(worker.integrity_problems),
        **_requests(worker.scheduler),
        **_steps(worker.scheduler),
        **_cache(worker.scheduler),
    }


def _requests(scheduler: Scheduler) -> EngineStats:
    counters = scheduler.counters
    ends = {f"requests_{r.value}_total": counters.finished[r] for r in FinishReason}
    return {
        "active_requests": scheduler.active,
        "requests_admitted_total": counters.admitted,
        "requests_refused_total": counters.refused,
        "requests_failed_total": counters.failed,
        **ends,
        "preemptions_total": counters.preemptions,
        "readmissions_total": counters.readmissions,
        "prompt_tokens_total": counters.prompt_tokens,
        "prefilled_tokens_total": counters.prefilled_tokens,
        "sampled_tokens_total": counters.sampled_tokens,
    }


def _steps(scheduler: Scheduler) -> EngineStats:
    counters = scheduler.counters
    launches = {
        f"{operation.name.lower()}_steps_total": counters.steps[operation]
        for operation in Operation
        if operation is not Operation.TUNING
    }
    return {
        **launches,
        "failed_steps_total": counters.failed_steps,
        "rejected_records_total": counters.rejected_records,
        "frames_in_flight": scheduler.outstanding,
        "two_frame_steps_total": counters.overlapped_steps,
        "mixed_grammar_decode_steps_total": counters.mixed_grammar_decode_steps,
        "constrained_max_inflight": counters.constrained_max_inflight,
    }


def _cache(scheduler: Scheduler) -> EngineStats:
    counters, residency = scheduler.counters, scheduler.residency
    return {
        "slots": scheduler.slots,
        "pages": residency.pool.total,
        "pages_free": residency.pool.free,
        "pages_cached": residency.tree.pages,
        "pages_evictable": residency.tree.unreferenced,
        "snapshots": residency.rows.total,
        "snapshots_used": residency.rows.published,
        "prefix_lookups_total": counters.prefix_lookups,
        "prefix_hits_total": counters.prefix_hits,
        "prefix_cached_tokens_total": counters.cached_tokens,
        "pages_evicted_total": residency.pages_evicted,
        "snapshots_published_total": residency.snapshots_published,
        "snapshots_evicted_total": residency.snapshots_evicted,
    }
