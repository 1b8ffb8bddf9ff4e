"""The checkpoint with all its values in float32, in a library that nobody here wrote.

Importing `transformers` takes seconds, so nothing here is imported before it is needed.
"""

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("TQDM_DISABLE", "1")  # read when its importers are imported, below


def reference_model(path: Path) -> Any:
    """The model in `transformers`, every quantised value restored exactly to float32."""
    import torch
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32, attn_implementation="eager"
    )
    return model.eval()
