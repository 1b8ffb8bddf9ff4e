"""The waiting line: first come first served, where a priority level is worth a head start."""

from heapq import heappop, heappush

from helios.scheduler.job import Job

HEAD_START = 64
"""Steps that one level of priority is worth. A request is overtaken only by those that came
before it, or within this many steps per level of advantage after it: nobody starves."""


class WaitingLine:
    """Jobs by their order, which never changes. Every operation is logarithmic or better."""

    def __init__(self) -> None:
        self._heap: list[tuple[tuple[int, int], Job]] = []
        self._live = 0

    def __len__(self) -> int:
        return self._live

    def push(self, job: Job) -> None:
        """Let a job wait."""
        heappush(self._heap, (job.order, job))
        self._live += 1

    def peek(self) -> Job | None:
        """The job to serve next."""
        while self._heap and self._heap[0][1].finished:
            heappop(self._heap)
        return self._heap[0][1] if self._heap else None

    def pop(self) -> Job:
        """Take the job that `peek` showed."""
        self._live -= 1
        return heappop(self._heap)[1]

    def forget(self) -> None:
        """One job here has finished; its entry goes when it is met, or when most are dead."""
        self._live -= 1
        if len(self._heap) > 2 * self._live + 64:
            self._heap = sorted(entry for entry in self._heap if not entry[1].finished)


def order_of(priority: int, step: int, arrival: int) -> tuple[int, int]:
    """The place in line of a request that arrives at a step, the `arrival`-th of all."""
    return step - priority * HEAD_START, arrival
