"""Everything about a chat template that the frontend contract states: recognised, or as told."""

from helios.errors import ConfigurationError, ContractError
from helios.frontend.template import Template
from helios.frontend.tokenizer import Tokenizer
from helios.ignition.boundary_rules import boundary_rules
from helios.ignition.envelope import Terminals, assistant_envelope
from helios.ignition.options import SyntaxChoice
from helios.ignition.preparation import syntaxes as s
from helios.ignition.preparation.syntax_names import NONE, named_reasoning, named_tools
from helios.ignition.preparation.tool_prompt import PROMPTED, with_tools
from helios.ignition.probe import ANSWER, QUESTION, TOOL, TOOLS, Message, rendered
from helios.ignition.reasoning_recognition import (
    FRAMES,
    recognise_frames,
    recognise_reasoning,
    thinking_switches,
)
from helios.ignition.tool_recognition import parsers_of, recognise_tools
from helios.records import dataclass
from helios.schema import frontend_pb2


@dataclass(frozen=True, slots=True)
class ChatSyntax:
    """What a model writes and how its prompts are made; without a template, nothing."""

    template: str = ""
    envelope: frontend_pb2.AssistantEnvelope | None = None
    tools: s.Tools | None = None
    reasoning: s.Reasoning | None = None
    switches: tuple[str, ...] = ()
    boundaries: tuple[frontend_pb2.PrefixBoundaryRule, ...] = ()

    def declare(self, frontend: frontend_pb2.FrontendContract) -> None:
        """Put it into a frontend contract."""
        if self.envelope is not None:
            frontend.assistant.CopyFrom(self.envelope)
        frontend.thinking_switches.extend(self.switches)
        frontend.prefix_boundaries.extend(self.boundaries)
        s.declare(frontend, self.tools, self.reasoning, calls_end_reasoning=True)


def without_template(choice: SyntaxChoice) -> ChatSyntax:
    """The syntax of a model that serves completions only; refuses a choice of another."""
    for field, name in (("tool_syntax", choice.tools), ("reasoning_syntax", choice.reasoning)):
        if name not in (None, NONE):
            raise ConfigurationError(
                "the checkpoint has no chat template that could use it",
                field=field,
                value=name,
                remedy="leave it out",
            )
    return ChatSyntax()


def chat_syntax(
    template: Template,
    tokenizer: Tokenizer,
    terminals: Terminals,
    choice: SyntaxChoice,
) -> ChatSyntax:
    """Recognise what the user does not say.

    Raises `ConfigurationError` for names that nobody knows and reasoning that can't be declared.
    """
    framed = _frames(template, choice)
    reasoning = framed[1] if framed else _reasoning(template, choice)
    switches = _switches(template, reasoning, choice)
    envelope = assistant_envelope(template, terminals, reasoning, switches)
    if envelope is None and reasoning is not None:
        if choice.reasoning is not None:
            raise ConfigurationError(
                "the chat template does not show where an assistant's message begins and ends",
                field="reasoning_syntax",
                value=choice.reasoning,
                remedy=f"use {NONE}",
            )
        reasoning, switches = None, ()
    if framed:
        tools: s.Tools | None = framed[0]
    elif choice.tools is not None:
        tools = named_tools(choice.tools)
    else:
        tools = recognise_tools(template, tokenizer, envelope, reasoning)
    _check_pair(tools, reasoning, tokenizer)
    source = template.source
    # The preamble teaches JSON tags to a model whose template does not tell it of any tools.
    teachable = (choice.tools is None and framed is None) or tools == s.JSON_TAGS
    if teachable and not _tells_of_tools(template):
        tools, source = PROMPTED, with_tools(source)
    return ChatSyntax(source, envelope, tools, reasoning, switches, boundary_rules(template))


def _tells_of_tools(template: Template) -> bool:
    """Whether a prompt names the tools on offer, with or without a system message."""
    system: Message = {"role": "system", "content": ANSWER}
    prompts = [rendered(template, [*head, QUESTION], tools=TOOLS) for head in ([], [system])]
    return any(TOOL in (prompt or "") for prompt in prompts)


def _switches(
    template: Template, reasoning: s.Reasoning | None, choice: SyntaxChoice
) -> tuple[str, ...]:
    if choice.switches is None:
        return thinking_switches(template) if reasoning else ()
    wrong = next((name for name in choice.switches if not name.isidentifier()), None)
    if wrong is not None or (choice.switches and reasoning is None):
        raise ConfigurationError(
            "must be variables of a chat template with reasoning",
            field="thinking_switches",
            value=wrong or choice.switches,
            remedy="leave them out, or name a reasoning syntax too",
        )
    return tuple(dict.fromkeys(choice.switches))


def _check_pair(tools: s.Tools | None, reasoning: s.Reasoning | None, tokenizer: Tokenizer) -> None:
    try:
        parsers_of(tools, reasoning, tokenizer)
    except ContractError as error:
        raise ConfigurationError(
            f"the two syntaxes do not go together: {error.message}",
            field="tool_syntax, reasoning_syntax",
            value=error.value,
            remedy="name one of them, or a pair that belongs together",
        ) from None


def _reasoning(template: Template, choice: SyntaxChoice) -> s.Reasoning | None:
    if choice.reasoning is not None:
        return named_reasoning(choice.reasoning)
    return recognise_reasoning(template)


def _frames(template: Template, choice: SyntaxChoice) -> tuple[s.Tools, s.Reasoning] | None:
    """Tools and reasoning that are one syntax, where the template or the user says so.

    Naming one of the two means both, unless the other is named as well.
    """
    tools = named_tools(choice.tools) if choice.tools is not None else None
    reasoning = named_reasoning(choice.reasoning) if choice.reasoning is not None else None
    if choice.tools is None and choice.reasoning is None:
        return recognise_frames(template)
    for _, framed_tools, framed_reasoning in FRAMES:
        if (choice.tools is None or tools == framed_tools) and (
            choice.reasoning is None or reasoning == framed_reasoning
        ):
            return framed_tools, framed_reasoning
    return None
