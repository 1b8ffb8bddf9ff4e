"""What chat templates of each family are recognised to write, as the contract states it."""

from pathlib import Path

import pytest
from family_templates import (
    CHATML,
    FAMILIES,
    GLM_TOKENS,
    HERMES_TOKENS,
    JSON_CALLS,
    THINK_TOKENS,
    Family,
    chatml,
)
from tiny_gguf import METADATA, TOKENS, WIDTH, tensors, write_gguf

from helios.contract.prepare import prepare_contract
from helios.contract.syntax import PreparedFrontend
from helios.errors import ConfigurationError
from helios.frontend.model import load_frontend
from helios.frontend.prompt import ChatInput
from helios.frontend.reasoning.state import initial_reasoning_state
from helios.ignition.export import Deployment, assemble
from helios.ignition.options import PrepareOptions, SyntaxChoice
from helios.ignition.preparation import syntaxes
from helios.ignition.preparation.syntax_names import REASONING_SYNTAXES, TOOL_SYNTAXES, WRITTEN_BY
from helios.ignition.preparation.tool_prompt import PROMPTED
from helios.ignition.sources.open import open_source
from helios.schema import frontend_pb2 as pb

# Tokens that tokenizers flag as ordinary text rather than as special.
TEXT_TOKENS = frozenset((*HERMES_TOKENS, *GLM_TOKENS[7:], *THINK_TOKENS)) - frozenset(CHATML)


def deploy(folder: Path, family: Family, options: PrepareOptions | None = None) -> Deployment:
    """A tiny model with the family's template and tokens."""
    added = [token for token in family.tokens if token not in TOKENS]
    tokens = [*TOKENS, *added]
    kinds = [4 if token in TEXT_TOKENS else 3 for token in added]
    metadata = {
        **METADATA,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, 3, *[1] * (len(TOKENS) - 2), *kinds],
        "tokenizer.chat_template": family.template,
    }
    weights = tensors()
    table = weights["token_embd.weight"]
    weights["token_embd.weight"] = table[[i % len(table) for i in range(len(tokens))]]
    assert weights["token_embd.weight"].shape == (len(tokens), WIDTH)
    source = open_source(write_gguf(folder / "tiny.gguf", metadata, weights))
    return assemble(source, options or PrepareOptions())


def prepared(deployment: Deployment) -> PreparedFrontend:
    return prepare_contract(deployment.contract, deployment.manifest).frontend


@pytest.mark.parametrize("name", FAMILIES)
def test_what_a_template_writes_is_recognised(name: str, tmp_path: Path) -> None:
    family = FAMILIES[name]
    deployment = deploy(tmp_path, family)
    frontend = deployment.contract.model.frontend
    assert_tools(frontend, family.tools, family.tags)
    assert_reasoning(frontend, family.reasoning)
    assert tuple(frontend.thinking_switches) == family.switches
    assert frontend.assistant.open == family.open
    assert list(frontend.assistant.close) == family.close.split()
    response = frontend.assistant.tool_response
    assert (response.open, response.close) == family.tool_response
    assert [rule.role for rule in frontend.prefix_boundaries] == list(family.boundaries)
    loaded = load_frontend(
        prepared(deployment), deployment.text.tokenizer.decode(), deployment.text.chat.template
    )
    assert loaded.chat is not None
    for arguments, state in family.states:
        chat = ChatInput([{"role": "user", "content": "Hi"}], template_arguments=arguments)
        prompt = loaded.chat_prompt(chat, 10_000)
        syntax = prepared(deployment)
        found = initial_reasoning_state(prompt.text, syntax.assistant, syntax.reasoning_syntax)
        assert found.value == state, arguments


def assert_tools(
    frontend: pb.FrontendContract, name: str, tags: tuple[str, str] | None = None
) -> None:
    if name == "none":
        assert frontend.tool_parser == pb.TOOL_PARSER_NONE
        assert not frontend.HasField("tool_syntax")
        return
    expected = PROMPTED if name == "prompted" else TOOL_SYNTAXES[name]
    assert frontend.tool_parser == expected.parser
    syntax = pb.ToolSyntax()
    syntax.CopyFrom(expected.syntax)
    if tags:
        syntax.block.open, syntax.block.close = tags
    assert frontend.tool_syntax == syntax


def assert_reasoning(frontend: pb.FrontendContract, name: str) -> None:
    if name == "none":
        assert frontend.reasoning_parser == pb.REASONING_PARSER_NONE
        assert not frontend.HasField("reasoning_syntax")
        return
    assert frontend.reasoning_parser == REASONING_SYNTAXES[name].parser
    found = pb.ReasoningSyntax()
    found.CopyFrom(frontend.reasoning_syntax)
    found.ClearField("terminal_markers")
    assert found == REASONING_SYNTAXES[name].syntax


@pytest.mark.parametrize(
    ("name", "choice", "tools", "reasoning"),
    [
        ("qwen3", SyntaxChoice(tools="none"), "none", "think"),
        ("qwen3", SyntaxChoice(reasoning="none"), "json-tags", "none"),
        ("qwen3", SyntaxChoice(tools="function-tags"), "function-tags", "think"),
        ("hermes", SyntaxChoice(reasoning="inline-think"), "json-tags", "inline-think"),
        ("gemma-3", SyntaxChoice(tools="none"), "none", "none"),
        ("gemma-3", SyntaxChoice(tools="json-tags"), "prompted", "none"),
        ("gemma-3", SyntaxChoice(tools="pythonic"), "pythonic", "none"),
        ("gpt-oss", SyntaxChoice(tools="none"), "none", "none"),
        ("gpt-oss", SyntaxChoice(tools="json-tags", reasoning="none"), "json-tags", "none"),
        ("hermes", SyntaxChoice(reasoning="recipients"), "atem", "recipients"),
        ("hermes", SyntaxChoice(tools="xtml"), "xtml", "xtml-think"),
        ("hermes", SyntaxChoice(tools="xtml", reasoning="none"), "xtml", "none"),
    ],
)
def test_what_the_user_names_is_declared(
    name: str, choice: SyntaxChoice, tools: str, reasoning: str, tmp_path: Path
) -> None:
    deployment = deploy(tmp_path, FAMILIES[name], PrepareOptions(syntaxes=choice))
    frontend = deployment.contract.model.frontend
    assert_tools(frontend, tools)
    assert_reasoning(frontend, reasoning)
    taught = deployment.text.chat.template != FAMILIES[name].template
    assert taught == (tools == "prompted")
    prepared(deployment)


