"""A grammar is idle while the model reasons, and active from where reasoning has ended."""

import pytest
from grammar_syntaxes import CASES, Case
from grammar_walks import Walker, allowed_tokens

from helios.errors import RequestError
from helios.frontend.grammar.answers import Answer, AnswerKind
from helios.frontend.grammar.constraints import Constraint, Demands, ToolChoice
from helios.frontend.grammar.monitor import GrammarMonitor
from helios.frontend.parsing import ToolDefinition
from helios.ignition.preparation import syntaxes as s

ANSWER = Answer(AnswerKind.CHOICE, ["yes", "no"], "structured_outputs.choice")
DEMANDS = Demands(answer=ANSWER)
PING = ToolDefinition("ping", {"type": "object", "properties": {}})
CALLS = Demands(choice=ToolChoice.REQUIRED, tools=(PING,))
CALL = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'


@pytest.fixture(scope="module")
def thinker() -> Walker:
    """Think tags that are tokens, and calls that may end reasoning."""
    return CASES["json-tags"].walker()


@pytest.fixture(scope="module")
def speller() -> Walker:
    """Think tags that are plain text."""
    return Case(s.JSON_TAGS, s.THINK, ()).walker()


def started(walker: Walker, constraint: Constraint, text: str = "") -> GrammarMonitor:
    """A monitor behind the beginning of a response."""
    assert constraint.key is not None
    monitor = walker.constraints.monitor(constraint.key, ends=frozenset({walker.tokens.eos}))
    for token in walker.tokens.encode(text):
        assert token in allowed_tokens(monitor), text
        monitor.accept(token)
    return monitor


def constrained(walker: Walker, tail: str = "", demands: Demands = DEMANDS) -> Constraint:
    return walker.constraints.constrain(demands, f"<|im_start|>assistant\n{tail}")


def test_everything_but_the_end_may_come_while_reasoning(thinker: Walker) -> None:
    monitor = started(thinker, constrained(thinker, "<think>\n"), "so <tool")
    everything = set(range(thinker.tokens.id_limit))
    opener = thinker.tokens.token_id("<tool_call>")
    assert set(allowed_tokens(monitor)) == everything - {thinker.tokens.eos}
    calling = started(thinker, constrained(thinker, "<think>\n", CALLS), "so ")
    assert opener in allowed_tokens(calling)


def test_reasoning_that_the_prompt_opened(thinker: Walker) -> None:
    constraint = constrained(thinker, "<think>\n")
    for answer in ("yes", "\n\nno", "\nyes"):
        response = thinker.tokens.encode(f'"yes" or {{"no"}}?\n</think>{answer}')
        assert thinker.allows(constraint, response)
    assert not thinker.allows(constraint, thinker.tokens.encode("hm</think>maybe"))
    assert not thinker.allows(constraint, thinker.tokens.encode("yes"))


def test_a_spelled_closer_does_not_end_reasoning(thinker: Walker) -> None:
    constraint = constrained(thinker, "<think>\n")
    spelled = [*b"</think>yes"]
    assert not thinker.allows(constraint, spelled)
    closer = thinker.tokens.token_id("</think>")
    assert closer is not None
    assert thinker.allows(constraint, [*spelled, closer, *b"no"])


@pytest.mark.parametrize("tail", ["<think>\n\n</think>\n\n", "</think>"])
def test_active_from_the_first_token_where_the_prompt_closed_it(thinker: Walker, tail: str) -> None:
    monitor = started(thinker, constrained(thinker, tail))
    first = {thinker.tokens.token_bytes(token)[:1] for token in allowed_tokens(monitor)}
    assert first == {b"y", b"n"}


def test_the_model_may_open_reasoning_or_not(thinker: Walker) -> None:
    constraint = constrained(thinker)
    for text in ("yes", "<think>hm</think>\n\nno", "\n<think></think>no"):
        assert thinker.allows(constraint, thinker.tokens.encode(text))
    assert not thinker.allows(constraint, thinker.tokens.encode("<think>hm</think><think>x"))


def test_an_opener_of_calls_ends_reasoning(thinker: Walker) -> None:
    constraint = constrained(thinker, "<think>\n", CALLS)
    for text in (f"hm{CALL}", f"hm</think>\n\n{CALL}"):
        assert thinker.allows(constraint, thinker.tokens.encode(text))
    reply = thinker.read(
        thinker.tokens.encode(f"hm{CALL}"), CALLS, "<|im_start|>assistant\n<think>\n", False
    )
    assert (reply.reasoning, reply.calls) == ("hm", [("ping", {})])


def test_old_reasoning_in_the_prompt_counts_for_nothing(thinker: Walker) -> None:
    prompt = "<|im_start|>user\n<think><|im_end|>\n<|im_start|>assistant\n</think><|im_end|>\n"
    constraint = thinker.constraints.constrain(DEMANDS, f"{prompt}<|im_start|>assistant\n")
    assert thinker.allows(constraint, thinker.tokens.encode("yes"))


