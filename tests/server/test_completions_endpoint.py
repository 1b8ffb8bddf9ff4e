"""/v1/completions: bodies and streams."""

from typing import Any

import pytest
from serving import EOS, HELLO, WORDS, Serving

from helios.contract.prepared import ServingDefaults

TOKENS = WORDS.encode(HELLO)


def test_whole_response(serving: Serving) -> None:
    body = serving.complete(max_tokens=100)
    assert body["id"].startswith("cmpl-")
    assert body["object"] == "text_completion"
    assert body["choices"] == [
        {"index": 0, "text": HELLO, "logprobs": None, "finish_reason": "stop"}
    ]
    assert body["usage"]["completion_tokens"] == len(TOKENS) + 1
    assert serving.engine.submitted[0].prompt == tuple(WORDS.encode("once"))


def test_sixteen_tokens_by_default(make_serving: Any) -> None:
    serving = make_serving(text="a" * 100, defaults=ServingDefaults(max_output_tokens=50))
    serving.complete()
    serving.complete([5] * 250)
    assert [request.max_tokens for request in serving.engine.submitted] == [16, 6]


def test_stream(serving: Serving) -> None:
    chunks = serving.complete_stream(max_tokens=100, stream_options={"include_usage": True})
    assert "".join(c["choices"][0]["text"] for c in chunks[:-1]) == HELLO
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == len(TOKENS) + 1
    assert all("usage" not in chunk for chunk in serving.complete_stream(max_tokens=100))


@pytest.mark.parametrize(
    ("prompt", "prompts"),
    [
        ("once", [WORDS.encode("once")]),
        (["once", "upon"], [WORDS.encode("once"), WORDS.encode("upon")]),
        ([5, 6], [[5, 6]]),
        ([[5, 6], [7]], [[5, 6], [7]]),
        (["once", [7]], [WORDS.encode("once"), [7]]),
    ],
)
def test_prompts(serving: Serving, prompt: Any, prompts: list[list[int]]) -> None:
    body = serving.complete(prompt, n=2, max_tokens=1)
    asked = [list(request.prompt) for request in serving.engine.submitted]
    assert asked == [tokens for tokens in prompts for _ in range(2)]
    assert [choice["index"] for choice in body["choices"]] == list(range(2 * len(prompts)))
    assert body["usage"]["prompt_tokens"] == sum(map(len, prompts))
    assert body["usage"]["completion_tokens"] == 2 * len(prompts)


def test_echo(serving: Serving) -> None:
    assert serving.complete(echo=True, max_tokens=100)["choices"][0]["text"] == f"once{HELLO}"
    chunks = serving.complete_stream(echo=True, max_tokens=100)
    assert chunks[0]["choices"][0]["text"] == "once"
    assert "".join(c["choices"][0]["text"] for c in chunks) == f"once{HELLO}"


def test_echo_alone(serving: Serving) -> None:
    body = serving.complete(echo=True, max_tokens=0)
    assert body["choices"][0]["text"] == "once"
    assert body["choices"][0]["logprobs"] is None
    assert serving.engine.submitted[0].max_tokens == 0


def test_logprobs(serving: Serving) -> None:
    scores = serving.complete(max_tokens=100, logprobs=2)["choices"][0]["logprobs"]
    assert len(scores["tokens"]) == len(TOKENS)
    assert scores["tokens"][0] == WORDS.token_text(TOKENS[0])
    assert scores["token_logprobs"] == [-0.5] * len(TOKENS)
    assert scores["top_logprobs"][0][scores["tokens"][0]] == -0.5
    assert scores["text_offset"][:2] == [0, len(scores["tokens"][0])]
    chunks = serving.complete_stream(max_tokens=100, logprobs=2)
    parts = [c["choices"][0]["logprobs"] for c in chunks if c["choices"][0]["logprobs"]]
    for name, values in scores.items():
        assert [value for part in parts for value in part[name]] == values


def test_bytes_that_are_no_text_are_named(serving: Serving) -> None:
    scores = serving.complete(max_tokens=100, logprobs=0)["choices"][0]["logprobs"]
    assert any(name.startswith("bytes:\\x") for name in scores["tokens"])
    last = scores["text_offset"][-1]
    assert HELLO[last:] == scores["tokens"][-1]


def test_echoed_scores(serving: Serving) -> None:
    """The form that evaluation harnesses read."""
    prompt = WORDS.encode("once upon")
    for answer in (
        serving.complete(prompt, echo=True, logprobs=1, max_tokens=1)["choices"][0],
        serving.complete_stream(prompt, echo=True, logprobs=1, max_tokens=1)[0]["choices"][0],
    ):
        scores = answer["logprobs"]
        count = len(prompt)
        assert answer["text"].startswith("once upon")
        assert scores["token_logprobs"][:count] == [None] + [-1.5] * (count - 1)
        assert scores["top_logprobs"][0] is None
        assert scores["top_logprobs"][1].keys() == {WORDS.token_text(0), scores["tokens"][1]}
        assert scores["text_offset"][1] == len(scores["tokens"][0])
    assert serving.engine.submitted[0].prompt_logprobs == 1


def test_prompt_logprobs(serving: Serving) -> None:
    body = serving.complete([5, 6], prompt_logprobs=0, max_tokens=1)
    entries = body["choices"][0]["prompt_logprobs"]
    assert entries == [None, {"6": {"logprob": -1.5, "decoded_token": WORDS.token_text(6)}}]


def test_stops(serving: Serving) -> None:
    assert serving.complete(max_tokens=100, stop="wör")["choices"][0]["text"] == "Hello, "


def test_neutral_values_of_unsupported_fields(serving: Serving) -> None:
    assert serving.complete(best_of=1, suffix="", max_tokens=100)["choices"][0]["text"] == HELLO


def test_special_tokens_are_not_shown(make_serving: Any) -> None:
    serving = make_serving(text="a<|im_start|>b")
    assert serving.complete()["choices"][0]["text"] == "ab"
    assert serving.complete(ignore_eos=True, max_tokens=5)["choices"][0]["text"] == "aba"
    assert EOS in WORDS.special_tokens
