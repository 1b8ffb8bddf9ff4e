"""Rotary settings as both dialects state them."""

import math
from dataclasses import dataclass

from helios.errors import SourceError
from helios.ignition.recipes.rope import LinearScaling, Llama3Scaling, Scaling, YarnScaling
from helios.ignition.sources.facts import Facts


@dataclass(frozen=True, slots=True)
class RopeSettings:
    """Base, scaling, and the part of a head that turns."""

    base: float
    scaling: Scaling
    partial: float = 1.0


def gguf_scaling(facts: Facts) -> Scaling:
    """Scaling keys of a GGUF file. Llama 3's piecewise scaling is a tensor there, not a key."""
    kind = facts.text("rope.scaling.type", "none")
    if kind == "none":
        return None
    factor = facts.real("rope.scaling.factor", 1.0)
    if kind == "linear":
        return LinearScaling(factor)
    if kind == "yarn":
        original = facts.integer("rope.scaling.original_context_length")
        extra = facts.real("rope.scaling.attn_factor", 1.0)
        return YarnScaling(
            factor,
            original,
            facts.real("rope.scaling.yarn_beta_fast", 32.0),
            facts.real("rope.scaling.yarn_beta_slow", 1.0),
            extra * (0.1 * math.log(factor) + 1.0),
        )
    raise _unsupported(facts.name("rope.scaling.type"), kind)


def huggingface_rope(facts: Facts) -> RopeSettings:
    """Rotary settings of a `config.json`, in the spelling of either transformers generation."""
    settings = facts.group("rope_parameters" if "rope_parameters" in facts else "rope_scaling")
    base = settings.real("rope_theta", facts.real("rope_theta", 10000.0))
    partial = settings.real("partial_rotary_factor", facts.real("partial_rotary_factor", 1.0))
    return RopeSettings(base, huggingface_scaling(settings, facts), partial)


def huggingface_scaling(settings: Facts, facts: Facts) -> Scaling:
    """The scaling that one group of rotary settings asks for."""
    kind = settings.text("rope_type", settings.text("type", "default"))
    match kind:
        case "default":
            return None
        case "linear":
            return LinearScaling(settings.real("factor"))
        case "llama3":
            return Llama3Scaling(
                settings.real("factor"),
                settings.real("low_freq_factor"),
                settings.real("high_freq_factor"),
                settings.integer("original_max_position_embeddings"),
            )
        case "yarn":
            return _yarn(settings, facts)
        case _:
            raise _unsupported(settings.name("rope_type"), kind)


def _yarn(settings: Facts, facts: Facts) -> YarnScaling:
    factor = settings.real("factor")
    original = settings.integer(
        "original_max_position_embeddings", facts.integer("max_position_embeddings")
    )
    magnitude = None
    if "attention_factor" in settings:
        magnitude = settings.real("attention_factor")
    elif "mscale" in settings and "mscale_all_dim" in settings:
        magnitude = _yarn_magnitude(factor, settings.real("mscale")) / _yarn_magnitude(
            factor, settings.real("mscale_all_dim")
        )
    return YarnScaling(
        factor,
        original,
        settings.real("beta_fast", 32.0),
        settings.real("beta_slow", 1.0),
        magnitude,
        settings.flag("truncate", True),
    )


def _yarn_magnitude(factor: float, scale: float) -> float:
    return 0.1 * scale * math.log(factor) + 1.0 if factor > 1 else 1.0


def _unsupported(field: str, kind: str) -> SourceError:
    return SourceError(
        "unsupported rotary scaling",
        field=field,
        value=kind,
        remedy="supported: default, linear, llama3, yarn",
    )