def test_delimiters_that_are_text(speller: Walker) -> None:
    constraint = constrained(speller, "<think>\n")
    assert speller.allows(constraint, speller.tokens.encode("yes </thin</think>\n\nno"))
    assert not speller.allows(constraint, speller.tokens.encode("yes"))
    assert not speller.allows(constraint, speller.tokens.encode("a</think>b</think>no"))


def test_delimiters_inside_a_structured_answer_are_text(thinker: Walker) -> None:
    answer = Answer(AnswerKind.JSON, {"const": "</think> <tool_call> <think>"}, "response_format")
    demands = Demands(answer=answer, tools=(PING,))
    constraint = constrained(thinker, "<think>\n", demands)
    closer = thinker.tokens.token_id("</think>")
    assert closer is not None
    response = [*b"hm", closer, *b'"</think> <tool_call> <think>"']
    assert thinker.allows(constraint, response)
    reply = thinker.read(response, demands, "<|im_start|>assistant\n<think>\n", True)
    assert reply.content == '"</think> <tool_call> <think>"'
    assert (reply.reasoning, reply.calls) == ("hm", [])


def test_markers_as_tokens_never_stand_in_an_answer(thinker: Walker) -> None:
    answer = Answer(AnswerKind.JSON, {"type": "string"}, "response_format")
    monitor = started(thinker, constrained(thinker, "</think>", Demands(answer=answer)), '"a')
    assert not thinker.tokens.special_tokens & set(allowed_tokens(monitor))


def test_frames_keep_reasoning_and_recipients() -> None:
    walker = CASES["atem"].walker()
    encode, constrain = walker.tokens.encode, walker.constraints.constrain
    constraint = constrain(Demands(answer=ANSWER, tools=(PING,)), "<|start|>assistant")
    thought = " to=self<|message|>to=user yes<|eom|><|start|>assistant"
    call = (
        "to=ping<|message|><atem:function_calls>\n"
        '<atem:invoke name="ping">\n</atem:invoke>\n</atem:function_calls>'
    )
    for text in (
        " to=user<|message|>yes",
        f"{thought} to=user<|message|>no",
        f"{thought}{thought} {call}",
        f"{call}<|eom|><|start|>assistant {call}",
    ):
        assert walker.allows(constraint, encode(text)), text
    for text in (
        "yes",
        " to=user<|message|>maybe",
        " to=self<|message|>hm",
        " to=pong<|message|>",
        f"{call}<|eom|><|start|>assistant to=user<|message|>yes",
    ):
        assert not walker.allows(constraint, encode(text)), text


def test_channels_keep_reasoning_and_recipients() -> None:
    walker = CASES["harmony"].walker()
    encode = walker.tokens.encode
    constraint = walker.constraints.constrain(
        Demands(answer=ANSWER, tools=(PING,)), "<|start|>assistant"
    )
    thought = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
    for text in (
        "<|channel|>final<|message|>yes",
        f"{thought}<|channel|>final<|message|>no",
        f"{thought}<|channel|>commentary to=functions.ping <|constrain|>json<|message|>{{}}",
    ):
        assert walker.allows(constraint, encode(text)), text
    assert not walker.allows(constraint, encode("<|channel|>commentary<|message|>yes"))
    assert not walker.allows(constraint, encode("<|channel|>analysis<|message|>yes"))


def test_elements_close_the_prefilled_channel_first() -> None:
    walker = CASES["xtml"].walker()
    encode, message = walker.tokens.encode, CASES["xtml"].prompt
    call = '<|open|>tools<|sep|><|open|>call tool="ping" index="1"<|sep|><|close|>call<|sep|>'
    calls = f"{call}<|close|>tools<|sep|><|close|>message<|sep|>"
    within = walker.constraints.constrain(CALLS, f"{message}<|open|>response<|sep|>")
    assert walker.allows(within, encode(f"<|close|>response<|sep|>{calls}"))
    assert not walker.allows(within, encode(calls))
    thinking = walker.constraints.constrain(CALLS, f"{message}<|open|>think<|sep|>")
    assert walker.allows(thinking, encode(f"hm<|close|>think<|sep|>{calls}"))
    answering = walker.constraints.constrain(DEMANDS, f"{message}<|open|>response<|sep|>")
    assert walker.allows(answering, encode("yes<|close|>response<|sep|><|close|>message<|sep|>"))


def test_a_continued_message_is_constrained_where_it_goes_on(thinker: Walker) -> None:
    prompt = "<|im_start|>assistant\nThe answer: "
    constraint = thinker.constraints.constrain(DEMANDS, prompt, continues=True)
    first = started(thinker, constraint)
    assert thinker.tokens.token_id("<think>") not in allowed_tokens(first)
    assert thinker.allows(constraint, thinker.tokens.encode("yes"))


def test_frames_can_not_be_continued() -> None:
    walker = CASES["harmony"].walker()
    prompt = "<|start|>assistant<|channel|>final<|message|>The"
    with pytest.raises(RequestError) as caught:
        walker.constraints.constrain(DEMANDS, prompt, continues=True)
    assert caught.value.field == "continue_final_message"
