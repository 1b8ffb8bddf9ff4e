"""Small conversations that a chat template is asked to render, to learn what it writes."""

import json
from collections.abc import Mapping, Sequence

from helios.errors import RequestError
from helios.frontend.template import Template

Message = Mapping[str, object]

# No template writes these of its own.
QUESTION_TEXT = "4b1c88fquestion"
QUESTION: Message = {"role": "user", "content": QUESTION_TEXT}
ANSWER = "0c9e7d4answer"
THOUGHT = "7f31ab5thought"

TOOL = "find_place"
ARGUMENTS = {"place_name": "Rome"}
PARAMETERS = {
    "type": "object",
    "properties": {"place_name": {"type": "string", "description": "Its name."}},
    "required": ["place_name"],
}
TOOLS = [
    {
        "type": "function",
        "function": {"name": TOOL, "description": "Finds a place.", "parameters": PARAMETERS},
    }
]
CALL_ID = "a1b2c3d4e"  # some templates refuse ids of another length


def rendered(
    template: Template,
    conversation: Sequence[Message],
    *,
    opened: bool = False,
    tools: Sequence[Mapping[str, object]] | None = None,
    arguments: Mapping[str, object] | None = None,
) -> str | None:
    """What the template makes of a conversation, or None where it refuses.

    `opened` asks for the beginning of the assistant's next message too.
    """
    try:
        return template.render(
            conversation, tools=tools, add_generation_prompt=opened, arguments=arguments
        )
    except RequestError:
        return None


def tool_turn(template: Template, call_id: str = CALL_ID) -> tuple[Message, Message]:
    """A call of the tool, and its result with `ANSWER` in it."""
    arguments: object = json.dumps(ARGUMENTS) if template.arguments_as_text else ARGUMENTS
    function = {"name": TOOL, "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return (
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "name": TOOL, "content": ANSWER},
    )


def shared(first: str, second: str) -> str:
    """What two texts begin with alike."""
    pairs = enumerate(zip(first, second, strict=False))
    return first[: next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))]
