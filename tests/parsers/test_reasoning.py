"""Where reasoning starts and ends."""

import pytest
from parser_renderers import Mark, Parts
from parser_runs import Heard, frontend, hear
from parser_vocabulary import TestVocabulary
from test_round_trips import BENCHES, tokens_of

from helios.contract.syntax import AssistantEnvelope, Delimiters, ReasoningSyntax
from helios.engine.messages import FinishReason
from helios.frontend.parsers import parser_factory
from helios.frontend.parsing import ParserRequest, ToolDefinition
from helios.frontend.reasoning.state import ReasoningState, initial_reasoning_state, open_tail
from helios.ignition.preparation import syntaxes as s

ENVELOPE = AssistantEnvelope("<|assistant|>", ("<|end|>",), Delimiters("<results>", "</results>"))
TAGS = ReasoningSyntax(Delimiters("<think>", "</think>"), wrapping_newlines=True)
OPEN, CLOSED = Mark("<think>"), Mark("</think>")
TOOL = ToolDefinition("book", {"properties": {"guests": {"type": "integer"}}})
CALL = "\n<function=book>\n<parameter=guests>\n4\n</parameter>\n</function>\n"


@pytest.mark.parametrize(
    ("prompt", "tail", "state"),
    [
        ("hello", "", ReasoningState.ABSENT),
        ("<|assistant|>", "", ReasoningState.ABSENT),
        ("<|assistant|><think>\n", "<think>\n", ReasoningState.OPEN),
        ("<|assistant|></think>", "</think>", ReasoningState.CLOSED),
        ("<|assistant|><think>\n\n</think>\n\n", "<think>\n\n</think>\n\n", ReasoningState.CLOSED),
        # Continuing an answer, and continuing a thought.
        ("<|assistant|><think>a</think>b", "<think>a</think>b", ReasoningState.CLOSED),
        ("<|assistant|><think>so far", "<think>so far", ReasoningState.OPEN),
        # Completed messages don't count, whatever they hold.
        ("<think><|assistant|>hi<|end|>", "", ReasoningState.ABSENT),
        ("<|assistant|><think>a<|end|><|assistant|>", "", ReasoningState.ABSENT),
        ("say <think><|assistant|>", "", ReasoningState.ABSENT),
        ("<|assistant|><think>call<|end|><|user|>next", "", ReasoningState.ABSENT),
        # Resumed behind an embedded tool response: only what follows it counts.
        (
            "<|assistant|><think>call<|end|>\n\n<results><think></results>\n\n<think>",
            "\n\n<think>",
            ReasoningState.OPEN,
        ),
        (
            "<|assistant|><think>call<|end|><results>x</results></think>",
            "</think>",
            ReasoningState.CLOSED,
        ),
        ("<|assistant|><think>call<results>x</results>", "", ReasoningState.ABSENT),
    ],
)
def test_the_prompt_decides_where_a_response_starts(prompt: str, tail: str, state: ReasoningState):
    assert open_tail(prompt, ENVELOPE) == tail
    assert initial_reasoning_state(prompt, ENVELOPE, TAGS) is state


def test_without_reasoning_syntax_there_is_no_reasoning():
    assert initial_reasoning_state("<|assistant|><think>", ENVELOPE, None) is ReasoningState.ABSENT
    assert initial_reasoning_state("<|assistant|><think>", None, TAGS) is ReasoningState.ABSENT


def parts_of(name: str, text: str) -> Parts:
    """A text in which every spelling of a syntax's tokens is a token."""
    vocabulary = BENCHES[name].vocabulary
    parts: Parts = []
    done = 0
    for start, end, _ in vocabulary.occurrences(text):
        parts += [text[done:start], Mark(text[start:end])]
        done = end
    return [part for part in [*parts, text[done:]] if part]


def run(
    name: str,
    parts: Parts | str,
    *,
    prompt: str = "",
    reason: FinishReason = FinishReason.EOS,
    tools: tuple[ToolDefinition, ...] = (TOOL,),
    structured: bool = False,
) -> Heard:
    """Parse a message one token at a time, and at once; both must hear the same."""
    bench = BENCHES[name]
    envelope = bench.syntax.frontend.assistant
    assert envelope is not None
    build = parser_factory(bench.syntax.frontend, bench.vocabulary)
    request = ParserRequest(prompt or envelope.open, tools, structured=structured)
    tokens = tokens_of(bench.vocabulary, parts_of(name, parts) if isinstance(parts, str) else parts)
    slow = hear(build(request), bench.vocabulary, [[token] for token in tokens], reason)
    fast = hear(build(request), bench.vocabulary, [tokens], reason)
    assert (slow.content, slow.reasoning, slow.calls) == (fast.content, fast.reasoning, fast.calls)
    return slow


@pytest.mark.parametrize(
    ("parts", "reasoning", "content"),
    [
        ([OPEN, "\na\n", CLOSED, "\n\nb"], "a", "b"),
        (["\n", OPEN, "a", CLOSED, "b"], "a", "b"),
        # Only the wrapping newlines are syntax.
        ([OPEN, "\n\na\n\n", CLOSED, "\n\n\nb"], "\na\n", "\nb"),
        # A closer ends reasoning once; the token is dropped later, its spelling is text.
        ([OPEN, "a", CLOSED, "b", CLOSED, "c</think>d"], "a", "bc</think>d"),
        ([OPEN, "a</think>b", CLOSED, "c"], "a</think>b", "c"),
        (["a<think>b"], "", "a<think>b"),
        # A second block of reasoning.
        ([OPEN, "a", CLOSED, "b", OPEN, "c", CLOSED, "d"], "ac", "bd"),
        # One redundant opener.
        ([OPEN, "\n", OPEN, "\na", CLOSED, "b"], "a", "b"),
        # No closer: reasoning only.
        ([OPEN, "a"], "a", ""),
        ([OPEN, "a\n"], "a\n", ""),
    ],
)
def test_think_tags_that_are_tokens(parts: Parts, reasoning: str, content: str):
    heard = run("function tags", parts)
    assert (heard.reasoning, heard.content) == (reasoning, content)


