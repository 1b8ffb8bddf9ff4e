"""Fields that both kinds of generation share."""

from typing import Annotated, Any

import msgspec

Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]
TopP = Annotated[float, msgspec.Meta(gt=0, le=1)]
Temperature = Annotated[float, msgspec.Meta(ge=0, le=2)]
Penalty = Annotated[float, msgspec.Meta(ge=-2, le=2)]
Repetition = Annotated[float, msgspec.Meta(gt=0, le=10)]
Bias = Annotated[float, msgspec.Meta(ge=-100, le=100)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Alternatives = Annotated[int, msgspec.Meta(ge=0, le=20)]
TopK = Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)]
Choices = Annotated[int, msgspec.Meta(ge=1, le=128)]
Seed = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Token = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Priority = Annotated[int, msgspec.Meta(ge=-100, le=100)]


class StreamOptions(msgspec.Struct, forbid_unknown_fields=True):
    """How a stream is to be sent. Obfuscation pads chunks elsewhere; here there is none."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class StructuredOutputs(msgspec.Struct, forbid_unknown_fields=True):
    """The form that an answer must have: exactly one of the first five fields.

    `grammar` is Lark or a notation that can be turned into it. `whitespace_pattern` is what may
    stand wherever JSON allows whitespace.
    """

    json: Any = None
    json_object: bool | None = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    whitespace_pattern: str | None = None
    disable_any_whitespace: bool | None = None
    disable_additional_properties: bool | None = None


class GenerationFields(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a request may say about sampling, stopping and scheduling.

    Null means the same as absence. Absent sampling fields take the core's defaults.
    """

    model: str
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Choices | None = None
    max_tokens: Count | None = None
    temperature: Temperature | None = None
    top_p: TopP | None = None
    top_k: TopK | None = None
    min_p: Probability | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    repetition_penalty: Repetition | None = None
    logit_bias: dict[str, Bias] | None = None
    seed: Seed | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[Token] | None = None
    stop_token_sequences: list[list[Token]] | None = None
    min_tokens: Count | None = None
    ignore_eos: bool | None = None
    response_format: dict[str, Any] | None = None
    structured_outputs: StructuredOutputs | None = None
    guided_json: Any = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    priority: Priority | None = None
    cache_salt: str | None = None
    user: str | None = None  # names the caller to OpenAI; nothing here depends on it


class PromptTokensDetails(msgspec.Struct):
    """Prompt tokens whose computation was reused."""

    cached_tokens: int = 0


class CompletionTokensDetails(msgspec.Struct):
    """Sampled tokens whose text was reasoning."""

    reasoning_tokens: int = 0


class Usage(msgspec.Struct):
    """Tokens read and sampled."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails
