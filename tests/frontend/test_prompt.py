"""From a request's conversation to the tokens a model reads."""

from typing import Any

import pytest
from small_tokenizers import byte_level, sentence_piece

from helios.contract.kinds import ImageLayout, ImagePreparation, ReasoningParser, ToolParser
from helios.contract.syntax import PrefixBoundaryRule, PreparedFrontend
from helios.errors import RequestError
from helios.frontend.model import Frontend, load_frontend
from helios.frontend.prompt import ChatInput, ChatPrompts, ContextLengthError
from helios.frontend.template import Template
from helios.frontend.tokenizer import Tokenizer

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
USER = {"role": "user", "content": "hi"}
ANSWER = {"role": "assistant", "content": "Once upon a "}
WORDS = Tokenizer(byte_level())
CONTEXT = 1000


def prompts(source: str = CHATML, **options: Any) -> ChatPrompts:
    return ChatPrompts(WORDS, Template(source), **options)


def text(source: str = CHATML, **request: Any) -> str:
    request.setdefault("messages", [USER])
    return prompts(source).prepare(ChatInput(**request), CONTEXT).text


def test_generation_prompt() -> None:
    opened = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert text() == opened
    assert text(add_generation_prompt=False) == opened.removesuffix("<|im_start|>assistant\n")
    prompt = prompts().prepare(ChatInput([USER]), CONTEXT)
    assert WORDS.decode(prompt.tokens) == opened
    assert prompt.tokens[0] == WORDS.token_id("<|im_start|>")
    assert not prompt.continues


def test_the_final_message_is_continued() -> None:
    chat = ChatInput([USER, ANSWER], continue_final_message=True)
    prompt = prompts().prepare(chat, CONTEXT)
    assert prompt.text.endswith("<|im_start|>assistant\nOnce upon a ")
    assert prompt.continues
    assert ANSWER["content"] == "Once upon a "


@pytest.mark.parametrize(
    ("messages", "options", "field"),
    [
        ([USER], {}, "continue_final_message"),
        ([USER, ANSWER], {"add_generation_prompt": True}, "add_generation_prompt"),
    ],
)
def test_what_can_not_be_continued(
    messages: list[Any], options: dict[str, Any], field: str
) -> None:
    with pytest.raises(RequestError) as caught:
        prompts().prepare(ChatInput(messages, continue_final_message=True, **options), CONTEXT)
    assert caught.value.field == field


def test_a_template_that_hides_the_final_message_can_not_continue_it() -> None:
    with pytest.raises(RequestError, match="continue_final_message"):
        text("{{ messages[0].content }}", messages=[USER, ANSWER], continue_final_message=True)


def test_switches() -> None:
    source = "-{{ enable_thinking }}{{ thinking }}{{ reasoning_effort }}"
    assert text(source) == "-"
    assert text(source, enable_thinking=True) == "-True"
    assert text(source, enable_thinking=False) == "-False"
    assert text(source, reasoning_effort="low") == "-Truelow"
    assert text(source, reasoning_effort="none") == "-Falsenone"
    assert text(source, template_arguments={"thinking": 1}) == "-1"
    named = prompts(source, thinking_switches=("thinking",))
    assert named.prepare(ChatInput([USER], enable_thinking=True), CONTEXT).text == "-True"


def test_reasoning_that_the_model_lacks() -> None:
    assert text(enable_thinking=False) == text()
    assert text(reasoning_effort="none") == text()
    with pytest.raises(RequestError, match="reasoning_effort"):
        text(reasoning_effort="high")
    with pytest.raises(RequestError, match="enable_thinking"):
        text(enable_thinking=True)


def test_template_arguments_leave_the_requests_own_fields_alone() -> None:
    with pytest.raises(RequestError, match=r"chat_template_kwargs\.messages"):
        text(template_arguments={"messages": []})


def test_tools() -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    source = "{{ tools | map(attribute='function.name') | list if tools else 'none' }}"
    able = prompts(source, tools_supported=True)
    assert able.prepare(ChatInput([USER]), CONTEXT).text == "none"
    assert able.prepare(ChatInput([USER], []), CONTEXT).text == "none"
    assert able.prepare(ChatInput([USER], [tool], use_tools=False), CONTEXT).text == "none"
    prompt = able.prepare(ChatInput([USER], [tool]), CONTEXT)
    assert prompt.text == "['f']"
    assert [definition.name for definition in prompt.tools] == ["f"]
    with pytest.raises(RequestError, match="tools"):
        prompts(source).prepare(ChatInput([USER], [tool]), CONTEXT)


