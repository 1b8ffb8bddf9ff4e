"""Which tool calls of a response are complete, and what that makes of its finish reason."""

from collections.abc import Sequence

from helios.engine.messages import FinishReason
from helios.frontend.parsing import Delta, ToolCallArguments, ToolCallEnd, ToolCallStart

_CALL_DELTAS = (ToolCallStart, ToolCallArguments, ToolCallEnd)


class CallTracker:
    """Follows the calls of one response. `single` lets only the first one through."""

    def __init__(self, *, single: bool = False) -> None:
        self._single = single
        self._open = 0
        self._complete = 0

    def follow(self, deltas: Sequence[Delta]) -> list[Delta]:
        """The deltas that may be shown."""
        passed = [delta for delta in deltas if self._passes(delta)]
        for delta in passed:
            if isinstance(delta, ToolCallStart):
                self._open += 1
            elif isinstance(delta, ToolCallEnd):
                self._complete += 1
        return passed

    def _passes(self, delta: Delta) -> bool:
        return not (self._single and isinstance(delta, _CALL_DELTAS) and delta.index)

    def finish_reason(self, reason: FinishReason) -> str:
        """OpenAI's word. Calls count only where the response ended by itself and none was cut:
        a client may run every call of a response that says `tool_calls`."""
        if reason is FinishReason.LENGTH:
            return "length"
        ended = reason is FinishReason.EOS
        whole = 0 < self._complete == self._open
        return "tool_calls" if ended and whole else "stop"