@pytest.mark.parametrize(
    ("prompt", "parts", "reasoning", "content"),
    [
        ("<|assistant|><think>\n", ["a\n", CLOSED, "\n\nb"], "a", "b"),
        ("<|assistant|><think>", [OPEN, "a", CLOSED, "b"], "a", "b"),
        ("<|assistant|><think>", ["a"], "a", ""),
        ("<|assistant|><think>\n\n</think>\n\n", ["b"], "", "b"),
        ("<|assistant|><think></think>", ["\nb"], "", "b"),
        ("<|assistant|></think>", ["b"], "", "b"),
        ("<|assistant|><think>so far", [" and on", CLOSED, "b"], " and on", "b"),
        ("<|assistant|>So far", [" and on"], "", " and on"),
        ("<think><|assistant|>", ["b"], "", "b"),
    ],
)
def test_a_response_goes_on_where_the_prompt_left_off(
    prompt: str, parts: Parts, reasoning: str, content: str
):
    heard = run("function tags", parts, prompt=prompt)
    assert (heard.reasoning, heard.content) == (reasoning, content)


def test_delimiters_that_are_no_tokens_count_at_the_start_only():
    vocabulary = TestVocabulary(())
    build = parser_factory(frontend(None, s.INLINE_THINK), vocabulary)

    def heard(text: str) -> Heard:
        return hear(build(ParserRequest("")), vocabulary, [[byte] for byte in text.encode()])

    assert heard("<think>a</think>b").reasoning == "a"
    assert heard("<think>a</think>b").content == "b"
    assert heard("write <think>a</think>").content == "write <think>a</think>"


def test_a_declared_opener_ends_reasoning():
    parts = [OPEN, "I need a table.\n", Mark("<tool_call>"), CALL, Mark("</tool_call>")]
    heard = run("function tags", parts)
    assert heard.reasoning == "I need a table."
    assert heard.calls == [("book", '{"guests": 4}')]
    assert heard.content == ""
    # Its closer is a token that leads nowhere by then.
    assert run("function tags", [*parts, CLOSED, "b"]).content == "b"


def test_an_opener_in_text_or_undeclared_is_a_thought():
    quoted = run("function tags", [OPEN, "say <tool_call>", CLOSED, "b"])
    assert quoted.reasoning == "say <tool_call>"
    undeclared = run("mistral named", [Mark("[THINK]"), "a", Mark("[TOOL_CALLS]"), "b"])
    assert undeclared.reasoning == "a[TOOL_CALLS]b"
    assert not undeclared.names


def test_frames_go_on_inside_a_prepared_body():
    start = "<|start|>assistant"
    final = f"{start}<|channel|>final<|message|>So far"
    assert run("harmony", [" and on"], prompt=final).content == " and on"
    analysis = f"{start}<|channel|>analysis<|message|>So far"
    assert run("harmony", [" and on"], prompt=analysis).reasoning == " and on"
    thought = f"{start} to=self<|message|>So far"
    assert run("atem", [" and on"], prompt=thought).reasoning == " and on"
    call = f'{start}<|channel|>commentary to=functions.book<|message|>{{"guests"'
    assert run("harmony", [": 4}"], prompt=call).calls == [("book", '{"guests": 4}')]
    header = f"{start} to=us"
    assert run("atem", ["er", Mark("<|message|>"), "hi"], prompt=header).content == "hi"
    # An earlier message does not count.
    earlier = f"{start}<|channel|>analysis<|message|>x<|end|>{start}"
    heard = run("harmony", [Mark("<|channel|>"), "final", Mark("<|message|>"), "b"], prompt=earlier)
    assert (heard.reasoning, heard.content) == ("", "b")


def test_xtml_goes_on_inside_an_element():
    opened = "<|assistant|><|open|>think<|sep|>"
    assert run("xtml", ["a"], prompt=opened).reasoning == "a"
    answer = "<|assistant|><|open|>response<|sep|>"
    assert run("xtml", ["a"], prompt=answer).content == "a"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("function tags", ['{"a": "<think>', CLOSED, OPEN, '<tool_call>"}']),
        ("json tags", ['{"name": "x", "a": "', Mark("<tool_call>"), '"}']),
        ("dsml tool_calls", ['["<', Mark("｜DSML｜"), 'tool_calls>"]']),
    ],
)
def test_markers_inside_a_structured_answer_are_text(name: str, parts: Parts):
    text = "".join(part.spelling if isinstance(part, Mark) else part for part in parts)
    heard = run(name, parts, structured=True)
    assert heard.content == text
    assert not heard.names


def test_with_tools_a_structured_answer_may_be_a_call_instead():
    heard = run(
        "function tags",
        [OPEN, "a", CLOSED, "\n\n", Mark("<tool_call>"), CALL, Mark("</tool_call>")],
        structured=True,
    )
    assert (heard.reasoning, heard.content) == ("a", "")
    assert heard.calls == [("book", '{"guests": 4}')]
