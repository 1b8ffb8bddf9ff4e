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
from helios.ignition.recipes.names import LAYER, TensorNames, projection_shapes
from helios.ignition.recipes.recipe import Batch, LayerHistory, ModelFacts, Planes, TensorSet
from helios.ignition.recipes.rope import rope_frequencies
from helios.ignition.sources.source import Dialect, Source, SourceTensor, computed_tensor
from helios.program.builder import ProgramBuilder
from helios.program.ir import Role, Value

_ROPE = "rope.frequencies"
_ROPE_FACTORS = "rope_freqs.weight"  # GGUF's per-pair divisors state Llama 3's scaling


class LlamaRecipe:
    """One checkpoint of the family."""

    def __init__(self, source: Source) -> None:
        config = read_llama_config(source)
        self._config = config
        self._tensors = TensorSet(source.tensors)
        self._names = TensorNames(source.dialect, LAYER)
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
        # The first layer and the last two bear it worst; down does, but for the middle half, too.
        coarse = 0 < layer < config.layers - 2
        coarse_down = coarse and config.layers <= 4 * layer + 2 < 3 * config.layers
        normed = rms_norm(builder, hidden, f"{name}.attention.norm", config.width, config.epsilon)
        shape = self._attention_shape(layer)
        mixed = attention(builder, normed, name, shape, batch, planes, config.epsilon, coarse)
        hidden = builder.value("add", hidden, mixed)
        normed = rms_norm(
            builder, hidden, f"{name}.feed_forward.norm", config.width, config.epsilon
        )
        inner = feed_forward(
            builder, normed, name, config.width, config.inner, "silu", coarse, coarse_down
        )
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
        stored = self._names.model("output") in self._tensors
        if source.dialect is Dialect.GGUF:
            return not stored
        return source.config.flag("tie_word_embeddings", not stored)

    def _has_bias(self, name: str, required: bool | None) -> bool:
        """Whether projections of that name have a bias; layer 0 stands for all."""
        return self._names.layer(0, name, "bias") in self._tensors if required is None else required

    def _take_model(self) -> None:
        config, names = self._config, self._names
        table = (config.vocabulary, config.width)
        self._tensors.take("embedding", names.model("embedding"), table)
        self._tensors.take("norm", names.model("norm"), (config.width,))
        if not self._tied:
            self._tensors.take("output", names.model("output"), table)
        frequencies, self._magnitude = rope_frequencies(
            config.rope_base, config.rope_dims, config.scaling
        )
        if _ROPE_FACTORS in self._tensors:
            factors = self._tensors.values(_ROPE_FACTORS, (config.rope_dims // 2,))
            with np.errstate(all="ignore"):  # export refuses what is not finite, by name
                frequencies = frequencies / factors
        self._tensors.add(_ROPE, computed_tensor(_ROPE, frequencies.astype(np.float32)))

    def _take_layer(self, layer: int) -> None:
        config = self._config
        queries, keys = config.heads * config.head_dim, config.key_heads * config.head_dim
        norms = {"attention.norm": config.width, "feed_forward.norm": config.width}
        if config.variation.head_norms:
            norms |= {f"attention.{h}_norm": config.head_dim for h in ("query", "key")}
        for name, width in norms.items():
            self._take(layer, name, "weight", (width,))
        biased = dict.fromkeys(
            ("attention.query", "attention.key", "attention.value"), self._projection_bias
        )
        biased["attention.output"] = self._output_bias
        shapes = projection_shapes(config.width, queries, keys, config.inner)
        for name, shape in shapes.items():
            self._take(layer, name, "weight", shape)
            if biased.get(name):
                self._take(layer, name, "bias", shape[:1])

    def _take(self, layer: int, name: str, part: str, shape: tuple[int, ...]) -> None:
        full = f"layers.{layer}.{name}" + (".bias" if part == "bias" else "")
        self._tensors.take(full, self._names.layer(layer, name, part), shape)

    def _close(self) -> Mapping[str, SourceTensor]:
        if self._tied:
            self._tensors.ignore(self._names.model("output"))
        self._tensors.ignore("rotary_emb.inv_freq")
        return self._tensors.close()
