"""The configuration of Gemma 2 and Gemma 3, read from either dialect."""

from helios.errors import SourceError
from helios.ignition.recipes.reading import (
    check_heads,
    check_value_length,
    layer_count,
    layer_windows,
    vocabulary_rows,
)
from helios.ignition.recipes.rope import Scaling
from helios.ignition.recipes.rope_config import gguf_scaling, huggingface_scaling
from helios.ignition.sources.facts import Facts
from helios.ignition.sources.source import Dialect, Source
from helios.records import dataclass

# GGUF files state neither where full attention falls nor the base that sliding layers turn by.
_LOCAL_BASE = 10000.0
# The one size of each generation that scales scores by the width per head, known by its layers.
_WIDE_SCALE_LAYERS = {"gemma2": 46, "gemma3": 62}


@dataclass(frozen=True, slots=True)
class Variation:
    """What tells one generation from another: every `period`-th layer attends to everything."""

    period: int
    head_norms: bool


VARIATIONS = {
    (Dialect.GGUF, "gemma2"): Variation(period=2, head_norms=False),
    (Dialect.GGUF, "gemma3"): Variation(period=6, head_norms=True),
    (Dialect.HUGGINGFACE, "gemma2"): Variation(period=2, head_norms=False),
    (Dialect.HUGGINGFACE, "gemma3_text"): Variation(period=6, head_norms=True),
}


@dataclass(frozen=True, slots=True)
class Rotary:
    """Base and scaling of one kind of layer."""

    base: float
    scaling: Scaling = None


@dataclass(frozen=True, slots=True)
class GemmaConfig:
    """Everything the forward pass depends on. `windows` has one entry per layer, 0 for none."""

    width: int
    heads: int
    key_heads: int
    head_dim: int
    inner: int
    epsilon: float
    vocabulary: int
    context: int
    windows: tuple[int, ...]
    full: Rotary
    sliding: Rotary
    score_scale: float
    score_cap: float
    logit_cap: float
    head_norms: bool


def read_gemma_config(source: Source) -> GemmaConfig:
    """The configuration of a checkpoint; raises `SourceError` for what the family can't do."""
    variation = VARIATIONS[source.dialect, source.architecture]
    read = _read_gguf if source.dialect is Dialect.GGUF else _read_huggingface
    config = read(source, variation)
    check_heads(source, config.heads, config.key_heads, config.head_dim)
    return config


def _read_gguf(source: Source, variation: Variation) -> GemmaConfig:
    facts = source.config
    layers = layer_count(source, "block_count")
    width, heads = facts.integer("embedding_length"), facts.integer("attention.head_count")
    head_dim = facts.integer("attention.key_length")
    check_value_length(facts, head_dim)
    window = facts.whole("attention.sliding_window", 0)
    full = Rotary(facts.positive("rope.freq_base", _LOCAL_BASE), gguf_scaling(facts))
    wide = layers == _WIDE_SCALE_LAYERS[source.architecture]
    return GemmaConfig(
        width=width,
        heads=heads,
        key_heads=facts.integer("attention.head_count_kv", heads),
        head_dim=head_dim,
        inner=facts.integer("feed_forward_length"),
        epsilon=facts.positive("attention.layer_norm_rms_epsilon"),
        vocabulary=vocabulary_rows(source, "token_embd.weight"),
        context=facts.integer("context_length"),
        windows=_periodic(layers, variation.period, window),
        full=full,
        sliding=Rotary(facts.positive("rope.freq_base_swa", _LOCAL_BASE))
        if variation.head_norms
        else full,
        score_scale=(width // heads if wide else head_dim) ** -0.5,
        score_cap=_cap(facts, "attn_logit_softcapping"),
        logit_cap=_cap(facts, "final_logit_softcapping"),
        head_norms=variation.head_norms,
    )


def _read_huggingface(source: Source, variation: Variation) -> GemmaConfig:
    facts = source.config
    _check_supported(facts)
    layers = layer_count(source, "num_hidden_layers")
    heads = facts.integer("num_attention_heads")
    window = facts.integer("sliding_window") if "sliding_window" in facts else 0
    full, sliding = _rotaries(facts, variation)
    return GemmaConfig(
        width=facts.integer("hidden_size"),
        heads=heads,
        key_heads=facts.integer("num_key_value_heads", heads),
        head_dim=facts.integer("head_dim"),
        inner=facts.integer("intermediate_size"),
        epsilon=facts.positive("rms_norm_eps"),
        vocabulary=vocabulary_rows(source, "model.embed_tokens.weight"),
        context=facts.integer("max_position_embeddings"),
        windows=_huggingface_windows(facts, layers, variation, window),
        full=full,
        sliding=sliding,
        score_scale=facts.positive("query_pre_attn_scalar") ** -0.5,
        score_cap=_cap(facts, "attn_logit_softcapping"),
        logit_cap=_cap(facts, "final_logit_softcapping"),
        head_norms=variation.head_norms,
    )


def _check_supported(facts: Facts) -> None:
    activation = facts.text("hidden_activation", facts.text("hidden_act", "gelu_pytorch_tanh"))
    if activation != "gelu_pytorch_tanh":
        raise SourceError(
            "unsupported activation",
            field="hidden_activation",
            value=activation,
            remedy="Gemma uses gelu_pytorch_tanh",
        )
    if facts.flag("use_bidirectional_attention", False):
        raise SourceError(
            "attention must be causal",
            field="use_bidirectional_attention",
            value=True,
            remedy="this checkpoint does not generate text",
        )


def _rotaries(facts: Facts, variation: Variation) -> tuple[Rotary, Rotary]:
    """Full and sliding layers' settings, in the spelling of either transformers generation."""
    settings = facts.group("rope_parameters")
    if "full_attention" in settings:
        full, sliding = (settings.group(f"{kind}_attention") for kind in ("full", "sliding"))
        return _rotary(full, facts), _rotary(sliding, facts)
    if settings.keys():
        shared = _rotary(settings, facts)
        return shared, shared
    scaling = huggingface_scaling(facts.group("rope_scaling"), facts)
    if not variation.head_norms:
        shared = Rotary(facts.positive("rope_theta", _LOCAL_BASE), scaling)
        return shared, shared
    full_base = facts.positive("rope_theta", 1_000_000.0)
    return Rotary(full_base, scaling), Rotary(facts.positive("rope_local_base_freq", _LOCAL_BASE))


def _rotary(settings: Facts, facts: Facts) -> Rotary:
    return Rotary(settings.positive("rope_theta"), huggingface_scaling(settings, facts))


def _huggingface_windows(
    facts: Facts, layers: int, variation: Variation, window: int
) -> tuple[int, ...]:
    if "layer_types" in facts:
        return layer_windows(facts, layers, window)
    period = facts.integer("sliding_window_pattern", variation.period)
    return _periodic(layers, period, window)


def _periodic(layers: int, period: int, window: int) -> tuple[int, ...]:
    return tuple(0 if (layer + 1) % period == 0 else window for layer in range(layers))


def _cap(facts: Facts, key: str) -> float:
    return facts.positive(key) if key in facts else 0.0
