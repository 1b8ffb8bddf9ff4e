"""A grammar as the engine's monitor: which tokens may come next."""

from typing import TYPE_CHECKING

from helios.errors import DeviceError
from helios.frontend.stops import StopMonitor

if TYPE_CHECKING:
    from llguidance import LLMatcher


class GrammarMonitor:
    """Follows one response. Used by one thread at a time.

    `size` is the number of tokens. Without end tokens, or before `minimum` tokens, a response
    that could only end stops at once. `stops` are the request's string stops, if it has any.
    """

    def __init__(
        self,
        matcher: "LLMatcher",
        size: int,
        *,
        ends: frozenset[int],
        minimum: int = 0,
        stops: StopMonitor | None = None,
    ) -> None:
        self._matcher = matcher
        self._bytes = (size + 31) // 32 * 4
        self._ends = ends
        self._minimum = minimum
        self._stops = stops
        self._count = 0

    def accept(self, token: int) -> bool:
        """Take a sampled token; true where the response must stop with it."""
        self._count += 1
        if not self._matcher.consume_token(token):
            raise self._broken(f"token {token} is not allowed")
        if self._stops is not None and self._stops.accept(token):
            return True
        return self._matcher.is_stopped() and (not self._ends or self._count < self._minimum)

    def mask(self) -> bytes | None:
        """The tokens that may come next, one bit each, little endian."""
        mask: bytes = self._matcher.compute_bitmask()[: self._bytes]
        if self._matcher.is_error():
            raise self._broken("no mask")
        return mask

    def _broken(self, problem: str) -> DeviceError:
        return DeviceError(
            f"the grammar can't be followed any further ({problem}): {self._matcher.get_error()}",
            remedy="simplify the schema or grammar",
        )
