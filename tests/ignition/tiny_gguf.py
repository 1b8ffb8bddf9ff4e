"""Small GGUF files, written by the `gguf` package."""

from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np
from random_blocks import stored

WIDTH, HEADS, KEY_HEADS, INNER, LAYERS = 64, 4, 2, 96, 2
CONTROL = ("<|end|>", "<|start|>")


def byte_tokens() -> list[str]:
    """The alphabet of byte-level vocabularies."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [0x100 + i for i in range(256 - len(printable))]
    return [chr(c) for c in (*printable, *rest)]


TOKENS = [*CONTROL, *byte_tokens(), "Ġt", "he", "Ġthe"]
MERGES = ["Ġ t", "h e", "Ġt he"]
TEMPLATE = (
    "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)

METADATA: Mapping[str, object] = {
    "llama.block_count": LAYERS,
    "llama.context_length": 128,
    "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": INNER,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": KEY_HEADS,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 10000.0,
    "general.name": "Tiny",
    "general.license": "apache-2.0",
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.token_type": [3] * len(CONTROL) + [1] * (len(TOKENS) - len(CONTROL)),
    "tokenizer.ggml.merges": MERGES,
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 0,
    "tokenizer.ggml.add_bos_token": False,
    "tokenizer.chat_template": TEMPLATE,
}


def tensors(width: int = WIDTH, inner: int = INNER) -> dict[str, np.ndarray]:
    """The float32 tensors of a small llama, by GGUF name."""
    random = np.random.default_rng(3)
    keys = width // HEADS * KEY_HEADS
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (len(TOKENS), width),
        "output_norm.weight": (width,),
    }
    for layer in range(LAYERS):
        shapes |= {
            f"blk.{layer}.{name}.weight": shape
            for name, shape in {
                "attn_norm": (width,),
                "attn_q": (width, width),
                "attn_k": (keys, width),
                "attn_v": (keys, width),
                "attn_output": (width, width),
                "ffn_norm": (width,),
                "ffn_gate": (inner, width),
                "ffn_up": (inner, width),
                "ffn_down": (width, inner),
            }.items()
        }
    return {
        name: (random.standard_normal(shape) * 0.2 + (len(shape) == 1)).astype(np.float32)
        for name, shape in shapes.items()
    }


def write_gguf(
    path: Path,
    metadata: Mapping[str, object] = METADATA,
    weights: Mapping[str, np.ndarray] | None = None,
    storage: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.Q8_0,
    architecture: str = "llama",
    split: int = 0,
) -> Path:
    """Write a model whose matrices have that storage and whose vectors are float32.

    With `split`, several files of so many tensors at most; the path of the first is returned.
    """
    writer = gguf.GGUFWriter(path, architecture, split_max_tensors=split)
    for key, value in metadata.items():
        _add(writer, key, value)
    for name, values in (tensors() if weights is None else weights).items():
        kind = storage if values.ndim == 2 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(name, stored(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return min(path.parent.glob(f"{path.stem}-00001-of-*.gguf")) if split else path


def _add(writer: gguf.GGUFWriter, key: str, value: object) -> None:
    match value:
        case bool():
            writer.add_bool(key, value)
        case int():
            writer.add_uint32(key, value)
        case float():
            writer.add_float32(key, value)
        case str():
            writer.add_string(key, value)
        case _:
            writer.add_array(key, value)
