"""The llama family's configuration, read from either dialect.

Llama, Mistral, Qwen2 and Qwen3 are one network: they differ in biases, query and key norms, and
in how GGUF files order the rotary pairs.
"""

from collections.abc import Callable

from helios.errors import SourceError
from helios.ignition.recipes.reading import (
    INTACT,
    check_heads,
    check_value_length,
    layer_count,
    layer_windows,
    refuse_present,
    vocabulary_rows,
)
from helios.ignition.recipes.rope import Scaling
from helios.ignition.recipes.rope_config import gguf_scaling, huggingface_rope
from helios.ignition.sources.source import Dialect, Source
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class Variation:
    """What tells one architecture of the family from another.

    `projection_bias` True requires biases of query, key and value; None takes them where the
    checkpoint has them.
    """

    interleaved: bool = False
    projection_bias: bool | None = None
    head_norms: bool = False


# GGUF converters permute llama's query and key rows, so that rotary pairs lie side by side.
VARIATIONS = {
    (Dialect.GGUF, "llama"): Variation(interleaved=True),
    (Dialect.GGUF, "qwen2"): Variation(projection_bias=True),
    (Dialect.GGUF, "qwen3"): Variation(head_norms=True),
    (Dialect.HUGGINGFACE, "llama"): Variation(),
    (Dialect.HUGGINGFACE, "mistral"): Variation(),
    (Dialect.HUGGINGFACE, "qwen2"): Variation(projection_bias=True),
    (Dialect.HUGGINGFACE, "qwen3"): Variation(head_norms=True),
}


@dataclass(frozen=True, slots=True)
class LlamaConfig:
    """Everything the forward pass depends on. `windows` has one entry per layer, 0 for none."""

    variation: Variation
    width: int
    heads: int
    key_heads: int
    head_dim: int
    inner: int
    epsilon: float
    vocabulary: int
    context: int
    rope_base: float
    rope_dims: int
    scaling: Scaling
    windows: tuple[int, ...]

    @property
    def layers(self) -> int:
        """Number of layers."""
        return len(self.windows)


def read_llama_config(source: Source) -> LlamaConfig:
    """The configuration of a checkpoint; raises `SourceError` for what the family can't do."""
    readers: dict[Dialect, Callable[[Source, Variation], LlamaConfig]] = {
        Dialect.GGUF: _read_gguf,
        Dialect.HUGGINGFACE: _read_huggingface,
    }
    config = readers[source.dialect](source, VARIATIONS[source.dialect, source.architecture])
    check_heads(source, config.heads, config.key_heads, config.head_dim)
    if config.rope_dims % 2 or config.rope_dims > config.head_dim:
        raise SourceError(
            "rotary dimensions must be even and fit a head",
            field=f"{source.architecture} rotary dimensions",
            value=config.rope_dims,
            remedy=INTACT,
        )
    return config


def _read_gguf(source: Source, variation: Variation) -> LlamaConfig:
    facts = source.config
    refuse_present(facts, "expert_count", "mixtures of experts")
    width, heads = facts.integer("embedding_length"), facts.integer("attention.head_count")
    head_dim = facts.integer("attention.key_length", width // heads)
    check_value_length(facts, head_dim)
    window = facts.whole("attention.sliding_window", 0)
    return LlamaConfig(
        variation=variation,
        width=width,
        heads=heads,
        key_heads=facts.integer("attention.head_count_kv", heads),
        head_dim=head_dim,
        inner=facts.integer("feed_forward_length"),
        epsilon=facts.positive("attention.layer_norm_rms_epsilon"),
        vocabulary=vocabulary_rows(source, "token_embd.weight"),
        context=facts.integer("context_length"),
        rope_base=facts.positive("rope.freq_base", 10000.0),
        rope_dims=facts.integer("rope.dimension_count", head_dim),
        scaling=gguf_scaling(facts),
        windows=(window,) * layer_count(source, "block_count"),
    )


def _read_huggingface(source: Source, variation: Variation) -> LlamaConfig:
    facts = source.config
    activation = facts.text("hidden_act", "silu")
    if activation != "silu":
        raise SourceError(
            "unsupported activation",
            field="hidden_act",
            value=activation,
            remedy="the llama family uses silu",
        )
    heads = facts.integer("num_attention_heads")
    head_dim = facts.integer("head_dim", facts.integer("hidden_size") // heads)
    rope = huggingface_rope(facts)
    return LlamaConfig(
        variation=variation,
        width=facts.integer("hidden_size"),
        heads=heads,
        key_heads=facts.integer("num_key_value_heads", heads),
        head_dim=head_dim,
        inner=facts.integer("intermediate_size"),
        epsilon=facts.positive("rms_norm_eps"),
        vocabulary=vocabulary_rows(source, "model.embed_tokens.weight"),
        context=facts.integer("max_position_embeddings"),
        rope_base=rope.base,
        rope_dims=int(head_dim * rope.partial),
        scaling=rope.scaling,
        windows=_huggingface_windows(source),
    )


def _huggingface_windows(source: Source) -> tuple[int, ...]:
    """Mistral slides wherever a window is stated, Qwen only where it is switched on."""
    facts, layers = source.config, layer_count(source, "num_hidden_layers")
    switched_on = facts.flag("use_sliding_window", source.architecture == "mistral")
    window = facts.integer("sliding_window") if "sliding_window" in facts and switched_on else 0
    if source.architecture == "llama" or not window:
        return (0,) * layers
    if "layer_types" in facts:
        return layer_windows(facts, layers, window)
    first = facts.whole("max_window_layers", 0)
    return tuple(window if layer >= first else 0 for layer in range(layers))
