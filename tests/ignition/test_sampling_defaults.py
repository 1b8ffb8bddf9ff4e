"""A publisher's recommended sampling becomes what the contract serves by default."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tiny_gguf import METADATA, write_gguf

from helios.errors import SourceError
from helios.ignition.export import assemble
from helios.ignition.options import PrepareOptions
from helios.ignition.sources.facts import Facts
from helios.ignition.sources.open import open_source
from helios.ignition.sources.sampling import gguf_sampling, huggingface_sampling
from helios.ignition.sources.source import SamplingDefaults


def test_keys_of_a_gguf_file_become_defaults_of_the_contract(tmp_path: Path) -> None:
    """Floats are those that were written, not what single precision made of them."""
    keys = {"temp": 0.6, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "penalty_repeat": 1.05}
    metadata = {**METADATA, **{f"general.sampling.{key}": value for key, value in keys.items()}}
    source = open_source(write_gguf(tmp_path / "tiny.gguf", metadata))
    defaults = assemble(source, PrepareOptions()).contract.defaults
    assert defaults.temperature == 0.6
    assert defaults.top_k == 40
    assert defaults.top_p == 0.95
    assert defaults.min_p == 0.05
    assert defaults.repetition_penalty == 1.05


def test_a_file_without_keys_leaves_everything_to_the_server(tmp_path: Path) -> None:
    source = open_source(write_gguf(tmp_path / "tiny.gguf"))
    defaults = assemble(source, PrepareOptions()).contract.defaults
    assert defaults.ListFields() == []


def test_no_more_tokens_are_chosen_from_than_there_are(tmp_path: Path) -> None:
    metadata = {**METADATA, "general.sampling.top_k": 100_000}
    source = open_source(write_gguf(tmp_path / "tiny.gguf", metadata))
    deployment = assemble(source, PrepareOptions())
    assert deployment.contract.defaults.top_k == deployment.contract.model.vocabulary


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, SamplingDefaults()),
        ({"temperature": 0.7}, SamplingDefaults(temperature=0.7)),
        (
            {"do_sample": True, "temperature": 1, "top_k": 64, "top_p": 0.95, "min_p": 0.0},
            SamplingDefaults(temperature=1.0, top_k=64, top_p=0.95, min_p=0.0),
        ),
        (
            {"do_sample": False, "temperature": 1.0, "repetition_penalty": 1.1},
            SamplingDefaults(repetition_penalty=1.1),
        ),
        ({"top_k": -1}, SamplingDefaults(top_k=0)),
        ({"top_k": 0, "temperature": 0}, SamplingDefaults(temperature=0.0, top_k=0)),
        ({"temperature": None, "top_p": None}, SamplingDefaults()),
    ],
)
def test_generation_settings_are_what_a_publisher_recommends(
    settings: Mapping[str, object], expected: SamplingDefaults
) -> None:
    assert huggingface_sampling(Facts(settings)) == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("temp", -0.1),
        ("temp", float("nan")),
        ("temp", "hot"),
        ("top_p", 0.0),
        ("top_p", 1.5),
        ("min_p", 2.0),
        ("penalty_repeat", 0.0),
        ("top_k", -2),
        ("top_k", 1.5),
        ("top_k", 1e12),
    ],
)
def test_what_is_no_setting_is_refused_by_its_key(key: str, value: object) -> None:
    with pytest.raises(SourceError) as caught:
        gguf_sampling(Facts({key: value}, "general.sampling."))
    assert caught.value.field == f"general.sampling.{key}"
    assert caught.value.remedy
