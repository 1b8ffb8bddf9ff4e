"""From a Hugging Face folder through a core to greedy text: the tokens of transformers."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from test_recipe_logits import CASES
from tiny_checkpoints import VOCABULARY, save_checkpoint
from transformers import PreTrainedModel

from helios.cli.main import main
from helios.core.reader import authenticate, authorize
from helios.core.trust import TrustStore, local_publisher
from helios.runtime.cpu.device import CpuRuntime
from helios.runtime.loader import LoadOptions, load_model
from helios.runtime.single import SingleRequest

PROMPT = np.random.default_rng(13).integers(3, VOCABULARY, 29).tolist()
NEW_TOKENS = 24


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.mark.parametrize("name", CASES)
def test_greedy_text_is_that_of_transformers(
    name: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = save_checkpoint(tmp_path / name, CASES[name])
    core_path = prepare(tmp_path / name, home, monkeypatch)
    namespace, _ = local_publisher(home)
    with authorize(authenticate(core_path, TrustStore(home)), namespace) as core:
        loaded = load_model(core, CpuRuntime(threads=1, numerics="f32"), LoadOptions(concurrency=1))
        with loaded.model:
            steps = SingleRequest(loaded.model).generate(PROMPT, NEW_TOKENS, chunk=16)
            tokens = [step.token for step in steps]
    assert tokens == expected_tokens(model)


def prepare(folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """By the command that a user gives."""
    core_path = folder.parent / "tiny.core"
    words = ["prepare", folder, "-o", core_path, "--cache-dtype", "f32", "--page-tokens", "16"]
    monkeypatch.setenv("HELIOS_HOME", str(home))
    monkeypatch.setattr(sys, "argv", ["helios", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    return core_path


def expected_tokens(model: PreTrainedModel) -> list[int]:
    """Token by token over the whole text, so that no cache of transformers' is relied upon."""
    tokens = list(PROMPT)
    for _ in range(NEW_TOKENS):
        with torch.no_grad():
            tokens.append(int(model(torch.tensor([tokens])).logits[0, -1].argmax()))
    return tokens[len(PROMPT) :]
