"""The model worker: one thread that alone drives scheduler and executor.

Each turn takes commands, fills the frames, and retires one step. Whatever happens to the device,
every request gets its terminal event.
"""

import threading
from collections.abc import Callable

from helios.contract.submission import Completion, Submission
from helios.engine.delivery import Delivery
from helios.engine.ingress import Commands, Ingress, Ticket
from helios.errors import AdmissionError, DeviceError, HeliosError
from helios.runtime.executor import StepExecutor
from helios.scheduler.events import Event, Failed, FailureKind, Finished, FinishReason
from helios.scheduler.scheduler import Scheduler

INTEGRITY_INTERVAL_NS = 1_000_000_000


class Worker:
    """Runs until the ingress is closed and all is done. `fault` says what broke first."""

    def __init__(
        self,
        executor: StepExecutor,
        scheduler: Scheduler,
        ingress: Ingress,
        *,
        line_capacity: int,
        clock: Callable[[], int],
    ) -> None:
        self.scheduler = scheduler
        self.delivery = Delivery(clock, ingress.ended)
        self.integrity_checks = 0
        self.integrity_problems: list[str] = []
        self._executor = executor
        self._ingress = ingress
        self._line_capacity = line_capacity
        self._clock = clock
        self._checked_at: int | None = None
        self._fault: str | None = None
        self._stopping = False
        self._undelivered: list[tuple[list[Event], int | None]] = []
        self._thread = threading.Thread(target=self._drive, name="helios-worker", daemon=True)

    @property
    def fault(self) -> str | None:
        """Why the model is not healthy."""
        if self.integrity_problems:
            return f"the cache lost its integrity: {self.integrity_problems[0]}"
        return self._fault or self.scheduler.fault

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Cancel what is left. What is in flight still completes."""
        self._stopping = True

    def join(self, seconds: float | None = None) -> bool:
        """Wait for the thread's end; whether it came."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    # ---- the loop ----------------------------------------------------------------------------

    def _drive(self) -> None:
        try:
            while self._turn():
                pass
        except Exception as error:  # nothing may end this thread without an answer to all
            self._lose(f"the model worker failed: {error}")
        finally:
            self._executor.close()

    def _turn(self) -> bool:
        """Commands, frames, one completion. False once there is nothing left to live for.

        What a completion means to clients is delivered when the next step is on its way: reading
        it wakes threads that would hold up this one.
        """
        scheduler = self.scheduler
        if scheduler.idle:
            self._check_integrity()
        room = self._line_capacity - scheduler.waiting
        commands = self._ingress.take(room, block=scheduler.idle)
        self._obey(commands)
        self._fill_frames()
        self._deliver()
        if scheduler.outstanding:
            self._retire(self._wait())
        elif not scheduler.idle:
            raise DeviceError("the scheduler has requests, but no step for them")
        if scheduler.idle:
            self._deliver()
        return not (commands.closed and scheduler.idle and not len(self._ingress))

    def _obey(self, commands: Commands) -> None:
        for ticket in commands.withdrawn:
            prompt = len(ticket.request.prompt)
            self.delivery.add(ticket)
            self.delivery.send([Finished(ticket.request.id, FinishReason.CANCELLED, prompt, 0)])
        for ticket in commands.tickets:
            self._admit(ticket)
        cancels = self.delivery.open if self._stopping else commands.cancels
        if cancels:
            self._deliver()
        for number in cancels:
            self.delivery.send(self.scheduler.cancel(number))

    def _admit(self, ticket: Ticket) -> None:
        number = ticket.request.id
        self.delivery.add(ticket)
        try:
            self.scheduler.admit(ticket.request)
        except AdmissionError as error:
            self.delivery.send([Failed(number, FailureKind.ADMISSION, str(error))])
        except HeliosError as error:
            self.delivery.send([Failed(number, FailureKind.EXECUTION, str(error))])

    def _fill_frames(self) -> None:
        while (submission := self.scheduler.next()) is not None:
            try:
                self._executor.submit(submission)
            except HeliosError as error:
                self._refuse(submission, error)
                continue
            if submission.masked:
                self._supply(submission)

    def _supply(self, submission: Submission) -> None:
        """Compute masks while the device works; it waits for them only where it needs them."""
        masks, events = self.scheduler.masks()
        self._executor.supply(submission.sequence, masks)
        self._undelivered.append((events, None))

    def _refuse(self, submission: Submission, error: HeliosError) -> None:
        """A step could not be started: retire what runs before it, then it as failed."""
        while self.scheduler.outstanding > 1:
            self._retire(self._wait())
        self._retire(Completion(submission.sequence, submission.frame, error=error))

    def _wait(self) -> Completion:
        completion = self._executor.wait()
        if completion is None:
            raise DeviceError("the device has lost a step")
        return completion

    def _retire(self, completion: Completion) -> None:
        now = self.delivery.now()
        self._undelivered.append((self.scheduler.retire(completion), now))

    def _deliver(self) -> None:
        undelivered, self._undelivered = self._undelivered, []
        for events, now in undelivered:
            for number in self.delivery.send(events, now):
                self.delivery.send(self.scheduler.cancel(number))

    def _lose(self, message: str) -> None:
        """Everything fails: what runs, what waits, and what is yet to be taken."""
        self._fault = self._fault or message
        self._ingress.close(message)
        self._deliver()
        self.delivery.send(self.scheduler.abandon(message))
        commands = self._ingress.take(len(self._ingress), block=False)
        for ticket in [*commands.withdrawn, *commands.tickets]:
            self.delivery.add(ticket)
        self.delivery.send(
            [Failed(number, FailureKind.EXECUTION, message) for number in self.delivery.open]
        )

    def _check_integrity(self) -> None:
        """Prove that nothing leaked, whenever there is nothing else to do, once a second."""
        now = self._clock()
        if self._checked_at is not None and now - self._checked_at < INTEGRITY_INTERVAL_NS:
            return
        self._checked_at = now
        self.integrity_checks += 1
        self.integrity_problems.extend(self.scheduler.check_integrity())
