"""Valid random tensors of every GGUF type, also of those that nothing in Python quantises to."""

import gguf
import numpy as np

Q = gguf.GGMLQuantizationType

# Byte offsets of a block's half-precision scale, and of its minimum, in ggml's structures.
HALVES = {
    Q.Q2_K: (80, 82),
    Q.Q3_K: (108,),
    Q.Q4_K: (0, 2),
    Q.Q5_K: (0, 2),
    Q.Q6_K: (208,),
    Q.IQ4_NL: (0,),
}


def stored(values: np.ndarray, kind: gguf.GGMLQuantizationType) -> np.ndarray:
    """The values in that type, or random blocks of about their spread where it can't be made."""
    if kind not in HALVES:
        return gguf.quants.quantize(values, kind)
    elements, nbytes = gguf.GGML_QUANT_SIZES[kind]
    rows, width = values.shape
    random = np.random.default_rng(values.size)
    blocks = random.integers(0, 256, (rows * width // elements, nbytes), np.uint8)
    for offset in HALVES[kind]:
        scales = random.uniform(0.5, 1.0, len(blocks)).astype("<f2")
        blocks[:, offset : offset + 2] = scales.view(np.uint8).reshape(-1, 2)
    # Bring what the blocks hold to the spread of the values, by their scales alone.
    spread = values.std() / gguf.quants.dequantize(blocks, kind).std()
    for offset in HALVES[kind]:
        scales = np.ascontiguousarray(blocks[:, offset : offset + 2]).view("<f2")
        blocks[:, offset : offset + 2] = (scales * spread).astype("<f2").view(np.uint8)
    return blocks.reshape(rows, -1)
