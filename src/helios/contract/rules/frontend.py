"""Rules of the frontend: parser pairings, the syntax each parser needs, end tokens."""

from collections.abc import Mapping

from helios.contract.kinds import ReasoningParser, ToolParser, ValueTyping
from helios.contract.prepared import PreparedContract
from helios.contract.reading import check_distinct, check_name, refusal
from helios.contract.syntax import Delimiters, ToolSyntax

REQUIRED_SYNTAX: Mapping[ToolParser, tuple[str, ...]] = {
    ToolParser.FUNCTION_TAGS: (
        "call.open",
        "call.close",
        "name_end",
        "key.open",
        "key.close",
        "value.close",
    ),
    ToolParser.JSON_TAGS: ("call.open", "call.close", "name_fields", "argument_fields"),
    ToolParser.ARGUMENT_TAGS: (
        "call.open",
        "call.close",
        "key.open",
        "key.close",
        "value.open",
        "value.close",
    ),
    ToolParser.DSML: (
        "block.open",
        "block.close",
        "call.open",
        "call.close",
        "key.open",
        "value.close",
        "string_attribute",
    ),
    ToolParser.SECTIONS: ("block.open", "block.close", "call.open", "call.close", "name_end"),
    ToolParser.XTML: ("call.open", "call.close", "value.close"),
    ToolParser.ATEM: (
        "block.open",
        "block.close",
        "call.open",
        "call.close",
        "key.open",
        "value.close",
        "frame",
    ),
    ToolParser.JSON_MESSAGE: ("name_fields", "argument_fields"),
    ToolParser.PYTHONIC: (),
    ToolParser.JSON_ARRAY: ("block.open", "name_fields", "argument_fields"),
    ToolParser.NAMED_JSON: ("call.open", "name_end"),
    ToolParser.QUOTED_MAPPING: ("call.open", "call.close", "quote", "call_type"),
    ToolParser.INVOKE_TAGS: ("call.open", "call.close", "key.open", "value.close"),
    ToolParser.HARMONY: ("frame",),
}
"""The parts of `ToolSyntax` without which a parser can't tell where things end."""

PAIRED = (
    (ReasoningParser.RECIPIENT_HEADERS, ToolParser.ATEM),
    (ReasoningParser.HARMONY, ToolParser.HARMONY),
)
"""Syntaxes whose one parser consumes whole frames, reasoning and tool calls alike."""

MAX_EOS = 64
MAX_CALL_ID = 64
ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})


def frame_parsers_are_paired(contract: PreparedContract) -> None:
    """Parsers that share frames are selected together."""
    frontend = contract.frontend
    for reasoning, tool in PAIRED:
        if (frontend.reasoning_parser is reasoning) != (frontend.tool_parser is tool):
            raise refusal(
                "frontend.reasoning_parser",
                f"{reasoning.name} reasoning and {tool.name} tools are one syntax",
                f"{frontend.reasoning_parser.name} with {frontend.tool_parser.name}",
                "select both or neither",
            )


def xtml_reasoning_has_xtml_tools(contract: PreparedContract) -> None:
    """XTML reasoning is read by the XTML tool parser."""
    frontend = contract.frontend
    if (
        frontend.reasoning_parser is ReasoningParser.XTML_THINK
        and frontend.tool_parser is not ToolParser.XTML
    ):
        raise refusal(
            "frontend.tool_parser",
            "XTML_THINK reasoning needs the XTML tool parser",
            frontend.tool_parser.name,
            "select XTML",
        )


def tool_syntax_is_complete(contract: PreparedContract) -> None:
    """A tool parser has its syntax; without one there is none."""
    parser, syntax = contract.frontend.tool_parser, contract.frontend.tool_syntax
    if (parser is ToolParser.NONE) != (syntax is None):
        raise refusal(
            "frontend.tool_syntax",
            f"does not suit {parser.name}",
            syntax or "unset",
            "describe it exactly where a parser is selected",
        )
    if syntax is None:
        return
    for name in REQUIRED_SYNTAX[parser]:
        if not _part(syntax, name):
            raise refusal(f"frontend.tool_syntax.{name}", f"{parser.name} needs it", "", "give it")


def _part(syntax: ToolSyntax, name: str) -> object:
    value: object = syntax
    for step in name.split("."):
        value = getattr(value, step)
    return value


def frames_are_complete(contract: PreparedContract) -> None:
    """Parsers of whole frames, and no others, have the markers that delimit and route them."""
    parser, syntax = contract.frontend.tool_parser, contract.frontend.tool_syntax
    frame = syntax.frame if syntax else None
    if frame is None:
        return  # `tool_syntax_is_complete` requires one where it is needed
    if all(parser is not tool for _, tool in PAIRED):
        raise refusal(
            "frontend.tool_syntax.frame", f"{parser.name} reads no frames", frame, "leave it out"
        )
    for name in ("start", "recipient", "message", "ends", "reasoning", "visible"):
        if not getattr(frame, name):
            raise refusal(
                f"frontend.tool_syntax.frame.{name}", "frames need it", "", "give its text"
            )


def call_ids_are_short(contract: PreparedContract) -> None:
    """Call ids that the server makes up have a moderate length."""
    syntax = contract.frontend.tool_syntax
    if syntax is not None and syntax.id_length > MAX_CALL_ID:
        raise refusal(
            "frontend.tool_syntax.id_length", "too long", syntax.id_length, f"at most {MAX_CALL_ID}"
        )


