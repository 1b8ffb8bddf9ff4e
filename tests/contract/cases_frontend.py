"""Broken frontends."""

from contract_cases import Case
from contract_examples import framed_contract

from helios.schema import contract_pb2 as pb
from helios.schema import frontend_pb2 as front


def frontend(c: pb.ServingContract) -> front.FrontendContract:
    return c.model.frontend


def select(c: pb.ServingContract, tools: int | None = None, reasoning: int | None = None) -> None:
    if tools is not None:
        frontend(c).tool_parser = front.ToolParser.Name(tools)
    if reasoning is not None:
        frontend(c).reasoning_parser = front.ReasoningParser.Name(reasoning)


def untooled(c: pb.ServingContract, reasoning: int) -> None:
    select(c, front.TOOL_PARSER_NONE, reasoning)
    frontend(c).ClearField("tool_syntax")


def without(c: pb.ServingContract, path: str) -> None:
    message = frontend(c).tool_syntax
    *steps, last = path.split(".")
    for step in steps:
        message = getattr(message, step)
    message.ClearField(last)


def framed(c: pb.ServingContract, cleared: str) -> None:
    c.CopyFrom(framed_contract())
    frontend(c).tool_syntax.frame.ClearField(cleared)


CASES = [
    *(
        Case(
            "frames_are_complete",
            f"tool_syntax.frame.{name}",
            lambda c, m, name=name: framed(c, name),
        )
        for name in ("start", "recipient", "message", "ends", "reasoning", "visible")
    ),
    Case(
        "frames_are_complete",
        "tool_syntax.frame",
        lambda c, m: setattr(frontend(c).tool_syntax.frame, "start", "<|start|>"),
    ),
    Case(
        "call_ids_are_short",
        "id_length",
        lambda c, m: setattr(frontend(c).tool_syntax, "id_length", 65),
    ),
    Case(
        "frame_parsers_are_paired",
        "reasoning_parser",
        lambda c, m: select(c, tools=front.TOOL_PARSER_ATEM),
    ),
    Case(
        "frame_parsers_are_paired",
        "reasoning_parser",
        lambda c, m: select(c, reasoning=front.REASONING_PARSER_RECIPIENT_HEADERS),
    ),
    Case(
        "frame_parsers_are_paired",
        "reasoning_parser",
        lambda c, m: select(c, tools=front.TOOL_PARSER_HARMONY),
    ),
    Case(
        "xtml_reasoning_has_xtml_tools",
        "tool_parser",
        lambda c, m: select(c, reasoning=front.REASONING_PARSER_XTML_THINK),
    ),
    Case(
        "tool_syntax_is_complete",
        "tool_syntax",
        lambda c, m: select(c, tools=front.TOOL_PARSER_NONE),
    ),
    Case(
        "tool_syntax_is_complete", "tool_syntax", lambda c, m: frontend(c).ClearField("tool_syntax")
    ),
    *(
        Case(
            "tool_syntax_is_complete",
            f"tool_syntax.{path}",
            lambda c, m, path=path: without(c, path),
        )
        for path in ("block.open", "block.close", "call.open", "call.close", "key.open")
    ),
    Case(
        "typing_has_its_attribute",
        "type_attribute",
        lambda c, m: setattr(frontend(c).tool_syntax, "type_attribute", "type"),
    ),
    Case(
        "typing_has_its_attribute",
        "string_attribute",
        lambda c, m: setattr(frontend(c).tool_syntax, "typing", front.VALUE_TYPING_SCHEMA),
    ),
    Case(
        "reasoning_syntax_is_complete",
        "reasoning_syntax.delimiters",
        lambda c, m: frontend(c).reasoning_syntax.delimiters.ClearField("close"),
    ),
    Case(
        "reasoning_syntax_is_complete",
        "reasoning_syntax",
        lambda c, m: select(c, reasoning=front.REASONING_PARSER_NONE),
    ),
    Case(
        "terminal_markers_open_tools",
        "terminal_markers",
        lambda c, m: frontend(c).reasoning_syntax.terminal_markers.append("<invoke>"),
    ),
    Case(
        "terminal_markers_open_tools",
        "terminal_markers",
        lambda c, m: untooled(c, front.REASONING_PARSER_THINK_TAGS),
    ),
    Case(
        "reasoning_has_an_envelope",
        "frontend.assistant",
        lambda c, m: frontend(c).ClearField("assistant"),
    ),
    Case(
        "reasoning_has_an_envelope",
        "assistant.open",
        lambda c, m: frontend(c).assistant.ClearField("open"),
    ),
    Case(
        "reasoning_has_an_envelope",
        "assistant.close",
        lambda c, m: frontend(c).assistant.close.append(""),
    ),
    Case(
        "markers_are_paired",
        "tool_response",
        lambda c, m: frontend(c).assistant.tool_response.ClearField("open"),
    ),
    Case("markers_are_paired", "fence", lambda c, m: without(c, "fence.close")),
    Case("eos_tokens_are_sampled", "eos_tokens", lambda c, m: frontend(c).ClearField("eos_tokens")),
    Case("eos_tokens_are_sampled", "eos_tokens", lambda c, m: frontend(c).eos_tokens.append(2)),
    Case("eos_tokens_are_sampled", "eos_tokens", lambda c, m: frontend(c).eos_tokens.append(100)),
    Case(
        "assets_are_named",
        "tokenizer_resource",
        lambda c, m: frontend(c).ClearField("tokenizer_resource"),
    ),
    Case(
        "assets_are_named",
        "template_resource",
        lambda c, m: frontend(c).ClearField("template_resource"),
    ),
    Case(
        "template_names_are_plain",
        "template_tokens",
        lambda c, m: frontend(c).template_tokens.add(name="a b"),
    ),
    Case(
        "template_names_are_plain",
        "thinking_switches",
        lambda c, m: frontend(c).thinking_switches.append("1"),
    ),
    Case(
        "boundaries_have_roles",
        "prefix_boundaries",
        lambda c, m: frontend(c).prefix_boundaries.add(role="user"),
    ),
    Case(
        "boundaries_have_roles",
        "prefix_boundaries",
        lambda c, m: frontend(c).prefix_boundaries.add(role="nobody"),
    ),
]
