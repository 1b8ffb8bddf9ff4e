"""Chat templates under several names become one that chooses as transformers does."""

import json
from pathlib import Path

import pytest
from test_huggingface_source import CONFIG
from tiny_checkpoints import save_checkpoint
from tiny_gguf import METADATA, write_gguf
from transformers import AutoTokenizer

from helios.frontend.template import Template
from helios.ignition.sources.open import open_source
from helios.ignition.sources.templates import one_template

DEFAULT = "\n{% for m in messages %}\n  [{{ m.role }}] {{ m.content }}\n{% endfor %}\n"
DEFAULT += "  {% if x %}{% endif %}"
TOOL_USE = "\n\nTOOLS {{ tools | length }}\n{% macro say(m) %}{{ m.content }}{% endmacro %}\n"
TOOL_USE += "{%- for m in messages %}\n{{ say(m) }}\n{% endfor %}\n"
MESSAGES = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


@pytest.mark.parametrize("tools", [None, TOOLS], ids=["no tools", "tools"])
def test_each_renders_as_transformers_renders_it(
    tools: list[object] | None, tmp_path: Path
) -> None:
    save_checkpoint(tmp_path, CONFIG)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    named = {"default": DEFAULT, "tool_use": TOOL_USE, "rag": "never"}
    settings["eos_token"] = "</s>"
    settings["chat_template"] = [{"name": k, "template": v} for k, v in named.items()]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    oracle = AutoTokenizer.from_pretrained(tmp_path)
    expected = oracle.apply_chat_template(MESSAGES, tools=tools, tokenize=False)
    template = open_source(tmp_path).chat_template
    assert template is not None
    assert Template(template).render(MESSAGES, tools=tools) == expected


def test_a_file_and_those_beside_it(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, CONFIG)
    (tmp_path / "chat_template.jinja").write_text(DEFAULT)
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_text(TOOL_USE)
    source = open_source(tmp_path)
    assert source.chat_template == one_template({"default": DEFAULT, "tool_use": TOOL_USE})
    before = source.sha256()
    (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_text(TOOL_USE + " ")
    assert open_source(tmp_path).sha256() != before


def test_keys_of_a_gguf_file(tmp_path: Path) -> None:
    keys = {"chat_template": DEFAULT, "chat_template.tool_use": TOOL_USE, "chat_template.rag": "r"}
    metadata = {**METADATA, **{f"tokenizer.{key}": text for key, text in keys.items()}}
    source = open_source(write_gguf(tmp_path / "tiny.gguf", metadata))
    assert source.chat_template == one_template({"default": DEFAULT, "tool_use": TOOL_USE})


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({}, None),
        ({"default": ""}, None),
        ({"default": "d", "rag": "r"}, "d"),
        ({"tool_use": "t"}, "t"),
        ({"default": "d", "tool_use": "d"}, "d"),
    ],
)
def test_one_template_stays_as_it_is(named: dict[str, str], expected: str | None) -> None:
    assert one_template(named) == expected
