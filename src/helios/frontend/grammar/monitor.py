"""A grammar as the engine's monitor: which tokens may come next."""

from collections.abc import Sequence
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
        return self._must_stop(self._count)

    def mask(self) -> bytes | None:
        """The tokens that may come next, one bit each, little endian."""
        mask: bytes = self._matcher.compute_bitmask()[: self._bytes]
        if self._matcher.is_error():
            raise self._broken("no mask")
        return mask

    def masks_along(self, proposals: Sequence[int]) -> list[bytes | None]:
        """The next token's mask, and that after each proposal until one is not allowed or stops
        the response. The matcher goes ahead and comes back, which costs less than a copy."""
        masks: list[bytes | None] = [self.mask()]
        stops = self._stops.copy() if self._stops is not None else None
        taken = 0
        try:
            for token in proposals:
                if self._matcher.try_consume_tokens([token]) != 1:
                    break
                taken += 1
                if stops is not None and stops.accept(token):
                    break
                if token in self._ends or self._must_stop(self._count + taken):
                    break
                masks.append(self.mask())
        finally:
            if taken and not self._matcher.rollback(taken):
                raise self._broken(f"{taken} proposals can't be taken back")
        return masks + [None] * (len(proposals) + 1 - len(masks))

    def _must_stop(self, count: int) -> bool:
        """Whether only an end could follow so many tokens, and none may."""
        return self._matcher.is_stopped() and (not self._ends or count < self._minimum)

    def _broken(self, problem: str) -> DeviceError:
        return DeviceError(
            f"the grammar can't be followed any further ({problem}): {self._matcher.get_error()}",
            remedy="simplify the schema or grammar",
        )
