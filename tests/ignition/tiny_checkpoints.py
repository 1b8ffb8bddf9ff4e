"""Tiny random checkpoints with real configurations, saved by transformers."""

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PretrainedConfig, PreTrainedModel

VOCABULARY = 99


def save_checkpoint(folder: Path, config: PretrainedConfig, **options: object) -> PreTrainedModel:
    """Save a random model of that configuration with a small tokenizer; returns the model."""
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    fill(model)
    model.save_pretrained(folder, **options)
    save_tokenizer(folder)
    return model


def fill(model: PreTrainedModel) -> None:
    """Make every parameter random, norms and biases too, and large enough that nothing about the
    computation could be left out unnoticed."""
    torch.manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            spread = 0.3 if parameter.ndim == 1 else 1.2 * parameter.shape[-1] ** -0.5
            parameter.copy_(torch.randn_like(parameter) * spread)
            if name.endswith("norm.weight"):
                parameter.add_(1.0)


def save_tokenizer(folder: Path) -> None:
    """A byte-level tokenizer of few ids, enough for a folder to be complete."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())[: VOCABULARY - 3]
    vocabulary = {token: i for i, token in enumerate(["<unk>", "<s>", "</s>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "add_bos_token": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
