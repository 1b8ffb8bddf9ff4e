"""Where a response starts: inside reasoning, behind it, or before any."""

from enum import Enum

from helios.contract.syntax import AssistantEnvelope, ReasoningSyntax


class ReasoningState(Enum):
    """What the prompt has already settled about reasoning."""

    ABSENT = "absent"  # none yet; the model may open it
    OPEN = "open"  # the response continues reasoning
    CLOSED = "closed"  # reasoning is over; everything is answer


def open_tail(prompt: str, envelope: AssistantEnvelope | None) -> str:
    """What a rendered prompt holds of the assistant message that the response continues.

    Completed messages don't count. Where a template resumes the assistant's turn behind an
    embedded tool response, only what stands behind that does.
    """
    if envelope is None:
        return ""
    start = prompt.rfind(envelope.open)
    if start < 0:
        return ""
    tail = prompt[start + len(envelope.open) :]
    ends = [tail.rfind(close) + len(close) for close in envelope.close if close in tail]
    behind = tail[max(ends, default=0) :]
    response = envelope.tool_response
    resumed = bool(response.close) and response.close in behind
    if resumed:
        return behind[behind.rfind(response.close) + len(response.close) :]
    return "" if ends else tail


def initial_reasoning_state(
    prompt: str, envelope: AssistantEnvelope | None, syntax: ReasoningSyntax | None
) -> ReasoningState:
    """Where a response to this prompt starts."""
    if syntax is None or not syntax.delimiters.open:
        return ReasoningState.ABSENT
    tail = open_tail(prompt, envelope)
    opened = tail.rfind(syntax.delimiters.open)
    closed = tail.rfind(syntax.delimiters.close)
    if opened < 0 and closed < 0:
        return ReasoningState.ABSENT
    return ReasoningState.OPEN if opened > closed else ReasoningState.CLOSED
