"""What is wrong with a request is said in OpenAI's words, and the server serves on."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serving import CONTEXT, HELLO, Serving, frontend

from helios.server.settings import Limits

CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"
HI = [{"role": "user", "content": "hi"}]


def refused(response: Any, status: int = 400) -> Any:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    error = response.json()["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["message"]
    return error


def chat(**fields: Any) -> dict[str, Any]:
    return {"model": "small", "messages": HI, **fields}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": 2.1}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_p": 1.5}, "top_p"),
        ({"top_k": -2}, "top_k"),
        ({"min_p": -1}, "min_p"),
        ({"presence_penalty": 3}, "presence_penalty"),
        ({"frequency_penalty": -3}, "frequency_penalty"),
        ({"repetition_penalty": 0}, "repetition_penalty"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"max_completion_tokens": 0}, "max_completion_tokens"),
        ({"max_tokens": CONTEXT}, "max_tokens"),
        ({"n": 0}, "n"),
        ({"n": 129}, "n"),
        ({"seed": 1.5}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"stop": 5}, "stop"),
        ({"stop": [5]}, "stop[0]"),
        ({"stop": ""}, "stop"),
        ({"stop": ["a"] * 5}, "stop"),
        ({"stop": "a" * 4097}, "stop"),
        ({"stop": "a", "stop_token_ids": [1]}, "stop"),
        ({"stop": "a", "stop_token_sequences": [[1]]}, "stop"),
        ({"stop_token_ids": [99999]}, "stop_token_ids[0]"),
        ({"stop_token_ids": [-1]}, "stop_token_ids[0]"),
        ({"stop_token_sequences": [[]]}, "stop_token_sequences[0]"),
        ({"logit_bias": {"a": 1}}, "logit_bias.a"),
        ({"logit_bias": {"99999": 1}}, "logit_bias.99999[0]"),
        ({"logit_bias": {"5": 101}}, "logit_bias[...]"),
        ({"logit_bias": []}, "logit_bias"),
        ({"logprobs": 1}, "logprobs"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"prompt_logprobs": 1, "stream": True}, "prompt_logprobs"),
        ({"return_token_ids": 1}, "return_token_ids"),
        ({"return_token_timestamps": True}, "return_token_timestamps"),
        ({"return_token_ids": True, "n": 2}, "return_token_ids"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"stream_options": {"other": 1}}, "stream_options.other"),
        ({"priority": 101}, "priority"),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
        ({"messages": [*HI, {"role": "x", "content": ""}]}, "messages[1].role"),
        ({"tools": [{"type": "x"}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice"),
        ({"response_format": {"type": "yaml"}}, "response_format.type"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"reasoning_effort": "huge"}, "reasoning_effort"),
        ({"reasoning_effort": "high"}, "reasoning_effort"),
        ({"chat_template_kwargs": {"messages": []}}, "chat_template_kwargs.messages"),
        ({"continue_final_message": True}, "continue_final_message"),
        ({"frequency": 1}, "frequency"),
    ],
)
def test_chat_parameters(serving: Serving, fields: dict[str, Any], param: str) -> None:
    error = refused(serving.post(CHAT, chat(**fields)))
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert serving.engine.submitted == []
    assert serving.service.admission.active == 0


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": []}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": [5.5]}, "prompt[0]"),
        ({"prompt": [[]]}, "prompt"),
        ({"prompt": [5, "a"]}, "prompt[0]"),
        ({"prompt": [99999]}, "prompt[0]"),
        ({"prompt": ["a", [99999]]}, "prompt[1][0]"),
        ({"prompt": ["a"] * 65, "n": 2}, "prompt"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"suffix": "end"}, "suffix"),
        ({"best_of": 2}, "best_of"),
        ({"logprobs": True}, "logprobs"),
        ({"logprobs": 21}, "logprobs"),
        ({"prompt_logprobs": 1, "stream": True}, "prompt_logprobs"),
        ({"messages": []}, "messages"),
    ],
)
def test_completion_parameters(serving: Serving, fields: dict[str, Any], param: str) -> None:
    error = refused(serving.post(TEXT, {"model": "small", "prompt": "once", **fields}))
    assert error["param"] == param
    assert serving.engine.submitted == []


@pytest.mark.parametrize("path", [CHAT, TEXT])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"nonsense",
        b"[]",
        b"null",
        b'"text"',
        b"{}",
        b'{"model": "small", "temperature": NaN}',
        b'{"model": "small", "temperature": Infinity}',
        b'{"model": "small", "temperature": 1e999}',
        b'{"model": "\xff"}',
        b'{"model": "\\ud800"}',
        b'{"model": "\\udc00"}',
        b'{"messages": ' + b"[" * 100_000,
        b'{"model": "small"} {}',
    ],
)
def test_bodies_that_are_no_request(serving: Serving, path: str, content: bytes) -> None:
    refused(serving.request("POST", path, content=content))


def test_what_is_missing_is_named(serving: Serving) -> None:
    assert refused(serving.post(CHAT, {"messages": HI}))["param"] == "model"
    assert refused(serving.post(CHAT, {"model": "small"}))["param"] == "messages"
    assert refused(serving.post(TEXT, {"model": "small"}))["param"] == "prompt"


def test_unknown_fields_have_a_code(serving: Serving) -> None:
    assert refused(serving.post(CHAT, chat(guided_lines={})))["code"] == "unknown_parameter"


def test_unknown_model(serving: Serving) -> None:
    for path, body in ((CHAT, chat(model="other")), (TEXT, {"model": "other", "prompt": "x"})):
        error = refused(serving.post(path, body), 404)
        assert (error["code"], error["param"]) == ("model_not_found", "model")
        assert "small" in error["message"]


def test_over_long_prompts(serving: Serving) -> None:
    messages = [{"role": "user", "content": "x" * CONTEXT}]
    error = refused(serving.post(CHAT, chat(messages=messages)))
    assert (error["code"], error["param"]) == ("context_length_exceeded", "messages")
    error = refused(serving.post(TEXT, {"model": "small", "prompt": [5] * CONTEXT}))
    assert (error["code"], error["param"]) == ("context_length_exceeded", "prompt")
    error = refused(serving.post(CHAT, chat(max_tokens=CONTEXT)))
    assert (error["code"], error["param"]) == ("context_length_exceeded", "max_tokens")
    serving.complete([5] * (CONTEXT - 1), max_tokens=1)
    serving.complete([5] * CONTEXT, max_tokens=0, echo=True)


def test_templates_that_refuse(make_serving: Any) -> None:
    serving = make_serving(model=frontend("{{ raise_exception('no system role') }}"))
    error = refused(serving.post(CHAT, chat()))
    assert error["param"] == "messages"
    assert "no system role" in error["message"]


def test_models_without_a_template(make_serving: Any) -> None:
    serving = make_serving(model=frontend(None))
    assert "/v1/completions" in refused(serving.post(CHAT, chat()))["message"]
    assert serving.complete(max_tokens=100)["choices"][0]["text"] == HELLO


def test_large_bodies(make_serving: Any) -> None:
    serving = make_serving(limits=Limits(max_body_bytes=100))
    assert refused(serving.post(CHAT, chat(user="x" * 100)), 413)["code"] == "body_too_large"
    serving.complete(max_tokens=1)


def test_unknown_paths_and_methods(serving: Serving) -> None:
    refused(serving.request("GET", "/v1/nothing"), 404)
    refused(serving.request("GET", CHAT), 405)
    refused(serving.request("GET", "/v1/models/other"), 404)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
FIELDS = [
    *("messages", "prompt", "stream", "stream_options", "n", "max_tokens", "temperature", "top_p"),
    *("top_k", "logit_bias", "seed", "stop", "stop_token_ids", "min_tokens", "tools", "echo"),
    *("tool_choice", "response_format", "logprobs", "top_logprobs", "chat_template_kwargs"),
    *("return_token_ids", "reasoning_effort", "cache_salt", "suffix", "best_of", "other"),
]
PLAUSIBLE = st.sampled_from([0, 1, 2, True, "a", "auto", [1], ["a"], HI, {"type": "text"}])
BODIES = st.dictionaries(st.sampled_from(FIELDS), JSON | PLAUSIBLE, max_size=5)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(fields=BODIES, path=st.sampled_from([CHAT, TEXT]), named=st.booleans())
def test_random_bodies_never_break_the_server(
    fields: dict[str, Any], path: str, named: bool
) -> None:
    body: dict[str, Any] = {"messages": HI} if path == CHAT else {"prompt": "x"}
    body |= fields
    if named:
        body |= {"model": "small"}
    content = json.dumps(body).encode("utf-8", "surrogatepass")
    response = FUZZED.request("POST", path, content=content)
    assert response.status_code in (200, 400), response.text
    assert FUZZED.service.admission.active == 0


@settings(max_examples=100, derandomize=True, deadline=None)
@given(content=st.binary(max_size=60), path=st.sampled_from([CHAT, TEXT]))
def test_random_bytes_never_break_the_server(content: bytes, path: str) -> None:
    refused(FUZZED.request("POST", path, content=content))


FUZZED = Serving()