CHAT = [
    {"role": "system", "content": "Be kind 🙂"},
    USER,
    {"role": "assistant", "content": "hello"},
    {"role": "user", "content": "and?"},
]
TURNS = "<|im_start|>system\nBe kind 🙂<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n"


def boundaries(*rules: PrefixBoundaryRule, source: str = CHATML) -> list[str]:
    """The text up to each boundary."""
    prompt = prompts(source, boundary_rules=rules).prepare(ChatInput(CHAT), CONTEXT)
    return [WORDS.decode(prompt.tokens[:end]) for end in prompt.boundaries]


def test_boundaries() -> None:
    system, user = TURNS.split("<|im_start|>user")[0], TURNS
    later = boundaries(PrefixBoundaryRule("user"))
    assert boundaries(PrefixBoundaryRule("system")) == [system]
    assert later[0] == user
    assert len(later) == 2
    assert boundaries(PrefixBoundaryRule("user", last_only=True)) == later[1:]
    assert boundaries(PrefixBoundaryRule("system"), PrefixBoundaryRule("user")) == [system, *later]
    opened = boundaries(PrefixBoundaryRule("user", generation_prompt=True))
    assert opened == [f"{text}<|im_start|>assistant\n" for text in later]
    assert boundaries(PrefixBoundaryRule("tool")) == []


def test_what_is_no_boundary() -> None:
    """A head that the whole prompt doesn't begin with, is refused, or ends within a token."""
    counted = "{{ messages | length }}" + CHATML
    assert boundaries(PrefixBoundaryRule("user"), source=counted) != []  # the last one is whole
    assert boundaries(PrefixBoundaryRule("system"), source=counted) == []
    picky = "{% if messages | length == 1 %}{{ raise_exception('no') }}{% endif %}" + CHATML
    assert boundaries(PrefixBoundaryRule("system"), source=picky) == []
    glued = "{% for m in messages %}{{ m.role }}{% endfor %}"
    assert boundaries(PrefixBoundaryRule("system"), source=glued) in ([], ["system"])


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(RequestError, match="messages"):
        text("")


def frontend(template: str | None, **changes: Any) -> Frontend:
    facts: dict[str, Any] = {
        "tool_parser": ToolParser.NONE,
        "tool_syntax": None,
        "reasoning_parser": ReasoningParser.NONE,
        "reasoning_syntax": None,
        "assistant": None,
        "eos_tokens": (2,),
        "add_bos": True,
        "prefix_boundaries": (),
        "image_preparation": ImagePreparation.NONE,
        "image_layout": ImageLayout.NONE,
        "image_tokens": None,
        "image_settings": None,
        "tokenizer_resource": "tokenizer",
        "template_resource": "template",
        "thinking_switches": (),
        "template_tokens": {"bos_token": "<s>"},
        **changes,
    }
    return load_frontend(PreparedFrontend(**facts), sentence_piece(), template)


def test_a_text_begins_with_one_bos() -> None:
    model = frontend(None)
    assert model.text_prompt("Hello", CONTEXT).tokens[0] == model.bos == 1
    assert model.text_prompt("<s>Hello", CONTEXT).tokens.count(1) == 1
    assert model.text_prompt("", CONTEXT).tokens == (1,)
    assert frontend(None, add_bos=False).bos is None


def test_a_chat_has_the_bos_that_its_template_writes() -> None:
    chat = ChatInput([USER])
    assert frontend("{{ bos_token }}Hello").chat_prompt(chat, CONTEXT).tokens.count(1) == 1
    assert frontend("Hello").chat_prompt(chat, CONTEXT).tokens.count(1) == 0


def test_token_prompts_are_taken_as_they_are() -> None:
    prompt = frontend(None).token_prompt([1, 260])
    assert prompt.tokens == (1, 260)
    assert prompt.text == "<s> H"


def test_what_can_not_fit_is_refused_unencoded() -> None:
    able = prompts("{{ messages[0].content }}")
    longest = WORDS.encode("fundamental" * 200)
    assert WORDS.fewest_tokens("fundamental" * 200) <= len(longest)
    with pytest.raises(ContextLengthError, match="messages"):
        able.prepare(ChatInput([{"role": "user", "content": "x" * 100_000}]), 100)
    # An unknown token may stand for any text, so nothing is known before encoding.
    assert frontend(None).tokenizer.fewest_tokens("x" * 100_000) == 0


def test_what_is_missing() -> None:
    model = frontend(None, add_bos=False)
    with pytest.raises(RequestError, match="no chat template"):
        model.chat_prompt(ChatInput([USER]), CONTEXT)
    with pytest.raises(RequestError, match="prompt"):
        model.text_prompt("", CONTEXT)
    with pytest.raises(RequestError, match="prompt"):
        model.token_prompt([])
