"""The frontend's part of a prepared contract: syntax and image data, free of any model's name.

`PreparedFrontend` holds `ToolSyntax` (of `FrameSyntax`), `ReasoningSyntax`, `AssistantEnvelope`,
`PrefixBoundaryRule`, `ImageTokens` and `ImageSettings`; marker pairs are `Delimiters`.
"""

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from helios.contract.kinds import (
    ImageLayout,
    ImagePreparation,
    ParallelCalls,
    ReasoningParser,
    ToolParser,
    ValueTyping,
)
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class Delimiters:
    """An opener and a closer; an empty string is a marker the syntax does not have."""

    open: str = ""
    close: str = ""


@dataclass(frozen=True, slots=True)
class FrameSyntax:
    """Messages made of frames: a header that routes by channel or recipient, then a body.

    `start` opens a header, `message` a body, `ends` close one. `channel`, `recipient` and
    `constrain` precede what they name; without `channel`, recipients alone route. `generic_tool`
    is a recipient that stands for any offered tool.
    """

    start: str = ""
    role: str = ""
    channel: str = ""
    recipient: str = ""
    constrain: str = ""
    message: str = ""
    ends: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    generic_tool: str = ""


@dataclass(frozen=True, slots=True)
class ToolSyntax:
    """The markers and names of a tool-call syntax; which of them apply, the parser decides.

    `block` surrounds all calls, `call` one call, `fence` a JSON body. `name_end` ends a call's
    name, `tag_end` an opening tag after its attributes. `separator` stands between calls,
    `call_type` is a fixed word before the name and `lead` belongs to the opener where it
    precedes it. `implicit_ends` are markers that end a value whose own closer is missing.
    `tokens` are parts of markers that may be single tokens. `ordinal` separates a name from its
    number, both together being the call id; `id_length` is the length of made-up ids, 0 for the
    server's own form.
    """

    block: Delimiters = Delimiters()
    call: Delimiters = Delimiters()
    name_end: str = ""
    key: Delimiters = Delimiters()
    value: Delimiters = Delimiters()
    wrapping_newlines: bool = False
    separator: str = ""
    typing: ValueTyping = ValueTyping.JSON
    parallel: ParallelCalls = ParallelCalls.NONE
    string_attribute: str = ""
    type_attribute: str = ""
    name_fields: tuple[str, ...] = ()
    argument_fields: tuple[str, ...] = ()
    id_marker: str = ""
    quote: str = ""
    implicit_ends: tuple[str, ...] = ()
    call_type: str = ""
    fence: Delimiters = Delimiters()
    tag_end: str = ""
    tokens: tuple[str, ...] = ()
    trims_content: bool = False
    lead: str = ""
    bare_calls: bool = False
    id_fields: tuple[str, ...] = ()
    name_prefix: str = ""
    ordinal: str = ""
    id_length: int = 0
    frame: FrameSyntax | None = None

    @property
    def opener(self) -> str:
        """The marker that opens tool syntax: the block's, or the call's without a block."""
        return self.block.open or self.call.open


@dataclass(frozen=True, slots=True)
class ReasoningSyntax:
    """Reasoning stands between the delimiters; a terminal marker ends it as well.

    `tokens` are parts of the delimiters that may be single tokens.
    """

    delimiters: Delimiters = Delimiters()
    wrapping_newlines: bool = False
    terminal_markers: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AssistantEnvelope:
    """What opens an assistant message in a prompt, what ends any, and embedded tool results."""

    open: str
    close: tuple[str, ...]
    tool_response: Delimiters = Delimiters()


@dataclass(frozen=True, slots=True)
class PrefixBoundaryRule:
    """Where a rendered prompt may be cut so that its prefix is worth caching."""

    role: str
    generation_prompt: bool = False
    last_only: bool = False


@dataclass(frozen=True, slots=True)
class ImageTokens:
    """The token ids that stand for an image; `begin_id` and `end_id` 0 mean no such token."""

    feature_ids: tuple[int, ...]
    begin_id: int = 0
    end_id: int = 0
    atomic_span: bool = False


@dataclass(frozen=True, slots=True)
class ImageSettings:
    """The numbers of an image preparation; which of them apply, the preparation decides."""

    patch_size: int
    merge_size: int
    minimum_pixels: int = 0
    maximum_pixels: int = 0
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    square_size: int = 0
    maximum_tiles: int = 0


@dataclass(frozen=True, slots=True)
class PreparedFrontend:
    """Everything the frontend knows of a model besides its tokenizer and template.

    `template_resource` is empty where the model serves completions only. `template_tokens` are
    the texts of tokens that a template may name, such as `bos_token`.
    """

    tool_parser: ToolParser
    tool_syntax: ToolSyntax | None
    reasoning_parser: ReasoningParser
    reasoning_syntax: ReasoningSyntax | None
    assistant: AssistantEnvelope | None
    eos_tokens: tuple[int, ...]
    add_bos: bool
    prefix_boundaries: tuple[PrefixBoundaryRule, ...]
    image_preparation: ImagePreparation
    image_layout: ImageLayout
    image_tokens: ImageTokens | None
    image_settings: ImageSettings | None
    tokenizer_resource: str
    template_resource: str
    thinking_switches: tuple[str, ...]
    template_tokens: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )
