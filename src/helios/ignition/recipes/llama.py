"""The llama family: Llama, Mistral, Qwen2, Qwen3 (arXiv:2302.13971 and successors).

Pre-norm layers of grouped attention with rotary positions and a silu-gated feed-forward.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from helios.ignition.recipes.blocks import (
    AttentionShape,
    attention,
    feed_forward,
    rms_norm,
)
from helios.ignition.recipes.llama_config import read_llama_config
from helios.ignition.recipes.recipe import Batch, LayerHistory, ModelFacts, Planes, TensorSet
from helios.ignition.recipes.rope import rope_frequencies
from helios.ignition.sources.source import Dialect, Source, SourceTensor, computed_tensor
from helios.program.builder import ProgramBuilder
from helios.program.ir import Role, Value

_ROPE = "rope.frequencies"

# Weight name of the programs → tensor name of each dialect.
_MODEL_NAMES = {
    "embedding": {"gguf": "token_embd", "huggingface": "model.embed_tokens"},
    "norm": {"gguf": "output_norm", "huggingface": "model.norm"},
    "output": {"gguf": "output", "huggingface": "lm_head"},
}
_LAYER_NAMES = {
    "attention.norm": {"gguf": "attn_norm", "huggingface": "input_layernorm"},
    "attention.query": {"gguf": "attn_q", "huggingface": "self_attn.q_proj"},
    "attention.key": {"gguf": "attn_k", "huggingface": "self_attn.k_proj"},
    "attention.value": {"gguf": "attn_v", "huggingface": "self_attn.v_proj"},
    "attention.query_norm": {"gguf": "attn_q_norm", "huggingface": "self_attn.q_norm"},
    "attention.key_norm": {"gguf": "attn_k_norm", "huggingface": "self_attn.k_norm"},
    "attention.output": {"gguf": "attn_output", "huggingface": "self_attn.o_proj"},
    "feed_forward.norm": {"gguf": "ffn_norm", "huggingface": "post_attention_layernorm"},
    "feed_forward.gate": {"gguf": "ffn_gate", "huggingface": "mlp.gate_proj"},
    "feed_forward.up": {"gguf": "ffn_up", "huggingface": "mlp.up_proj"},
    "feed_forward.down": {"gguf": "ffn_down", "huggingface": "mlp.down_proj"},
}
_LAYER_PREFIX = {"gguf": "blk.{}.", "huggingface": "model.layers.{}."}


class LlamaRecipe:
    """One checkpoint of the family."""

    def __init__(self, source: Source) -> None:
        config = read_llama_config(source)
        self._config = config
        self._tensors = TensorSet(source.tensors)
        self._dialect = source.dialect
        self._tied = self._is_tied(source)
        self._projection_bias = self._has_bias("attention.query", config.variation.projection_bias)
        self._output_bias = self._has_bias("attention.output", None)
        self._magnitude = 1.0
        self._take_model()
        for layer in range(config.layers):
            self._take_layer(layer)
        self.tensors: Mapping[str, SourceTensor] = self._close()
        self.facts = ModelFacts(
            architecture=source.architecture,
            name=source.name,
            vocabulary=config.vocabulary,
            context=config.context,
            histories=tuple(
                LayerHistory(config.key_heads, config.head_dim, window) for window in config.windows
            ),
            defaults=source.sampling,
        )

    # ---- forward pass -------------------------------------------------------------------

    def forward(self, builder: ProgramBuilder, batch: Batch, planes: Sequence[Planes]) -> Value:
        """Embedding and all layers."""
        config = self._config
        table = builder.weight("embedding", (config.vocabulary, config.width))
        hidden = builder.value("embedding", batch.tokens, table, name="hidden")
        for layer in range(config.layers):
            hidden = self._layer(builder, hidden, layer, batch, planes[layer])
        return hidden

    def head(self, builder: ProgramBuilder, hidden: Value) -> Value:
        """Final norm and output projection, which may be the embedding table."""
        config = self._config
        normed = rms_norm(builder, hidden, "norm", config.width, config.epsilon)
        weight = builder.weight(
            "embedding" if self._tied else "output", (config.vocabulary, config.width)
        )
        return builder.value("linear", normed, weight, name="logits", role=Role.LOGITS)

    def _layer(
        self, builder: ProgramBuilder, hidden: Value, layer: int, batch: Batch, planes: Planes
    ) -> Value:
        config, name = self._config, f"layers.{layer}"
        normed = rms_norm(builder, hidden, f"{name}.attention.norm", config.width, config.epsilon)
        shape = self._attention_shape(layer)
        mixed = attention(builder, normed, name, shape, batch, planes, config.epsilon)
        hidden = builder.value("add", hidden, mixed)
        normed = rms_norm(
            builder, hidden, f"{name}.feed_forward.norm", config.width, config.epsilon
        )
        inner = feed_forward(builder, normed, name, config.width, config.inner, "silu")
        return builder.value("add", hidden, inner)

    def _attention_shape(self, layer: int) -> AttentionShape:
        config = self._config
        return AttentionShape(
            width=config.width,
            heads=config.heads,
            key_heads=config.key_heads,
            head_dim=config.head_dim,
            scale=config.head_dim**-0.5,
            rope_pairs=config.rope_dims // 2,
            rope_weight=_ROPE,
            interleaved=config.variation.interleaved,
            magnitude=self._magnitude,
            window=config.windows[layer],
            projection_bias=self._projection_bias,
            output_bias=self._output_bias,
            head_norms=config.variation.head_norms,
        )

    # ---- tensors ------------------------------------------------------------------------

    def _is_tied(self, source: Source) -> bool:
        stored = f"{_MODEL_NAMES['output'][source.dialect]}.weight" in self._tensors
        if source.dialect is Dialect.GGUF:
            return not stored
        return source.config.flag("tie_word_embeddings", not stored)

    def _has_bias(self, name: str, required: bool | None) -> bool:
        """Whether projections of that name have a bias; layer 0 stands for all."""
        return self._stored_name(0, name, "bias") in self._tensors if required is None else required

    def _take_model(self) -> None:
        config = self._config
        names = {name: f"{by[self._dialect]}.weight" for name, by in _MODEL_NAMES.items()}
        table = (config.vocabulary, config.width)
        self._tensors.take("embedding", names["embedding"], table)
        self._tensors.take("norm", names["norm"], (config.width,))
        if not self._tied:
            self._tensors.take("output", names["output"], table)
        frequencies, self._magnitude = rope_frequencies(
            config.rope_base, config.rope_dims, config.scaling
        )
        if "rope_freqs.weight" in self._tensors:
            with np.errstate(all="ignore"):  # export refuses what is not finite, by name
                frequencies = frequencies / self._rope_factors(config.rope_dims // 2)
        self._tensors.add(_ROPE, computed_tensor(_ROPE, frequencies.astype(np.float32)))

    def _rope_factors(self, pairs: int) -> np.ndarray:
        """GGUF's per-pair divisors, which state Llama 3's piecewise scaling."""
        self._tensors.take("rope.factors", "rope_freqs.weight", (pairs,))
        return np.frombuffer(self._tensors.taken.pop("rope.factors").data(), dtype="<f4")

    def _take_layer(self, layer: int) -> None:
        config = self._config
        width, inner = config.width, config.inner
        queries, keys = config.heads * config.head_dim, config.key_heads * config.head_dim
        norms = config.variation.head_norms
        shapes: dict[str, tuple[tuple[int, ...], bool]] = {
            "attention.norm": ((width,), False),
            "attention.query": ((queries, width), self._projection_bias),
            "attention.key": ((keys, width), self._projection_bias),
            "attention.value": ((keys, width), self._projection_bias),
            "attention.output": ((width, queries), self._output_bias),
            "feed_forward.norm": ((width,), False),
            "feed_forward.gate": ((inner, width), False),
            "feed_forward.up": ((inner, width), False),
            "feed_forward.down": ((width, inner), False),
        }
        if norms:
            shapes["attention.query_norm"] = ((config.head_dim,), False)
            shapes["attention.key_norm"] = ((config.head_dim,), False)
        for name, (shape, bias) in shapes.items():
            full = f"layers.{layer}.{name}"
            self._tensors.take(full, self._stored_name(layer, name, "weight"), shape)
            if bias:
                self._tensors.take(
                    f"{full}.bias", self._stored_name(layer, name, "bias"), shape[:1]
                )

    def _stored_name(self, layer: int, name: str, part: str) -> str:
        prefix = _LAYER_PREFIX[self._dialect].format(layer)
        return f"{prefix}{_LAYER_NAMES[name][self._dialect]}.{part}"

    def _close(self) -> Mapping[str, SourceTensor]:
        if self._tied:
            self._tensors.ignore("lm_head.weight")
        self._tensors.ignore("rotary_emb.inv_freq")
        return self._tensors.close()
