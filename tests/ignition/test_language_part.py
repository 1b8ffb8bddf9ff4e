"""Of checkpoints with several modalities the language model is prepared, and computes the same."""

import json
from functools import partial
from pathlib import Path

import pytest
import safetensors.torch
import torch
from test_recipe_logits import BASE, GEMMA, rope
from tiny_checkpoints import fill, save_tokenizer
from transformers import (
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    Gemma3TextConfig,
    Mistral3Config,
    Mistral3ForConditionalGeneration,
    MistralConfig,
    PixtralVisionConfig,
    PreTrainedModel,
    SiglipVisionConfig,
)
from transformers_agreement import assert_agreement

from helios.errors import SourceError
from helios.ignition.sources.language_part import DEFAULTS
from helios.ignition.sources.open import open_source

SEEN = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "image_size": 28}
VISION = {**SEEN, "num_attention_heads": 2, "patch_size": 14}


def gemma3() -> PreTrainedModel:
    text = Gemma3TextConfig(**{**GEMMA, "sliding_window": 9})
    vision = SiglipVisionConfig(**VISION)
    config = Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4)
    return Gemma3ForConditionalGeneration(config)


def mistral3(tied: bool = True) -> PreTrainedModel:
    text = MistralConfig(**BASE, **rope("default"), sliding_window=None)
    config = Mistral3Config(
        text_config=text,
        vision_config=PixtralVisionConfig(**VISION),
        tie_word_embeddings=tied,
    )
    return Mistral3ForConditionalGeneration(config)


MODELS = {"gemma3": gemma3, "mistral3": mistral3, "mistral3-untied": partial(mistral3, tied=False)}


@pytest.mark.parametrize("renamed", [False, True], ids=["as saved", "renamed"])
@pytest.mark.parametrize("name", MODELS)
def test_logits_of_text_agree_with_transformers(name: str, renamed: bool, tmp_path: Path) -> None:
    model = MODELS[name]().eval()
    fill(model)
    model.save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    if renamed:
        rename(tmp_path / "model.safetensors")
    source = open_source(tmp_path)
    assert source.architecture in ("gemma3_text", "mistral")
    assert_agreement(model, source)


def rename(path: Path) -> None:
    """Tensor names as some releases of transformers wrote them; and a scalar, which no language
    model has."""
    tensors = {}
    for name, tensor in safetensors.torch.load_file(path).items():
        inner = name.removeprefix("language_model.")
        body = inner.removeprefix("model.")
        tensors[inner if inner == body else f"model.language_model.{body}"] = tensor
    tensors["model.vision_tower.scale"] = torch.tensor(1, dtype=torch.int64)
    safetensors.torch.save_file(tensors, path)


@pytest.mark.parametrize("kind", DEFAULTS)
def test_what_a_nested_configuration_leaves_out_is_what_transformers_takes(kind: str) -> None:
    from transformers import CONFIG_MAPPING

    defaults = CONFIG_MAPPING[kind]().to_dict()
    assert {key: defaults[key] for key in DEFAULTS[kind]} == dict(DEFAULTS[kind])


def test_an_unknown_language_model_is_refused_by_its_own_name(tmp_path: Path) -> None:
    save_tokenizer(tmp_path)
    nested = {"model_type": "speech", "text_config": {"model_type": "parrot", "hidden_size": 8}}
    (tmp_path / "config.json").write_text(json.dumps(nested))
    safetensors.torch.save_file({"x": torch.ones(2)}, tmp_path / "model.safetensors")
    from helios.ignition.recipes.registry import recipe_for

    with pytest.raises(SourceError) as caught:
        recipe_for(open_source(tmp_path))
    assert caught.value.value == "parrot"