def typing_has_its_attribute(contract: PreparedContract) -> None:
    """The attribute that types arguments is named exactly where typing reads it."""
    syntax = contract.frontend.tool_syntax
    if syntax is None:
        return
    for typing, name in (
        (ValueTyping.ATTRIBUTE, "string_attribute"),
        (ValueTyping.WIRE, "type_attribute"),
    ):
        if (syntax.typing is typing) != bool(_part(syntax, name)):
            raise refusal(
                f"frontend.tool_syntax.{name}",
                f"does not suit {syntax.typing.name} typing",
                _part(syntax, name),
                f"name it exactly for {typing.name}",
            )


def reasoning_syntax_is_complete(contract: PreparedContract) -> None:
    """A reasoning parser has its delimiters; without one there is no reasoning syntax."""
    parser, syntax = contract.frontend.reasoning_parser, contract.frontend.reasoning_syntax
    if (parser is ReasoningParser.NONE) and (syntax or contract.frontend.thinking_switches):
        raise refusal("frontend.reasoning_syntax", "needs a reasoning parser", syntax, "select one")
    if parser in (ReasoningParser.THINK_TAGS, ReasoningParser.XTML_THINK):
        pair = syntax.delimiters if syntax else Delimiters()
        if not pair.open or not pair.close:
            raise refusal(
                "frontend.reasoning_syntax.delimiters",
                f"{parser.name} needs both",
                pair,
                "give the opening and the closing delimiter",
            )


def terminal_markers_open_tools(contract: PreparedContract) -> None:
    """What ends reasoning besides its closer is the opener of the declared tool syntax."""
    syntax, tools = contract.frontend.reasoning_syntax, contract.frontend.tool_syntax
    opener = tools.opener if tools else ""
    for marker in syntax.terminal_markers if syntax else ():
        if not marker or marker != opener:
            raise refusal(
                "frontend.reasoning_syntax.terminal_markers",
                "must be the tool syntax's opener",
                marker,
                f"give {opener!r}" if opener else "declare a tool syntax with an opener",
            )


def reasoning_has_an_envelope(contract: PreparedContract) -> None:
    """Reasoning that may begin in the prompt is found by the assistant envelope."""
    assistant = contract.frontend.assistant
    if contract.frontend.reasoning_parser is not ReasoningParser.NONE and assistant is None:
        raise refusal(
            "frontend.assistant", "reasoning needs the assistant envelope", "unset", "describe it"
        )
    if assistant is None:
        return
    if not assistant.open:
        raise refusal("frontend.assistant.open", "is empty", "", "give the opening marker")
    if not assistant.close or "" in assistant.close:
        raise refusal(
            "frontend.assistant.close", "a message end is missing", assistant.close, "give its text"
        )


def markers_are_paired(contract: PreparedContract) -> None:
    """Embedded tool responses and JSON fences have an opener and a closer, or neither."""
    frontend = contract.frontend
    pairs = []
    if frontend.assistant:
        pairs.append(("frontend.assistant.tool_response", frontend.assistant.tool_response))
    if frontend.tool_syntax:
        pairs.append(("frontend.tool_syntax.fence", frontend.tool_syntax.fence))
    for field, pair in pairs:
        if bool(pair.open) != bool(pair.close):
            raise refusal(field, "has only one of opener and closer", pair, "give both or neither")


def eos_tokens_are_sampled(contract: PreparedContract) -> None:
    """End tokens are distinct sampled ids, and there is one."""
    tokens = check_distinct(contract.frontend.eos_tokens, "frontend.eos_tokens", "token")
    if not 1 <= len(tokens) <= MAX_EOS:
        raise refusal("frontend.eos_tokens", "too few or many", len(tokens), f"name 1 to {MAX_EOS}")
    for token in tokens:
        if token >= contract.vocabulary:
            raise refusal(
                "frontend.eos_tokens",
                f"lies outside the vocabulary of {contract.vocabulary}",
                token,
                "name ids that can be sampled",
            )


def assets_are_named(contract: PreparedContract) -> None:
    """There is a tokenizer; a chat syntax has a template."""
    frontend = contract.frontend
    check_name(frontend.tokenizer_resource, "frontend.tokenizer_resource")
    if frontend.template_resource:
        check_name(frontend.template_resource, "frontend.template_resource")
    elif frontend.tool_parser is not ToolParser.NONE:
        raise refusal("frontend.template_resource", "tools need a template", "", "name it")


def template_names_are_plain(contract: PreparedContract) -> None:
    """Names that templates see, and the switches of reasoning, are identifiers, said once."""
    for name in contract.frontend.template_tokens:
        _check_identifier(name, "frontend.template_tokens")
    for name in check_distinct(
        contract.frontend.thinking_switches, "frontend.thinking_switches", "switch"
    ):
        _check_identifier(name, "frontend.thinking_switches")


def _check_identifier(name: str, field: str) -> None:
    if not name.isidentifier():
        raise refusal(field, "is not an identifier", name, "give a template variable's name")


def boundaries_have_roles(contract: PreparedContract) -> None:
    """A prefix boundary names a message role, one rule to a role."""
    roles = [b.role for b in contract.frontend.prefix_boundaries]
    for role in check_distinct(roles, "frontend.prefix_boundaries", "role"):
        if role not in ROLES:
            raise refusal(
                "frontend.prefix_boundaries", "unknown role", role, f"one of {sorted(ROLES)}"
            )


RULES = (
    frame_parsers_are_paired,
    xtml_reasoning_has_xtml_tools,
    tool_syntax_is_complete,
    frames_are_complete,
    call_ids_are_short,
    typing_has_its_attribute,
    reasoning_syntax_is_complete,
    terminal_markers_open_tools,
    reasoning_has_an_envelope,
    markers_are_paired,
    eos_tokens_are_sampled,
    assets_are_named,
    template_names_are_plain,
    boundaries_have_roles,
)
