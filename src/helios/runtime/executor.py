"""What drives a loaded model: steps go in, completions come out in the same order."""

from collections.abc import Sequence
from typing import Protocol

from helios.contract.submission import Completion, Geometry, LaneMasks, Submission


class StepExecutor(Protocol):
    """A loaded model as the engine sees it. One thread calls it.

    At most `geometry.frames` submissions are outstanding: submitted, and not yet waited for.
    """

    @property
    def geometry(self) -> Geometry:
        """What was loaded."""

    def submit(self, submission: Submission) -> None:
        """Start a step and return at once. Raises `DeviceError` where it can't be started."""

    def supply(self, sequence: int, masks: Sequence[LaneMasks]) -> None:
        """Hand a step with masked lanes the masks of all of its lanes, once, before waiting.

        A step that is never supplied, because it is closed or for too long, is let go with masks
        that allow everything, or fails. Raises `DeviceError` where no such step waits.
        """

    def wait(self, timeout: float | None = None) -> Completion | None:
        """The completion of the oldest outstanding step; None after `timeout` seconds, or
        where no step is outstanding. Raises `DeviceError` where the device is lost."""

    def close(self) -> None:
        """Finish what is outstanding, supplied or not, and free the device."""