def test_switches_can_be_named(tmp_path: Path) -> None:
    choice = SyntaxChoice(switches=("deep_thought",))
    deployment = deploy(tmp_path, FAMILIES["qwen3-thinking"], PrepareOptions(syntaxes=choice))
    assert prepared(deployment).thinking_switches == ("deep_thought",)


@pytest.mark.parametrize(
    ("name", "choice", "field"),
    [
        ("hermes", SyntaxChoice(tools="hermes"), "tool_syntax"),
        ("hermes", SyntaxChoice(reasoning="thoughts"), "reasoning_syntax"),
        ("hermes", SyntaxChoice(tools="harmony", reasoning="think"), "tool_syntax"),
        ("hermes", SyntaxChoice(tools="json-tags", reasoning="xtml-think"), "tool_syntax"),
        ("qwen3", SyntaxChoice(reasoning="none", switches=("on",)), "thinking_switches"),
    ],
)
def test_a_choice_that_can_not_be_kept_is_refused(
    name: str, choice: SyntaxChoice, field: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        deploy(tmp_path, FAMILIES[name], PrepareOptions(syntaxes=choice))
    assert caught.value.field.startswith(field)
    assert caught.value.remedy


@pytest.mark.parametrize("template", ["{{ messages[-1].content }}", None])
def test_reasoning_needs_messages_with_a_beginning(template: str | None, tmp_path: Path) -> None:
    metadata = {k: v for k, v in METADATA.items() if k != "tokenizer.chat_template"}
    if template:
        metadata["tokenizer.chat_template"] = template
    source = open_source(write_gguf(tmp_path / "tiny.gguf", metadata))
    options = PrepareOptions(syntaxes=SyntaxChoice(reasoning="think"))
    with pytest.raises(ConfigurationError) as caught:
        assemble(source, options)
    assert caught.value.field == "reasoning_syntax"


def test_reasoning_that_nothing_delimits_is_left_out(tmp_path: Path) -> None:
    metadata = {**METADATA, "tokenizer.chat_template": "{{ messages[-1].content }}<think>"}
    source = open_source(write_gguf(tmp_path / "tiny.gguf", metadata))
    assert_reasoning(assemble(source, PrepareOptions()).contract.model.frontend, "none")


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (chatml(JSON_CALLS, "<seed:think>\n"), ("<seed:think>", "</seed:think>", True)),
        (chatml(JSON_CALLS, "<thought>"), ("<thought>", "</thought>", False)),
        (chatml(JSON_CALLS.replace("content", "content.split('</think>')[-1]", 1), ""),
         ("<think>", "</think>", False)),
    ],
)  # fmt: skip
def test_other_think_tags_are_found_in_the_template(
    template: str, expected: tuple[str, str, bool], tmp_path: Path
) -> None:
    family = Family(template, HERMES_TOKENS, "json-tags")
    syntax = deploy(tmp_path, family).contract.model.frontend.reasoning_syntax
    delimiters = syntax.delimiters
    assert (delimiters.open, delimiters.close, syntax.wrapping_newlines) == expected


def test_every_syntax_has_a_name() -> None:
    declared = [v for v in vars(syntaxes).values() if isinstance(v, syntaxes.Tools)]
    assert [t for t in declared if t not in TOOL_SYNTAXES.values()] == []
    declared = [v for v in vars(syntaxes).values() if isinstance(v, syntaxes.Reasoning)]
    assert [r for r in declared if r not in REASONING_SYNTAXES.values()] == []
    assert set(WRITTEN_BY) == {*TOOL_SYNTAXES, *REASONING_SYNTAXES}


def test_another_template_takes_the_place_of_the_models_own(tmp_path: Path) -> None:
    choice = SyntaxChoice(template=FAMILIES["hermes"].template)
    deployment = deploy(tmp_path, FAMILIES["gemma-3"], PrepareOptions(syntaxes=choice))
    assert deployment.text.chat.template == FAMILIES["hermes"].template
    assert_tools(deployment.contract.model.frontend, "json-tags")


def test_what_closes_a_message_ends_generation_though_it_is_not_flagged(tmp_path: Path) -> None:
    """As in conversions that take every added token for ordinary text."""
    family = FAMILIES["gemma-3"]
    tokens = [*TOKENS, *family.tokens]
    weights = tensors()
    table = weights["token_embd.weight"]
    weights["token_embd.weight"] = table[[i % len(table) for i in range(len(tokens))]]
    metadata = {
        **METADATA,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, 3, *[1] * (len(TOKENS) - 2), *[4] * len(family.tokens)],
        "tokenizer.chat_template": family.template,
    }
    source = open_source(write_gguf(tmp_path / "tiny.gguf", metadata, weights))
    frontend = assemble(source, PrepareOptions()).contract.model.frontend
    assert list(frontend.eos_tokens) == [0, tokens.index("<end_of_turn>")]
