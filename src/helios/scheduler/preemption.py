"""Preemption: who gives up pages when they run short."""

from collections.abc import Collection

from helios.scheduler.job import Job


def victim_for_growth(short: Job, seated: Collection[Job]) -> Job | None:
    """Who leaves so that `short` can go on: the last in line of those after it, else itself.

    None while pages are on their way back anyway, or while those after it have yet to make
    the progress that each preempted job is due: they hold pages enough for that.
    """
    if _pages_return(seated):
        return None
    later = [job for job in seated if job.order > short.order and not job.finished]
    willing = [job for job in later if job.progressed]
    if willing:
        return max(willing, key=_order)
    return None if later else short


def victim_for_newcomer(newcomer: Job, lacking: int, seated: Collection[Job]) -> Job | None:
    """Who leaves for a job of higher priority that lacks pages: never one that is due before it,
    and nobody where all who could leave would not be enough."""
    if _pages_return(seated):
        return None
    willing = [
        job
        for job in seated
        if job.request.priority < newcomer.request.priority
        and job.order > newcomer.order
        and job.progressed
    ]
    if sum(len(job.pages) for job in willing) < lacking:
        return None
    return max(willing, key=_order, default=None)


def _pages_return(seated: Collection[Job]) -> bool:
    return any(job.finished or job.leaving for job in seated)


def _order(job: Job) -> tuple[int, int]:
    return job.order
