"""Reasoning and tool calls as a client sees them, with the parsers that a contract selects."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from serving import EOS, WORDS, Serving, frontend

from helios.contract.kinds import (
    ImageLayout,
    ImagePreparation,
    ParallelCalls,
    ReasoningParser,
    ToolParser,
)
from helios.contract.syntax import (
    AssistantEnvelope,
    Delimiters,
    PreparedFrontend,
    ReasoningSyntax,
    ToolSyntax,
)
from helios.errors import ContractError
from helios.frontend.grammar.constraints import Constraints
from helios.frontend.parsers import marks_of, parser_factory

SYNTAX = PreparedFrontend(
    tool_parser=ToolParser.JSON_TAGS,
    tool_syntax=ToolSyntax(
        call=Delimiters("<tool_call>", "</tool_call>"),
        wrapping_newlines=True,
        parallel=ParallelCalls.REPEAT_BLOCK,
        name_fields=("name",),
        argument_fields=("arguments",),
        trims_content=True,
    ),
    reasoning_parser=ReasoningParser.THINK_TAGS,
    reasoning_syntax=ReasoningSyntax(Delimiters("<think>", "</think>")),
    assistant=AssistantEnvelope("<|im_start|>assistant\n", ("<|im_end|>",)),
    eos_tokens=(EOS,),
    add_bos=False,
    prefix_boundaries=(),
    image_preparation=ImagePreparation.NONE,
    image_layout=ImageLayout.NONE,
    image_tokens=None,
    image_settings=None,
    tokenizer_resource="tokenizer",
    template_resource="template",
    thinking_switches=(),
)
TEMPLATE = (
    "{% for t in tools or [] %}{{ t.function.name }}\n{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ c | tojson }}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def call(city: str) -> str:
    arguments = json.dumps({"city": city}, ensure_ascii=False)
    return f'<tool_call>\n{{"name": "weather", "arguments": {arguments}}}\n</tool_call>'


ANSWER = f"<think>Which city?</think>Looking.{call('Rome')}\n{call('Köln')}"
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
Make = Callable[..., Serving]


def able(make_serving: Make, text: str = ANSWER) -> Serving:
    model = replace(
        frontend(TEMPLATE, parser_factory(SYNTAX, WORDS), tools_supported=True),
        constraints=Constraints(SYNTAX, WORDS, marks_of(SYNTAX, WORDS)),
    )
    return make_serving(text=text, model=model)


def test_whole_response(make_serving: Make) -> None:
    choice = able(make_serving).chat(tools=TOOLS)["choices"][0]
    message = choice["message"]
    assert message["reasoning_content"] == "Which city?"
    assert message["content"] == "Looking."
    assert choice["finish_reason"] == "tool_calls"
    functions = [made["function"] for made in message["tool_calls"]]
    assert [function["name"] for function in functions] == ["weather", "weather"]
    assert [json.loads(function["arguments"]) for function in functions] == [
        {"city": "Rome"},
        {"city": "Köln"},
    ]
    assert {made["type"] for made in message["tool_calls"]} == {"function"}
    assert len({made["id"] for made in message["tool_calls"]}) == 2


@pytest.mark.parametrize("opened", [False, True])
def test_reasoning_tokens_are_counted(make_serving: Make, opened: bool) -> None:
    """Those whose text is reasoning, an opener before it included; streamed or not."""
    start = "<think>" if opened else ""
    template = TEMPLATE.replace("assistant\n{% endif", f"assistant\n{start}{{% endif")
    model = frontend(template, parser_factory(SYNTAX, WORDS))
    thought = "Which one, wörld? 🙂" if opened else "<think>Which one, wörld? 🙂"
    serving = make_serving(text=f"{thought}</think>Yes.", model=model)
    whole = serving.chat()["usage"]
    assert whole["completion_tokens_details"] == {"reasoning_tokens": len(WORDS.encode(thought))}
    chunks = serving.chat_stream(stream_options={"include_usage": True})
    assert chunks[-1]["usage"] == whole
    least = len(WORDS.encode(thought)) - 2  # within the last character
    cut = serving.chat(max_tokens=least)["usage"]
    assert cut["completion_tokens_details"] == {"reasoning_tokens": least}
    several = serving.chat(n=3)["usage"]
    assert several["completion_tokens_details"] == {
        "reasoning_tokens": 3 * len(WORDS.encode(thought))
    }


def gathered(chunks: list[Any]) -> dict[int, dict[str, Any]]:
    """Calls joined from their fragments, as clients join them."""
    calls: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for part in chunk["choices"][0]["delta"].get("tool_calls", ()):
            if part["index"] not in calls:
                assert part.keys() == {"index", "id", "type", "function"}
                assert part["function"]["arguments"] == ""
                calls[part["index"]] = {"name": part["function"]["name"], "arguments": ""}
            else:
                assert part.keys() == {"index", "function"}
                assert part["function"].keys() == {"arguments"}
            calls[part["index"]]["arguments"] += part["function"]["arguments"]
    return calls


def test_stream(make_serving: Make) -> None:
    chunks = able(make_serving).chat_stream(tools=TOOLS)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "Which city?"
    assert "".join(delta.get("content", "") for delta in deltas) == "Looking."
    calls = gathered(chunks)
    assert [json.loads(calls[n]["arguments"])["city"] for n in sorted(calls)] == ["Rome", "Köln"]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_cut_call_is_never_shown_as_whole(make_serving: Make) -> None:
    serving = able(make_serving)
    until = len(WORDS.encode(ANSWER)) - 6
    choice = serving.chat(tools=TOOLS, max_tokens=until)["choices"][0]
    assert choice["finish_reason"] == "length"
    assert len(choice["message"]["tool_calls"]) == 1


def test_one_call_where_parallel_ones_are_not_wanted(make_serving: Make) -> None:
    serving = able(make_serving)
    choice = serving.chat(tools=TOOLS, parallel_tool_calls=False)["choices"][0]
    assert len(choice["message"]["tool_calls"]) == 1
    assert len(gathered(serving.chat_stream(tools=TOOLS, parallel_tool_calls=False))) == 1


def test_markup_is_text_where_no_tools_are_offered(make_serving: Make) -> None:
    serving = able(make_serving, call("Rome"))
    without: list[dict[str, Any]] = [{}, {"tools": TOOLS, "tool_choice": "none"}]
    for fields in without:
        choice = serving.chat(**fields)["choices"][0]
        assert "tool_calls" not in choice["message"]
        assert choice["finish_reason"] == "stop"
    assert "weather" not in WORDS.decode(serving.engine.submitted[-1].prompt)


def test_a_string_stop_ends_it_as_a_stop(make_serving: Make) -> None:
    choice = able(make_serving).chat(tools=TOOLS, stop="Köln")["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert len(choice["message"]["tool_calls"]) == 1


def test_scores_cover_reasoning_and_calls(make_serving: Make) -> None:
    serving = able(make_serving)
    tokens = WORDS.encode(ANSWER)
    for scores in (
        serving.chat(tools=TOOLS, logprobs=True)["choices"][0]["logprobs"]["content"],
        [
            score
            for chunk in serving.chat_stream(tools=TOOLS, logprobs=True)
            for score in (chunk["choices"][0]["logprobs"] or {"content": []})["content"]
        ],
    ):
        assert bytes(b for score in scores for b in score["bytes"]).decode() == ANSWER
        assert len(scores) == len(tokens)


def test_results_go_back_to_the_model(make_serving: Make) -> None:
    serving = able(make_serving)
    made = serving.chat(tools=TOOLS)["choices"][0]["message"]
    messages = [
        {"role": "user", "content": "Weather?"},
        made,
        {"role": "tool", "tool_call_id": made["tool_calls"][0]["id"], "content": "dry"},
    ]
    serving.chat(messages=messages, tools=TOOLS)
    prompt = WORDS.decode(serving.engine.submitted[-1].prompt)
    assert '"arguments": {"city": "Rome"}' in prompt
    assert "<|im_start|>tool\ndry" in prompt


def test_a_prompt_that_opens_reasoning(make_serving: Make) -> None:
    parsers = parser_factory(SYNTAX, WORDS)
    model = frontend(TEMPLATE.replace("assistant\n{% endif", "assistant\n<think>{% endif"), parsers)
    message = make_serving(text="So.</think>Yes.", model=model).chat()["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("So.", "Yes.")


def test_parsers_that_do_not_go_together_are_refused() -> None:
    mixed = replace(SYNTAX, reasoning_parser=ReasoningParser.HARMONY)
    with pytest.raises(ContractError, match="reasoning_parser"):
        parser_factory(mixed, WORDS)
