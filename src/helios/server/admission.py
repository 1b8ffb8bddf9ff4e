"""How many requests may be inside the server at once."""

from collections.abc import Iterator
from contextlib import contextmanager

from helios.server.errors import OverloadedError


class Admission:
    """Permits for requests, from decoding until the reader has the whole response.

    A permit outlives the generation: a finished response that waits for a slow reader still
    occupies memory. Used by the event loop alone.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.active = 0

    @property
    def full(self) -> bool:
        """Whether another request would be refused."""
        return self.active >= self._capacity

    @contextmanager
    def permit(self) -> Iterator[None]:
        """Hold a permit; raises `OverloadedError` where none is left."""
        self.check()
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1

    def check(self) -> None:
        """Raise `OverloadedError` where no permit is left."""
        if self.full:
            raise OverloadedError(
                f"the server is serving {self._capacity} requests, the most it takes",
                remedy="try again later",
            )
