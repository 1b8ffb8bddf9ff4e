"""The documentation names every parameter, path and status that there is, and no other."""

import json
import re
from pathlib import Path

from helios.server.openapi import document

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "http.md").read_text()
SPECIFICATION = json.loads(document())
# OpenAI's fields that are accepted and change nothing.
SILENT = {
    "metadata", "modalities", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
    "service_tier", "store", "user", "model", "messages", "prompt", "stream", "best_of", "suffix",
}  # fmt: skip


def parameters() -> set[str]:
    schemas = SPECIFICATION["components"]["schemas"]
    return {
        name
        for kind in ("ChatRequest", "CompletionRequest")
        for name in schemas[kind]["properties"]
    }


def test_every_parameter_is_described() -> None:
    described = set(re.findall(r"`([a-z_]+)", TEXT))
    assert parameters() - SILENT - described - {"stream_options"} == set()


def test_every_path_is_listed() -> None:
    for path in SPECIFICATION["paths"]:
        assert f"{path}`" in TEXT


def test_every_status_is_explained() -> None:
    statuses = {
        status
        for path in SPECIFICATION["paths"].values()
        for method in path.values()
        for status in method["responses"]
        if status >= "400"
    }
    assert statuses <= set(re.findall(r"^\| (\d{3}) \|", TEXT, re.M))
