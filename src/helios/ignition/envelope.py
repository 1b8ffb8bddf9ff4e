"""What a chat template puts around an assistant's message, learned by rendering it."""

import re
from collections.abc import Collection, Sequence

from helios.frontend.template import Template
from helios.ignition.preparation.syntaxes import Reasoning
from helios.ignition.probe import ANSWER, QUESTION, TOOLS, Message, rendered, shared, tool_turn
from helios.schema import frontend_pb2

_TAG = re.compile(r"<[^<>\s]+>|\[/?[A-Z_]+\]")


def assistant_envelope(
    template: Template,
    special_tokens: Collection[str],
    reasoning: Reasoning | None = None,
    switches: Sequence[str] = (),
) -> frontend_pb2.AssistantEnvelope | None:
    """Opener and closers of assistant messages, or None where the template does not show them.

    What templates put behind the opener to switch reasoning on or off is no part of it.
    """
    answered = [QUESTION, {"role": "assistant", "content": ANSWER}]
    closed = rendered(template, answered)
    if closed is None or ANSWER not in closed:
        return None
    opener = _opener(template, closed, reasoning, switches)
    closers = [_closer(closed.rsplit(ANSWER, 1)[1], special_tokens)]
    called, result = tool_turn(template)
    if not closers[0]:
        # Where nothing closes a message, the opener of the next one does.
        closers = [_next_opener(template, answered, QUESTION, special_tokens)]
        closers.append(_next_opener(template, [QUESTION, called], result, special_tokens))
    if not opener or not closers[0]:
        return None
    return frontend_pb2.AssistantEnvelope(
        open=opener,
        close=[closer for closer in dict.fromkeys(closers) if closer],
        tool_response=_tool_response(template, opener, reasoning, [QUESTION, called, result]),
    )


def _opener(
    template: Template, closed: str, reasoning: Reasoning | None, switches: Sequence[str]
) -> str:
    """What every prompt ends with, however reasoning is switched; '' if there is none."""
    settings = [{}, *({name: wanted} for name in switches for wanted in (False, True))]
    ends, bare = [], None
    for arguments in settings:
        bare = rendered(template, [QUESTION], arguments=arguments)
        opened = rendered(template, [QUESTION], opened=True, arguments=arguments)
        if bare is None or opened is None or not opened.startswith(bare):
            return ""
        ends.append(_before_reasoning(opened[len(bare) :], reasoning))
    return shared(min(ends), max(ends)) or _between(closed, bare or "")


def _before_reasoning(text: str, reasoning: Reasoning | None) -> str:
    pair = reasoning.syntax.delimiters if reasoning else frontend_pb2.DelimiterPair()
    starts = [text.find(marker) for marker in (pair.open, pair.close) if marker and marker in text]
    return text[: min(starts, default=len(text))]


def _between(closed: str, prompt: str) -> str:
    """Where nothing opens an answer but the end of the question: that end."""
    end = closed.partition(str(QUESTION["content"]))[2].partition(ANSWER)[0].strip()
    return end if prompt.rstrip().endswith(end) else ""


def _closer(text: str, special_tokens: Collection[str]) -> str:
    """The special token that a text begins with, else the text without surrounding space."""
    stripped = text.strip()
    found = [token for token in special_tokens if stripped.startswith(token)]
    return max(found, key=len, default=stripped)


def _next_opener(
    template: Template,
    conversation: Sequence[Message],
    message: Message,
    special_tokens: Collection[str],
) -> str:
    """The special token that one more message adds to a conversation first; '' if none."""
    head = rendered(template, conversation, tools=TOOLS)
    text = rendered(template, [*conversation, message], tools=TOOLS)
    if head is None or text is None or not text.startswith(head):
        return ""
    closer = _closer(text[len(head) :], special_tokens)
    return closer if closer in special_tokens else ""


def _tool_response(
    template: Template,
    opener: str,
    reasoning: Reasoning | None,
    conversation: Sequence[Message],
) -> frontend_pb2.DelimiterPair | None:
    """The outermost tags around a tool's result behind which the assistant goes on by itself."""
    text = rendered(template, conversation, opened=True, tools=TOOLS)
    before, found, after = (text or "").rpartition(ANSWER)
    if not found or opener in after:
        return None
    opens, closes = _TAG.findall(before), _TAG.findall(_before_reasoning(after, reasoning))
    if not 1 <= len(closes) <= len(opens):
        return None
    return frontend_pb2.DelimiterPair(open=opens[-len(closes)], close=closes[-1])
