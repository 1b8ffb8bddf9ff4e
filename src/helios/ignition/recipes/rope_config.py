"""Rotary settings as both dialects state them."""

import math

from helios.errors import SourceError
from helios.ignition.recipes.reading import INTACT
from helios.ignition.recipes.rope import LinearScaling, Llama3Scaling, Scaling, YarnScaling
from helios.ignition.sources.facts import Facts
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class RopeSettings:
    """Base, scaling, and the part of a head that turns."""

    base: float
    scaling: Scaling
    partial: float = 1.0


_GGUF_PREFIX = "rope.scaling."
_GGUF_KEYS = frozenset(
    {
        "type",
        "factor",
        "original_context_length",
        "attn_factor",
        "finetuned",
        "yarn_beta_fast",
        "yarn_beta_slow",
    }
)


def gguf_scaling(facts: Facts) -> Scaling:
    """Scaling keys of a GGUF file. Llama 3's piecewise scaling is a tensor there, not a key.

    A factor without a type is linear, as is the older key `rope.scale_linear`.
    """
    for key in sorted(facts.keys()):
        if key.startswith(_GGUF_PREFIX) and key.removeprefix(_GGUF_PREFIX) not in _GGUF_KEYS:
            raise _unsupported(facts.name(key), key)
    kind = facts.text("rope.scaling.type", "linear")
    factor = facts.positive("rope.scaling.factor", facts.positive("rope.scale_linear", 1.0))
    if kind == "none" or (kind == "linear" and factor == 1):
        return None
    if kind == "linear":
        return LinearScaling(factor)
    if kind == "yarn":
        extra = facts.positive("rope.scaling.attn_factor", 1.0)
        return YarnScaling(
            factor,
            facts.integer("rope.scaling.original_context_length"),
            facts.positive("rope.scaling.yarn_beta_fast", 32.0),
            facts.positive("rope.scaling.yarn_beta_slow", 1.0),
            extra * _yarn_magnitude(factor, 1.0),
        )
    raise _unsupported(facts.name("rope.scaling.type"), kind)


def huggingface_rope(facts: Facts) -> RopeSettings:
    """Rotary settings of a `config.json`, in the spelling of either transformers generation."""
    settings = facts.group("rope_parameters" if "rope_parameters" in facts else "rope_scaling")
    base = settings.positive("rope_theta", facts.positive("rope_theta", 10000.0))
    partial = settings.positive(
        "partial_rotary_factor", facts.positive("partial_rotary_factor", 1.0)
    )
    return RopeSettings(base, huggingface_scaling(settings, facts), partial)


def huggingface_scaling(settings: Facts, facts: Facts) -> Scaling:
    """The scaling that one group of rotary settings asks for."""
    kind = settings.text("rope_type", settings.text("type", "default"))
    match kind:
        case "default" | "dynamic":
            return None  # dynamic scaling begins where the context that the model states ends
        case "linear":
            return LinearScaling(settings.positive("factor"))
        case "llama3":
            return Llama3Scaling(
                settings.positive("factor"),
                *_band(settings),
                settings.integer("original_max_position_embeddings"),
            )
        case "yarn":
            return _yarn(settings, facts)
        case _:
            raise _unsupported(settings.name("rope_type"), kind)


def _band(settings: Facts) -> tuple[float, float]:
    """Turns over the original context below which a pair is stretched and above which kept."""
    low, high = settings.positive("low_freq_factor"), settings.positive("high_freq_factor")
    if low >= high:
        raise SourceError(
            "must be above low_freq_factor",
            field=settings.name("high_freq_factor"),
            value=high,
            remedy=INTACT,
        )
    return low, high


def _yarn(settings: Facts, facts: Facts) -> YarnScaling:
    factor = settings.positive("factor")
    original = settings.integer(
        "original_max_position_embeddings", facts.integer("max_position_embeddings")
    )
    magnitude = None
    if "attention_factor" in settings:
        magnitude = settings.positive("attention_factor")
    elif "mscale" in settings and "mscale_all_dim" in settings:
        magnitude = _yarn_magnitude(factor, settings.positive("mscale")) / _yarn_magnitude(
            factor, settings.positive("mscale_all_dim")
        )
    return YarnScaling(
        factor,
        original,
        settings.positive("beta_fast", 32.0),
        settings.positive("beta_slow", 1.0),
        magnitude,
        settings.flag("truncate", True),
    )


def _yarn_magnitude(factor: float, scale: float) -> float:
    return 0.1 * scale * math.log(factor) + 1.0 if factor > 1 else 1.0


def _unsupported(field: str, value: str) -> SourceError:
    return SourceError(
        "unsupported rotary scaling",
        field=field,
        value=value,
        remedy="supported: default, dynamic, linear, llama3, yarn",
    )
