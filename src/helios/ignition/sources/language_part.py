"""Checkpoints of several modalities, of which the language model is prepared.

Their configuration nests that of the language model, and leaves out what equals the defaults of
its class in transformers; their tensors carry a prefix that tells the parts apart.
"""

from collections.abc import Mapping

from helios.ignition.sources.facts import Facts

_GROUP, _TIED = "text_config", "tie_word_embeddings"
# Prefixes of the language model, by either generation of transformers.
_PREFIXES = {
    "language_model.model.": "model.",
    "language_model.lm_head.": "lm_head.",
    "model.language_model.": "model.",
}
_OTHER_PARTS = ("vision_tower.", "multi_modal_projector.", "audio_tower.", "vision_model.")
DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "gemma3_text": {
        "vocab_size": 262208,
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-6,
        "query_pre_attn_scalar": 256,
        "sliding_window": 4096,
    },
    "mistral": {
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-6,
        "sliding_window": 4096,
    },
    "llama": {
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-6,
    },
}


def language_config(config: Facts) -> Facts:
    """The language model's own settings; those of the whole where it is nothing else."""
    if _GROUP not in config:
        return config
    nested = config.group(_GROUP)
    # The head belongs to the whole model, which therefore says whether it is tied.
    tied = {_TIED: config.flag(_TIED)} if _TIED in config else {}
    return nested.over(DEFAULTS.get(nested.text("model_type"), {})).under(tied)


def language_name(stored: str) -> str | None:
    """The name of a tensor as a language model by itself has it; None if it is another part's."""
    for prefix, plain in _PREFIXES.items():
        if stored.startswith(prefix):
            return plain + stored.removeprefix(prefix)
    other = stored.removeprefix("model.").startswith(_OTHER_PARTS)
    return None if other else stored
