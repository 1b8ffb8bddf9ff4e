"""Decoding the frontend contract."""

from types import MappingProxyType

from helios.contract.kinds import (
    ImageLayout,
    ImagePreparation,
    ParallelCalls,
    ReasoningParser,
    ToolParser,
    ValueTyping,
)
from helios.contract.reading import refusal, select
from helios.contract.syntax import (
    AssistantEnvelope,
    Delimiters,
    FrameSyntax,
    ImageSettings,
    ImageTokens,
    PrefixBoundaryRule,
    PreparedFrontend,
    ReasoningSyntax,
    ToolSyntax,
)
from helios.schema import frontend_pb2 as pb


def decode_frontend(message: pb.FrontendContract) -> PreparedFrontend:
    """The frontend's facts; every parser and image algorithm must be selected."""
    field = "frontend"
    return PreparedFrontend(
        tool_parser=select(ToolParser, message.tool_parser, f"{field}.tool_parser"),
        tool_syntax=_tool_syntax(message),
        reasoning_parser=select(
            ReasoningParser, message.reasoning_parser, f"{field}.reasoning_parser"
        ),
        reasoning_syntax=_reasoning_syntax(message),
        assistant=_assistant(message),
        eos_tokens=tuple(message.eos_tokens),
        add_bos=message.add_bos,
        prefix_boundaries=tuple(
            PrefixBoundaryRule(b.role, b.generation_prompt, b.last_only)
            for b in message.prefix_boundaries
        ),
        image_preparation=select(
            ImagePreparation, message.image_preparation, f"{field}.image_preparation"
        ),
        image_layout=select(ImageLayout, message.image_layout, f"{field}.image_layout"),
        image_tokens=_image_tokens(message),
        image_settings=_image_settings(message),
        tokenizer_resource=message.tokenizer_resource,
        template_resource=message.template_resource,
        thinking_switches=tuple(message.thinking_switches),
        template_tokens=MappingProxyType(_template_tokens(message)),
    )


def _pair(message: pb.DelimiterPair) -> Delimiters:
    return Delimiters(message.open, message.close)


def _tool_syntax(message: pb.FrontendContract) -> ToolSyntax | None:
    if not message.HasField("tool_syntax"):
        return None
    syntax, field = message.tool_syntax, "frontend.tool_syntax"
    return ToolSyntax(
        block=_pair(syntax.block),
        call=_pair(syntax.call),
        name_end=syntax.name_end,
        key=_pair(syntax.key),
        value=_pair(syntax.value),
        wrapping_newlines=syntax.wrapping_newlines,
        separator=syntax.separator,
        typing=select(ValueTyping, syntax.typing, f"{field}.typing"),
        parallel=select(ParallelCalls, syntax.parallel, f"{field}.parallel"),
        string_attribute=syntax.string_attribute,
        type_attribute=syntax.type_attribute,
        name_fields=tuple(syntax.name_fields),
        argument_fields=tuple(syntax.argument_fields),
        id_marker=syntax.id_marker,
        quote=syntax.quote,
        implicit_ends=tuple(syntax.implicit_ends),
        call_type=syntax.call_type,
        fence=_pair(syntax.fence),
        tag_end=syntax.tag_end,
        tokens=tuple(syntax.tokens),
        trims_content=syntax.trims_content,
        lead=syntax.lead,
        bare_calls=syntax.bare_calls,
        id_fields=tuple(syntax.id_fields),
        name_prefix=syntax.name_prefix,
        ordinal=syntax.ordinal,
        id_length=syntax.id_length,
        frame=_frame_syntax(syntax),
    )


def _frame_syntax(message: pb.ToolSyntax) -> FrameSyntax | None:
    if not message.HasField("frame"):
        return None
    frame = message.frame
    return FrameSyntax(
        start=frame.start,
        role=frame.role,
        channel=frame.channel,
        recipient=frame.recipient,
        constrain=frame.constrain,
        message=frame.message,
        ends=tuple(frame.ends),
        reasoning=tuple(frame.reasoning),
        visible=tuple(frame.visible),
        generic_tool=frame.generic_tool,
    )


def _reasoning_syntax(message: pb.FrontendContract) -> ReasoningSyntax | None:
    if not message.HasField("reasoning_syntax"):
        return None
    syntax = message.reasoning_syntax
    return ReasoningSyntax(
        _pair(syntax.delimiters),
        syntax.wrapping_newlines,
        tuple(syntax.terminal_markers),
        tuple(syntax.tokens),
    )


def _assistant(message: pb.FrontendContract) -> AssistantEnvelope | None:
    if not message.HasField("assistant"):
        return None
    assistant = message.assistant
    return AssistantEnvelope(assistant.open, tuple(assistant.close), _pair(assistant.tool_response))


def _image_tokens(message: pb.FrontendContract) -> ImageTokens | None:
    if not message.HasField("image_tokens"):
        return None
    tokens = message.image_tokens
    return ImageTokens(
        tuple(tokens.feature_ids), tokens.begin_id, tokens.end_id, tokens.atomic_span
    )


def _image_settings(message: pb.FrontendContract) -> ImageSettings | None:
    if not message.HasField("image_settings"):
        return None
    settings = message.image_settings
    return ImageSettings(
        patch_size=settings.patch_size,
        merge_size=settings.merge_size,
        minimum_pixels=settings.minimum_pixels,
        maximum_pixels=settings.maximum_pixels,
        mean=tuple(settings.mean),
        deviation=tuple(settings.deviation),
        square_size=settings.square_size,
        maximum_tiles=settings.maximum_tiles,
    )


def _template_tokens(message: pb.FrontendContract) -> dict[str, str]:
    found: dict[str, str] = {}
    for token in message.template_tokens:
        if token.name in found:
            raise refusal(
                "frontend.template_tokens", "the name comes twice", token.name, "name it once"
            )
        found[token.name] = token.text
    return found
