"""The checkpoint with all its values in float32, for peers and oracles that read no GGUF.

Importing `transformers` takes seconds, so nothing here is imported before it is needed.
"""

import os
from pathlib import Path
from typing import Any

from benchmarks.places import PEERS

os.environ.setdefault("TQDM_DISABLE", "1")  # read when its importers are imported, below


def reference_model(path: Path) -> Any:
    """The model in `transformers`, every quantised value restored exactly to float32."""
    import torch
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32, attn_implementation="eager"
    )
    return model.eval()


def dequantised(path: Path) -> Path:
    """A Hugging Face folder with the same values and tokenizer."""
    folder = PEERS / "models" / path.stem
    if not (folder / "config.json").exists():
        from transformers import AutoTokenizer

        AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name).save_pretrained(folder)
        reference_model(path).save_pretrained(folder)
    return folder
