"""What a chat template puts around an assistant's message, learned by rendering it."""

from collections.abc import Collection, Mapping, Sequence

from helios.errors import RequestError
from helios.frontend.template import Template
from helios.schema import frontend_pb2

_QUESTION = {"role": "user", "content": "question"}
_ANSWER = "0c9e7d4answer"  # no template writes this of its own


def assistant_envelope(
    template: Template, special_tokens: Collection[str]
) -> frontend_pb2.AssistantEnvelope | None:
    """Opener and closer of assistant messages, or None where the template does not show them."""
    bare = _render(template, [_QUESTION], opened=False)
    opened = _render(template, [_QUESTION], opened=True)
    closed = _render(template, [_QUESTION, {"role": "assistant", "content": _ANSWER}], opened=False)
    if bare is None or opened is None or closed is None:
        return None
    if not opened.startswith(bare) or opened == bare or _ANSWER not in closed:
        return None
    close = _closer(closed.rsplit(_ANSWER, 1)[1], special_tokens)
    if not close:
        return None
    return frontend_pb2.AssistantEnvelope(open=opened[len(bare) :], close=[close])


def _closer(text: str, special_tokens: Collection[str]) -> str:
    """The special token that a text begins with, else the text without surrounding space."""
    stripped = text.strip()
    found = [token for token in special_tokens if stripped.startswith(token)]
    return max(found, key=len, default=stripped)


def _render(template: Template, messages: Sequence[Mapping[str, str]], opened: bool) -> str | None:
    try:
        return template.render(messages, add_generation_prompt=opened)
    except RequestError:
        return None
