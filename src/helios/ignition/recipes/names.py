"""Where decoders keep their tensors, in each dialect's words.

Keys are the names that programs use for weights. A recipe whose architecture names some of them
otherwise gives its own table.
"""

from collections.abc import Mapping

from helios.ignition.sources.source import Dialect
from helios.records import dataclass

Spellings = Mapping[str, Mapping[Dialect, str]]


def spelled(gguf: str, huggingface: str) -> Mapping[Dialect, str]:
    """One tensor's name in both dialects, without the ending `.weight` or `.bias`."""
    return {Dialect.GGUF: gguf, Dialect.HUGGINGFACE: huggingface}


MODEL: Spellings = {
    "embedding": spelled("token_embd", "model.embed_tokens"),
    "norm": spelled("output_norm", "model.norm"),
    "output": spelled("output", "lm_head"),
}
LAYER: Spellings = {
    "attention.norm": spelled("attn_norm", "input_layernorm"),
    "attention.query": spelled("attn_q", "self_attn.q_proj"),
    "attention.key": spelled("attn_k", "self_attn.k_proj"),
    "attention.value": spelled("attn_v", "self_attn.v_proj"),
    "attention.query_norm": spelled("attn_q_norm", "self_attn.q_norm"),
    "attention.key_norm": spelled("attn_k_norm", "self_attn.k_norm"),
    "attention.output": spelled("attn_output", "self_attn.o_proj"),
    "feed_forward.norm": spelled("ffn_norm", "post_attention_layernorm"),
    "feed_forward.gate": spelled("ffn_gate", "mlp.gate_proj"),
    "feed_forward.up": spelled("ffn_up", "mlp.up_proj"),
    "feed_forward.down": spelled("ffn_down", "mlp.down_proj"),
}
_LAYER_PREFIX = spelled("blk.{}.", "model.layers.{}.")


@dataclass(frozen=True, slots=True)
class TensorNames:
    """Stored tensor names of one checkpoint."""

    dialect: Dialect
    layer_spellings: Spellings

    def model(self, name: str) -> str:
        """The stored name of a weight that belongs to no layer."""
        return f"{MODEL[name][self.dialect]}.weight"

    def layer(self, layer: int, name: str, part: str = "weight") -> str:
        """The stored name of one layer's weight or bias."""
        prefix = _LAYER_PREFIX[self.dialect].format(layer)
        return f"{prefix}{self.layer_spellings[name][self.dialect]}.{part}"


def projection_shapes(
    width: int, queries: int, keys: int, inner: int
) -> Mapping[str, tuple[int, ...]]:
    """Shapes of the matrices of a layer with grouped attention and a gated feed-forward.

    `queries` and `keys` count the elements of all query and all key heads of a token.
    """
    return {
        "attention.query": (queries, width),
        "attention.key": (keys, width),
        "attention.value": (keys, width),
        "attention.output": (width, queries),
        "feed_forward.gate": (inner, width),
        "feed_forward.up": (inner, width),
        "feed_forward.down": (width, inner),
    }
