"""What a chat template puts around an assistant's message, learned by rendering it."""

import re
from collections.abc import Collection, Sequence

from helios.frontend.template import Template
from helios.ignition.preparation.syntaxes import Reasoning
from helios.ignition.probe import (
    ANSWER,
    QUESTION,
    QUESTION_TEXT,
    TOOLS,
    Message,
    rendered,
    shared,
    tool_turn,
)
from helios.records import dataclass
from helios.schema import frontend_pb2

_TAG = re.compile(r"<[^<>\s]+>|\[/?[A-Z_]+\]")
_CUT_TAG = re.compile(r"[<\[][^<>\[\]]*$")


@dataclass(frozen=True, slots=True)
class Terminals:
    """Spellings of tokens that are matched whole, and of those that are declared to end a text.

    Whether a tokenizer flags a token as special says little: checkpoints differ for the same one.
    """

    tokens: Collection[str]
    ends: Collection[str] = ()


def assistant_envelope(
    template: Template,
    terminals: Terminals,
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
    closers = [_closer(closed.rsplit(ANSWER, 1)[1], terminals)]
    called, result = tool_turn(template)
    if not closers[0]:
        # Where nothing closes a message, the opener of the next one does.
        closers = [_next_opener(template, answered, QUESTION, terminals)]
        closers.append(_next_opener(template, [QUESTION, called], result, terminals))
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
    """What every prompt ends with, however reasoning is switched, and what old answers begin
    with; '' if there is none."""
    settings = [{}, *({name: wanted} for name in switches for wanted in (False, True))]
    ends, bare = [], ""
    for arguments in settings:
        unopened = rendered(template, [QUESTION], arguments=arguments)
        opened = rendered(template, [QUESTION], opened=True, arguments=arguments)
        if unopened is None or opened is None:
            return ""
        # A template may end a text that nothing follows with a token of its own.
        bare = _common(unopened, opened)
        ends.append(_before_reasoning(opened[len(bare) :], reasoning))
    opener = _common(min(ends), max(ends))
    old = closed[len(bare) :] if closed.startswith(bare) else ""
    return _common(opener, old) or opener or _between(closed, bare)


def _common(first: str, second: str) -> str:
    """What two texts begin with alike, cut before any tag that they do not share whole."""
    text = shared(first, second)
    return text if text in (first, second) else _CUT_TAG.sub("", text)


def _before_reasoning(text: str, reasoning: Reasoning | None) -> str:
    pair = reasoning.syntax.delimiters if reasoning else frontend_pb2.DelimiterPair()
    starts = [text.find(marker) for marker in (pair.open, pair.close) if marker and marker in text]
    return text[: min(starts, default=len(text))]


def _between(closed: str, prompt: str) -> str:
    """Where nothing opens an answer but the end of the question: that end."""
    end = closed.partition(QUESTION_TEXT)[2].partition(ANSWER)[0].strip()
    return end if prompt.rstrip().endswith(end) else ""


def _closer(text: str, terminals: Terminals) -> str:
    """The token that a text begins with, else the text without surrounding space.

    Where more than tokens follows, the first one only opens the closing: then the token that
    ends a text counts.
    """
    stripped = text.strip()
    found = [token for token in terminals.tokens if stripped.startswith(token)]
    first = max(found, key=len, default=stripped)
    rest = stripped[len(first) :]
    for token in terminals.tokens:
        rest = rest.replace(token, "")
    ends = [end for end in terminals.ends if end in stripped]
    return min(ends, key=stripped.index) if rest.strip() and ends else first


def _next_opener(
    template: Template,
    conversation: Sequence[Message],
    message: Message,
    terminals: Terminals,
) -> str:
    """The token that one more message adds to a conversation first; '' if none."""
    head = rendered(template, conversation, tools=TOOLS)
    text = rendered(template, [*conversation, message], tools=TOOLS)
    if head is None or text is None or not text.startswith(head):
        return ""
    closer = _closer(text[len(head) :], terminals)
    return closer if closer in terminals.tokens else ""


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
