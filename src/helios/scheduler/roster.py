"""Who is ready for what. A job is in at most one group; those that must wait are in none."""

from collections import OrderedDict
from collections.abc import Iterator

from helios.contract.operation import Operation
from helios.scheduler.job import Job, Phase

Group = OrderedDict[Job, None]


class Roster:
    """Groups of jobs, each in the order of service."""

    def __init__(self) -> None:
        self.initialize: Group = OrderedDict()
        self.resume: Group = OrderedDict()
        self.restore: Group = OrderedDict()
        self.fill: Group = OrderedDict()
        self.score: Group = OrderedDict()
        self.decode: Group = OrderedDict()
        self._unfilled: Group = OrderedDict()

    def seat(self, job: Job) -> None:
        """A job has a slot and is ready for its first step."""
        self._unfilled[job] = None
        self.enter(job)

    def enter(self, job: Job) -> None:
        """A job is ready for its phase."""
        self._group(job)[job] = None

    def leave(self, job: Job) -> None:
        """A job is no longer ready, if it was."""
        if job.phase is not Phase.WAITING:
            self._group(job).pop(job, None)

    def filled(self, job: Job) -> None:
        """A job's last known token is in flight or consumed."""
        self._unfilled.pop(job, None)

    def drop(self, job: Job) -> None:
        """A job takes no further part."""
        self.leave(job)
        self.filled(job)

    def setups(self) -> Iterator[tuple[Operation, Group]]:
        """The groups whose steps run no network."""
        yield Operation.INITIALIZE, self.initialize
        yield Operation.RESUME, self.resume
        yield Operation.RESTORE, self.restore

    def backlog(self) -> int:
        """Tokens that seated jobs have yet to prefill. Few are seated before their turn."""
        return sum(job.fill_to - job.ahead for job in self._unfilled)

    def _group(self, job: Job) -> Group:
        if job.phase is Phase.DECODE:
            return self.decode
        if job.phase is Phase.FILL:
            return self.score if job.scores_prompt else self.fill
        if job.phase is Phase.RESTORE:
            return self.restore
        return self.resume if job.outputs and not job.closing else self.initialize
