"""What a user may choose when preparing a model."""

from typing import Literal

from helios.contract.reading import IDENTIFIER
from helios.errors import ConfigurationError
from helios.ignition.preparation.geometry import Geometry
from helios.ignition.recipes.recipe import ModelFacts
from helios.program.ir import DType
from helios.records import dataclass

CacheDType = Literal["f16", "bf16", "f32"]
WeightLayout = Literal["source", "cpu"]
_CACHE_DTYPES = {"f16": DType.F16, "bf16": DType.BF16, "f32": DType.F32}

MAX_CONCURRENCY = 1024
MAX_STEP_TOKENS = 1 << 16
_PREFILL_TOKENS = 256
_SCORED_TOKENS = 64


@dataclass(frozen=True, slots=True)
class SyntaxChoice:
    """What a user says of a model's syntaxes.

    A name of `preparation.syntax_names`, `none`, or None to have it recognised; `switches` are
    the variables of the chat template that switch reasoning on and off. `template` is the text
    of a chat template to use instead of the checkpoint's.
    """

    tools: str | None = None
    reasoning: str | None = None
    switches: tuple[str, ...] | None = None
    template: str | None = None


RECOGNISED = SyntaxChoice()


@dataclass(frozen=True, slots=True)
class PrepareOptions:
    """Capacities and names of a core. None leaves a choice to the model.

    `context` is by default all that the model was trained for. `prefill_tokens` and
    `scored_tokens` bound the prompt tokens of one submission; by default 256, which keeps a CPU
    busy without holding up decoding lanes for long, and 64, since every scored token needs a full
    row of logits. `page_tokens` of 32 wastes half a page, 16 tokens, per request on average and
    gives prefixes a fine grain, while one page of one key head (4 KiB at 64 f16 elements) is still
    a stretch of memory that reads well. `layout` "cpu" stores matrices as the kernels of the CPU
    read them, so that they are mapped instead of repacked at every start. `syntaxes` are
    recognised from the chat template unless they are named.
    """

    context: int | None = None
    concurrency: int = 16
    prefill_tokens: int | None = None
    scored_tokens: int | None = None
    page_tokens: int = 32
    cache_dtype: CacheDType = "f16"
    served_id: str | None = None
    aliases: tuple[str, ...] = ()
    syntaxes: SyntaxChoice = RECOGNISED
    layout: WeightLayout = "source"


def resolve_geometry(options: PrepareOptions, facts: ModelFacts) -> Geometry:
    """The capacities of a model's programs; refuses what the model can't do."""
    context = facts.context if options.context is None else options.context
    _check_range("context", context, facts.context, "the model was trained for no more")
    _check_range("concurrency", options.concurrency, MAX_CONCURRENCY)
    limit = min(context, MAX_STEP_TOKENS)
    prefill = min(_PREFILL_TOKENS, limit)
    if options.prefill_tokens is not None:
        prefill = options.prefill_tokens
    scored = min(_SCORED_TOKENS, limit)
    if options.scored_tokens is not None:
        scored = options.scored_tokens
    _check_range("prefill_tokens", prefill, limit, "a step holds at most one context")
    _check_range("scored_tokens", scored, limit, "a step holds at most one context")
    _check_page_tokens(options.page_tokens)
    _check_names(options)
    if options.cache_dtype not in _CACHE_DTYPES:
        raise ConfigurationError(
            "unknown cache element type",
            field="cache_dtype",
            value=options.cache_dtype,
            remedy=f"one of {', '.join(_CACHE_DTYPES)}",
        )
    return Geometry(
        vocabulary=facts.vocabulary,
        context=context,
        page_tokens=options.page_tokens,
        concurrency=options.concurrency,
        prefill_tokens=prefill,
        scored_tokens=scored,
        cache_dtype=_CACHE_DTYPES[options.cache_dtype],
        histories=facts.histories,
    )


def _check_range(field: str, value: int, maximum: int, why: str = "") -> None:
    if not 1 <= value <= maximum:
        raise ConfigurationError(
            f"must be between 1 and {maximum}" + (f": {why}" if why else ""),
            field=field,
            value=value,
            remedy=f"choose at most {maximum}",
        )


def _check_names(options: PrepareOptions) -> None:
    for name in (options.served_id, *options.aliases):
        if name is not None and not IDENTIFIER.fullmatch(name):
            raise ConfigurationError(
                "must be letters, digits and any of _ . : / + @ -",
                field="served_id" if name == options.served_id else "aliases",
                value=name,
                remedy="choose a plain name",
            )


def _check_page_tokens(value: int) -> None:
    if not 1 <= value <= 1024 or value & (value - 1):
        raise ConfigurationError(
            "must be a power of two up to 1024", field="page_tokens", value=value, remedy="use 32"
        )
