"""Gemma 2 and Gemma 3 (arXiv:2408.00118, arXiv:2503.19786).

Layers of grouped attention, most of them over a sliding window, and a tanh-gelu-gated
feed-forward, each normed before and after; the embedding is scaled, and is the head as well.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from helios.ignition.recipes.blocks import AttentionShape, attention, feed_forward, rms_norm
from helios.ignition.recipes.gemma_config import Rotary, read_gemma_config
from helios.ignition.recipes.names import LAYER, TensorNames, projection_shapes, spelled
from helios.ignition.recipes.recipe import Batch, LayerHistory, ModelFacts, Planes, TensorSet
from helios.ignition.recipes.rope import rope_frequencies
from helios.ignition.sources.source import Dialect, Source, SourceTensor, computed_tensor
from helios.program.builder import ProgramBuilder
from helios.program.ir import Role, Value

_NAMES = {
    **LAYER,
    "attention.post_norm": spelled("post_attention_norm", "post_attention_layernorm"),
    "feed_forward.norm": spelled("ffn_norm", "pre_feedforward_layernorm"),
    "feed_forward.post_norm": spelled("post_ffw_norm", "post_feedforward_layernorm"),
}
_FULL_ROPE, _SLIDING_ROPE = "rope.frequencies", "rope.sliding_frequencies"


class GemmaRecipe:
    """One checkpoint of either generation."""

    def __init__(self, source: Source) -> None:
        config = self._config = read_gemma_config(source)
        self._tensors = TensorSet(source.tensors)
        self._names = TensorNames(source.dialect, _NAMES)
        self._head = self._head_weight()
        self._magnitudes: dict[str, float] = {}
        self._take_model()
        for layer in range(len(config.windows)):
            self._take_layer(layer)
        self._tensors.ignore("lm_head.weight", "rotary_emb.inv_freq")
        self.tensors: Mapping[str, SourceTensor] = self._tensors.close()
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
        """Scaled embedding and all layers."""
        config = self._config
        table = builder.weight("embedding", (config.vocabulary, config.width))
        hidden = builder.value(
            "embedding", batch.tokens, table, name="hidden", scale=math.sqrt(config.width)
        )
        for layer, layer_planes in enumerate(planes):
            hidden = self._layer(builder, hidden, layer, batch, layer_planes)
        return hidden

    def head(self, builder: ProgramBuilder, hidden: Value) -> Value:
        """Final norm and output projection, capped where that is asked."""
        config = self._config
        normed = rms_norm(builder, hidden, "norm", config.width, config.epsilon)
        table = builder.weight(self._head, (config.vocabulary, config.width))
        if not config.logit_cap:
            return builder.value("linear", normed, table, name="logits", role=Role.LOGITS)
        scores = builder.value("linear", normed, table)
        return builder.value(
            "softcap", scores, name="logits", role=Role.LOGITS, cap=config.logit_cap
        )

    def _layer(
        self, builder: ProgramBuilder, hidden: Value, layer: int, batch: Batch, planes: Planes
    ) -> Value:
        config, name = self._config, f"layers.{layer}"

        def norm(x: Value, which: str) -> Value:
            return rms_norm(builder, x, f"{name}.{which}", config.width, config.epsilon)

        shape = self._attention_shape(layer)
        normed = norm(hidden, "attention.norm")
        mixed = attention(builder, normed, name, shape, batch, planes, config.epsilon)
        hidden = builder.value("add", hidden, norm(mixed, "attention.post_norm"))
        inner = feed_forward(
            builder,
            norm(hidden, "feed_forward.norm"),
            name,
            config.width,
            config.inner,
            "gelu_tanh",
            coarse=2 * layer >= len(config.windows),  # those before bear it worse
        )
        return builder.value("add", hidden, norm(inner, "feed_forward.post_norm"))

    def _attention_shape(self, layer: int) -> AttentionShape:
        config, window = self._config, self._config.windows[layer]
        rope = _SLIDING_ROPE if window else _FULL_ROPE
        return AttentionShape(
            width=config.width,
            heads=config.heads,
            key_heads=config.key_heads,
            head_dim=config.head_dim,
            scale=config.score_scale,
            rope_pairs=config.head_dim // 2,
            rope_weight=rope,
            magnitude=self._magnitudes[rope],
            window=window,
            softcap=config.score_cap,
            head_norms=config.head_norms,
        )

    # ---- tensors ------------------------------------------------------------------------

    def _head_weight(self) -> str:
        """The embedding table, unless a GGUF file stores it a second time, in another type."""
        stored = self._names.model("output") in self._tensors
        return "output" if stored and self._names.dialect is Dialect.GGUF else "embedding"

    def _take_model(self) -> None:
        config = self._config
        shape = (config.vocabulary, config.width)
        for name in dict.fromkeys(("embedding", self._head)):
            self._tensors.take(name, self._names.model(name), shape)
        self._take_norm("norm", self._names.model("norm"), config.width)
        if 0 in config.windows:
            self._add_rope(_FULL_ROPE, config.full)
        if any(config.windows):
            self._add_rope(_SLIDING_ROPE, config.sliding)

    def _add_rope(self, name: str, rotary: Rotary) -> None:
        frequencies, self._magnitudes[name] = rope_frequencies(
            rotary.base, self._config.head_dim, rotary.scaling
        )
        self._tensors.add(name, computed_tensor(name, frequencies.astype(np.float32)))

    def _take_layer(self, layer: int) -> None:
        config = self._config
        norms = {
            f"{part}.{which}": config.width
            for part in ("attention", "feed_forward")
            for which in ("norm", "post_norm")
        }
        if config.head_norms:
            norms |= {f"attention.{h}_norm": config.head_dim for h in ("query", "key")}
        for name, width in norms.items():
            self._take_norm(f"layers.{layer}.{name}", self._names.layer(layer, name), width)
        queries, keys = config.heads * config.head_dim, config.key_heads * config.head_dim
        shapes = projection_shapes(config.width, queries, keys, config.inner)
        for name, shape in shapes.items():
            self._tensors.take(f"layers.{layer}.{name}", self._names.layer(layer, name), shape)

    def _take_norm(self, name: str, stored_name: str, width: int) -> None:
        """Norms multiply by 1 + w; GGUF files store that sum, the others w."""
        if self._names.dialect is Dialect.GGUF:
            self._tensors.take(name, stored_name, (width,))
        else:
            values = self._tensors.values(stored_name, (width,))
            self._tensors.add(name, computed_tensor(stored_name, values + np.float32(1)))
