"""/v1/chat/completions: bodies and streams."""

from typing import Any

import pytest
from serving import EOS, HELLO, WORDS, Serving, frontend

from helios.contract.prepared import ServingDefaults

DONE_TOKENS = [*WORDS.encode(HELLO), EOS]


def text_of(chunks: list[Any], field: str = "content") -> str:
    return "".join([c["choices"][0]["delta"].get(field, "") for c in chunks if c["choices"]])


def test_whole_response(serving: Serving) -> None:
    body = serving.chat()
    prompt = len(serving.engine.submitted[0].prompt)
    assert body["id"].startswith("chatcmpl-")
    assert body["object"] == "chat.completion"
    assert body["model"] == "small"
    assert body["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": HELLO, "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    assert body["usage"] == {
        "prompt_tokens": prompt,
        "completion_tokens": len(DONE_TOKENS),
        "total_tokens": prompt + len(DONE_TOKENS),
        "prompt_tokens_details": {"cached_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def test_the_model_reads_the_rendered_conversation(serving: Serving) -> None:
    serving.chat("Grüße")
    text = WORDS.decode(serving.engine.submitted[0].prompt)
    assert text == "<|im_start|>user\nGrüße<|im_end|>\n<|im_start|>assistant\n"
    assert serving.engine.submitted[0].eos_tokens == (EOS,)


def test_stream(serving: Serving) -> None:
    chunks = serving.chat_stream()
    assert text_of(chunks) == HELLO
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert all("usage" not in chunk for chunk in chunks)
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [c["choices"][0]["finish_reason"] for c in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1]["choices"][0] == {
        "index": 0,
        "delta": {},
        "logprobs": None,
        "finish_reason": "stop",
    }


def test_stream_with_usage(serving: Serving) -> None:
    chunks = serving.chat_stream(stream_options={"include_usage": True})
    assert text_of(chunks) == HELLO
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == len(DONE_TOKENS)
    assert "usage" not in serving.chat_stream(stream_options={"include_usage": None})[-1]


def test_length(serving: Serving) -> None:
    for body in (serving.chat(max_tokens=1), serving.chat(max_completion_tokens=1)):
        assert body["choices"][0]["finish_reason"] == "length"
        assert body["usage"]["completion_tokens"] == 1


def test_default_output_limit(make_serving: Any) -> None:
    serving = make_serving(defaults=ServingDefaults(max_output_tokens=3))
    assert serving.chat()["usage"]["completion_tokens"] == 3
    unlimited = make_serving()
    unlimited.chat()
    request = unlimited.engine.submitted[0]
    assert request.max_tokens == 256 - len(request.prompt)


def test_sampling_defaults_give_way_to_the_request(make_serving: Any) -> None:
    defaults = ServingDefaults(temperature=0.6, top_k=20, top_p=0.9, min_p=0.1)
    serving = make_serving(defaults=defaults)
    serving.chat(temperature=0, top_k=-1)
    sampling = serving.engine.submitted[0].sampling
    assert (sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p) == (
        0,
        0,
        0.9,
        0.1,
    )


def test_sampling_fields_reach_the_engine(serving: Serving) -> None:
    serving.chat(
        temperature=1.5,
        top_p=0.5,
        top_k=7,
        min_p=0.2,
        presence_penalty=1,
        frequency_penalty=-1,
        repetition_penalty=1.1,
        logit_bias={"7": -100, "3": 5},
        seed=42,
        min_tokens=2,
        stop_token_ids=[9],
        stop_token_sequences=[[1, 2]],
        priority=-5,
        cache_salt="salt",
    )
    request = serving.engine.submitted[0]
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (
        1.5,
        0.5,
        7,
        0.2,
    )
    assert (sampling.presence_penalty, sampling.frequency_penalty) == (1, -1)
    assert sampling.repetition_penalty == 1.1
    assert sampling.logit_bias == ((3, 5.0), (7, -100.0))
    assert (sampling.seed, sampling.min_output) == (42, 2)
    assert (request.stop_tokens, request.stop_sequences) == ((9,), ((1, 2),))
    assert (request.priority, request.cache_salt) == (-5, "salt")


def test_seeds(serving: Serving) -> None:
    for seed in (None, None, -1):
        serving.chat(seed=seed)
    first, second, negative = (request.sampling.seed for request in serving.engine.submitted)
    assert first != second
    assert negative == 2**63 - 1


def test_ignore_eos(serving: Serving) -> None:
    body = serving.chat(ignore_eos=True, max_tokens=len(DONE_TOKENS) * 2)
    assert serving.engine.submitted[0].eos_tokens == ()
    assert body["choices"][0]["message"]["content"] == HELLO * 2
    assert body["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("stop", ["wör", ["🙂", "wör"]])
def test_string_stops(serving: Serving, stop: Any) -> None:
    body = serving.chat(stop=stop)
    assert body["choices"][0]["message"]["content"] == "Hello, "
    assert body["choices"][0]["finish_reason"] == "stop"
    assert text_of(serving.chat_stream(stop=stop)) == "Hello, "


def test_token_stops(serving: Serving) -> None:
    tokens = WORDS.encode(HELLO)
    expected = WORDS.decode(tokens[:2])
    one = serving.chat(stop_token_ids=[tokens[2]])
    many = serving.chat(stop_token_sequences=[tokens[2:5], tokens[1:2] * 2])
    assert one["choices"][0]["message"]["content"] == expected
    assert many["choices"][0]["message"]["content"] == expected


def test_choices_have_seeds_of_their_own(serving: Serving) -> None:
    body = serving.chat(n=3, seed=5)
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]
    assert {choice["message"]["content"] for choice in body["choices"]} == {HELLO}
    assert [request.sampling.seed for request in serving.engine.submitted] == [5, 6, 7]
    assert len({request.id for request in serving.engine.submitted}) == 3
    assert body["usage"]["completion_tokens"] == 3 * len(DONE_TOKENS)
    assert body["usage"]["prompt_tokens"] == len(serving.engine.submitted[0].prompt)
    chunks = serving.chat_stream(n=2)
    for index in range(2):
        mine = [c for c in chunks if c["choices"][0]["index"] == index]
        assert text_of(mine) == HELLO
        assert mine[0]["choices"][0]["delta"]["role"] == "assistant"


def test_logprobs(serving: Serving) -> None:
    choice = serving.chat(logprobs=True, top_logprobs=2)["choices"][0]
    content = choice["logprobs"]["content"]
    assert [tuple(entry["bytes"]) for entry in content] == [
        tuple(WORDS.token_bytes(token)) for token in DONE_TOKENS[:-1]
    ]
    assert bytes(b for entry in content for b in entry["bytes"]).decode() == HELLO
    assert content[0]["logprob"] == -0.5
    assert [other["logprob"] for other in content[0]["top_logprobs"]] == [0, -1]
    assert serving.chat(logprobs=True)["choices"][0]["logprobs"]["content"][0]["top_logprobs"] == []
    chunks = serving.chat_stream(logprobs=True, top_logprobs=2)
    streamed = [
        entry
        for chunk in chunks
        for entry in (chunk["choices"][0]["logprobs"] or {"content": []})["content"]
    ]
    assert streamed == content
    assert text_of(chunks) == HELLO


def test_prompt_logprobs(serving: Serving) -> None:
    body = serving.chat(prompt_logprobs=1)
    prompt = serving.engine.submitted[0].prompt
    assert body["prompt_logprobs"][0] is None
    assert len(body["prompt_logprobs"]) == len(prompt)
    entry = body["prompt_logprobs"][1]
    assert entry["0"] == {"logprob": 0.0, "decoded_token": WORDS.token_text(0), "rank": 1}
    assert entry[str(prompt[1])]["logprob"] == -1.5


def test_observed_response(serving: Serving) -> None:
    body = serving.chat(return_token_ids=True, return_token_timestamps=True, stop="wör")
    choice = body["choices"][0]
    assert body["prompt_token_ids"] == list(serving.engine.submitted[0].prompt)
    assert choice["message"]["content"] == "Hello, "
    assert WORDS.decode(choice["token_ids"]).startswith("Hello, wö")
    assert choice["token_timestamps_ns"] == [
        100 * n for n in range(1, len(choice["token_ids"]) + 1)
    ]
    assert body["reused_prompt_tokens"] == 2
    performance = body["performance"]
    assert 1000 < performance["ingress_ns"] < performance["enqueue_ns"]
    assert performance["reused_prompt_tokens"] == 2
    assert serving.engine.submitted[0].timestamps


def test_unobserved_responses_have_none_of_it(serving: Serving) -> None:
    body = serving.chat(return_token_ids=None, return_token_timestamps=False)
    assert not {"prompt_token_ids", "reused_prompt_tokens", "performance"} & body.keys()
    assert not {"token_ids", "token_timestamps_ns"} & body["choices"][0].keys()
    assert not serving.engine.submitted[0].timestamps


def test_observed_stream(serving: Serving) -> None:
    chunks = serving.chat_stream(return_token_ids=True, return_token_timestamps=True)
    assert chunks[0]["prompt_token_ids"] == list(serving.engine.submitted[0].prompt)
    assert all("prompt_token_ids" not in chunk for chunk in chunks[1:])
    observed = [c["choices"][0] for c in chunks if "token_ids" in c["choices"][0]]
    assert all(choice["delta"] == {} for choice in observed)
    assert [choice["token_ids"] for choice in observed] == [[token] for token in DONE_TOKENS]
    assert observed[1]["token_timestamps_ns"] == [200]
    assert text_of(chunks) == HELLO
    last = chunks[-1]
    assert last["choices"][0]["finish_reason"] == "stop"
    assert last["usage"]["completion_tokens"] == len(DONE_TOKENS)
    assert last["reused_prompt_tokens"] == 2
    assert last["performance"]["reused_prompt_tokens"] == 2


def test_observed_stream_with_usage_has_it_once(serving: Serving) -> None:
    chunks = serving.chat_stream(return_token_ids=True, stream_options={"include_usage": True})
    assert [bool(chunk["usage"]) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-2]["reused_prompt_tokens"] == 2
    assert "performance" not in chunks[-2]


def test_continuation(serving: Serving) -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Well"}]
    serving.chat(messages=messages, continue_final_message=True)
    assert WORDS.decode(serving.engine.submitted[0].prompt).endswith("assistant\nWell")


def test_template_arguments(make_serving: Any) -> None:
    serving = make_serving(model=frontend("{{ mood }}{{ enable_thinking }}-"))
    serving.chat(chat_template_kwargs={"mood": "calm"}, enable_thinking=False)
    assert WORDS.decode(serving.engine.submitted[0].prompt) == "calmFalse-"


def test_aliases_and_harmless_fields(serving: Serving) -> None:
    body = serving.chat(
        model="tiny",
        user="me",
        store=False,
        metadata={"a": "b"},
        service_tier="auto",
        n=1,
        logit_bias={},
        modalities=["text"],
        response_format={"type": "text"},
        tool_choice="none",
        stop=None,
    )
    assert body["model"] == "tiny"
