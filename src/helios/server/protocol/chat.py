"""Bodies of /v1/chat/completions."""

from typing import Any, Literal

import msgspec

from helios.server.protocol.fields import Alternatives, Count, GenerationFields, Usage

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class ChatRequest(GenerationFields, kw_only=True, forbid_unknown_fields=True):
    """A request for the next message of a conversation.

    Messages and tools are checked where they are prepared for the template. The fields of the
    last group are OpenAI's and change nothing here.
    """

    messages: list[Any]
    max_completion_tokens: Count | None = None
    tools: list[Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    logprobs: bool | None = None
    top_logprobs: Alternatives | None = None
    prompt_logprobs: Alternatives | None = None
    reasoning_effort: Effort | None = None
    enable_thinking: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    return_token_ids: bool | None = None
    return_token_timestamps: bool | None = None
    modalities: list[str] | None = None

    metadata: dict[str, Any] | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    store: bool | None = None


class Function(msgspec.Struct, omit_defaults=True):
    """A called function, or a fragment of one."""

    name: str | msgspec.UnsetType = msgspec.UNSET
    arguments: str | msgspec.UnsetType = msgspec.UNSET


class ToolCall(msgspec.Struct):
    """A whole call."""

    id: str
    function: Function
    type: Literal["function"] = "function"


class ToolCallDelta(msgspec.Struct, omit_defaults=True):
    """A fragment of a call; the first one has id, type and the whole name."""

    index: int
    id: str | msgspec.UnsetType = msgspec.UNSET
    type: str | msgspec.UnsetType = msgspec.UNSET
    function: Function | msgspec.UnsetType = msgspec.UNSET


class Alternative(msgspec.Struct):
    """A token that could have been chosen."""

    token: str
    logprob: float
    bytes: list[int]


class TokenScore(msgspec.Struct):
    """A token that was chosen."""

    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[Alternative]


class Logprobs(msgspec.Struct):
    """Scores of the tokens of a choice or of a chunk of it."""

    content: list[TokenScore]
    refusal: None = None


class PromptScore(msgspec.Struct, omit_defaults=True):
    """A prompt token, or an alternative to it; `rank` where it is among the alternatives."""

    logprob: float
    decoded_token: str
    rank: int | None = None


PromptScoreList = list[dict[str, PromptScore] | None]


class Message(msgspec.Struct, kw_only=True):
    """The generated message."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: None = None
    reasoning_content: str | msgspec.UnsetType = msgspec.UNSET
    tool_calls: list[ToolCall] | msgspec.UnsetType = msgspec.UNSET


class Choice(msgspec.Struct, kw_only=True):
    """One answer."""

    index: int
    message: Message
    logprobs: Logprobs | None = None
    finish_reason: str
    token_ids: list[int] | msgspec.UnsetType = msgspec.UNSET
    token_timestamps_ns: list[int] | msgspec.UnsetType = msgspec.UNSET


class Performance(msgspec.Struct):
    """When a request came in and was queued, on the clock of its tokens' timestamps."""

    ingress_ns: int
    enqueue_ns: int
    reused_prompt_tokens: int


class ChatCompletion(msgspec.Struct, kw_only=True):
    """The whole response."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage
    prompt_token_ids: list[int] | msgspec.UnsetType = msgspec.UNSET
    prompt_logprobs: PromptScoreList | msgspec.UnsetType = msgspec.UNSET
    reused_prompt_tokens: int | msgspec.UnsetType = msgspec.UNSET
    performance: Performance | msgspec.UnsetType = msgspec.UNSET


class MessageDelta(msgspec.Struct, omit_defaults=True):
    """What a chunk adds to the message."""

    role: str | msgspec.UnsetType = msgspec.UNSET
    content: str | msgspec.UnsetType = msgspec.UNSET
    reasoning_content: str | msgspec.UnsetType = msgspec.UNSET
    tool_calls: list[ToolCallDelta] | msgspec.UnsetType = msgspec.UNSET


class ChoiceDelta(msgspec.Struct):
    """What a chunk adds to a choice."""

    index: int
    delta: MessageDelta
    logprobs: Logprobs | None = None
    finish_reason: str | None = None
    token_ids: list[int] | msgspec.UnsetType = msgspec.UNSET
    token_timestamps_ns: list[int] | msgspec.UnsetType = msgspec.UNSET


class ChatChunk(msgspec.Struct, kw_only=True):
    """One event of a stream."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChoiceDelta]
    usage: Usage | msgspec.UnsetType | None = msgspec.UNSET
    prompt_token_ids: list[int] | msgspec.UnsetType = msgspec.UNSET
    reused_prompt_tokens: int | msgspec.UnsetType = msgspec.UNSET
    performance: Performance | msgspec.UnsetType = msgspec.UNSET
