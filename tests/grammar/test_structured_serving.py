"""Structured output of a real model over HTTP, at a temperature at which it hardly makes sense."""

import asyncio
import dataclasses
import json
import queue
import re
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from canitoolcall.probe import BUILTIN_SCENARIOS, probe
from hundred_schemas import RECURSIVE, SCHEMAS
from jsonschema import Draft202012Validator

from helios.core.reader import Core
from helios.runtime.cpu.device import CpuRuntime
from helios.runtime.loader import LoadOptions
from helios.server.app import build_app
from helios.server.assembly import assemble
from helios.server.lifecycle import HttpServer
from helios.server.settings import Limits

ASK: Any = [{"role": "user", "content": "Answer."}]
TOGETHER = 16
BEYOND_THE_MODEL = {"parallel-calls", "reasoning-then-call"}
"""What so small a model does not do, whatever it is forced to: it makes one call where two are
asked for, and does not find the end of a free text."""


@pytest.fixture(scope="module")
def address(smollm2_core: Core) -> Iterator[str]:
    options = LoadOptions(context=2048, concurrency=TOGETHER, pages=640, snapshots=8)
    assembly = assemble(smollm2_core, CpuRuntime(), options, Limits(max_active=TOGETHER))
    ready: queue.SimpleQueue[str] = queue.SimpleQueue()
    server = HttpServer(build_app(assembly.service), port=0, ready=ready.put)
    thread = threading.Thread(target=server.run)
    thread.start()
    yield ready.get(timeout=60)
    server.stop()
    thread.join(60)
    assembly.engine.close()
    assembly.service.close()


@pytest.fixture(scope="module")
def model(smollm2_core: Core) -> str:
    return smollm2_core.contract.served_id


@pytest.fixture(scope="module")
def client(address: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client:
        yield client


def together(address: str, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Chat answers, many at a time: whole or put together from a stream."""

    async def all_of_them() -> list[dict[str, Any]]:
        limits = httpx.Limits(max_connections=TOGETHER)
        async with httpx.AsyncClient(base_url=address, limits=limits, timeout=600) as client:
            return await asyncio.gather(*[ask(client, body) for body in bodies])

    return asyncio.run(all_of_them())


async def ask(client: httpx.AsyncClient, body: dict[str, Any]) -> dict[str, Any]:
    response = await client.post("/v1/chat/completions", json=body)
    assert response.status_code == 200, response.text
    if not body.get("stream"):
        choice = response.json()["choices"][0]
        return {"content": choice["message"]["content"], "reason": choice["finish_reason"]}
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    choices = [json.loads(line)["choices"][0] for line in lines]
    content = "".join(choice["delta"].get("content", "") for choice in choices)
    return {"content": content, "reason": choices[-1]["finish_reason"]}


def body_of(model: str, number: int, *, stream: bool) -> dict[str, Any]:
    """A request for one of the schemas. Recursive ones go without whitespace, of which at such a
    temperature most of an answer consists."""
    body: dict[str, Any] = {
        "model": model,
        "messages": ASK,
        "temperature": 1.5,
        "seed": number,
        "stream": stream,
        "max_tokens": 1500,
    }
    schema = SCHEMAS[number]
    if schema in RECURSIVE:
        outputs = {"json": schema, "disable_any_whitespace": True}
        return body | {"structured_outputs": outputs}
    wanted = {"name": "answer", "strict": True, "schema": schema}
    return body | {"response_format": {"type": "json_schema", "json_schema": wanted}}


def test_answers_validate_for_a_hundred_schemas(address: str, model: str) -> None:
    """Streamed or not, the answer is the same and conforms."""
    numbers = range(len(SCHEMAS))
    assert len(numbers) == 100
    bodies = [body_of(model, n, stream=stream) for n in numbers for stream in (False, True)]
    answers = together(address, bodies)
    for number, whole, streamed in zip(numbers, answers[::2], answers[1::2], strict=True):
        assert whole == streamed
        assert whole["reason"] == "stop", (SCHEMAS[number], whole)
        Draft202012Validator(SCHEMAS[number]).validate(json.loads(whole["content"]))


def test_an_answer_depends_on_its_seed_alone(address: str, model: str) -> None:
    """Neither company, nor a cached prefix, nor a plain request in the batch changes it."""
    bodies = [body_of(model, number, stream=False) for number in (12, 44, 57, 63, 92)]
    alone = [together(address, [body])[0] for body in bodies]
    fresh = [body | {"cache_salt": f"new-{n}"} for n, body in enumerate(bodies)]
    plain = [
        {"model": model, "messages": ASK, "max_tokens": 40, "seed": n, "ignore_eos": True}
        for n in range(6)
    ]
    mixed = together(address, [*plain, *fresh])
    assert mixed[len(plain) :] == alone
    counters = httpx.get(f"{address}/metrics").text
    assert re.search(r"constrained_max_inflight 1\.0$", counters, re.MULTILINE)
    steps = re.search(r"mixed_grammar_decode_steps_total ([0-9.]+)$", counters, re.MULTILINE)
    assert steps is not None
    assert float(steps[1]) > 0


def test_every_kind_of_demand(client: openai.OpenAI, model: str) -> None:
    def answer(**demand: Any) -> str:
        made = client.chat.completions.create(
            model=model,
            messages=ASK,
            temperature=1.5,
            seed=7,
            max_tokens=60,
            extra_body={"structured_outputs": demand},
        )
        assert made.choices[0].finish_reason == "stop"
        return made.choices[0].message.content or ""

    assert re.fullmatch(r"[A-Z]{2}[0-9]{3}", answer(regex="[A-Z]{2}[0-9]{3}"))
    assert answer(choice=["left", "right"]) in ("left", "right")
    assert answer(choice=["<|im_end|>\n</s>"]) == "<|im_end|>\n</s>"
    lark = 'start: WORD ("+" WORD){1,3}\nWORD: /[a-z]{1,4}/\n'
    assert re.fullmatch(r"[a-z]{1,4}(\+[a-z]{1,4}){1,3}", answer(grammar=lark))
    assert json.loads(answer(json={"const": [1, "é🚀"]})) == [1, "é🚀"]


def test_options_beside_a_grammar(client: openai.OpenAI, model: str) -> None:
    demand = {"guided_regex": "[ab]{4}"}
    made = client.chat.completions.create(
        model=model,
        messages=ASK,
        n=3,
        seed=1,
        temperature=2,
        logprobs=True,
        top_logprobs=2,
        extra_body=demand | {"ignore_eos": True},
    )
    for choice in made.choices:
        assert re.fullmatch("[ab]{4}", choice.message.content or "")
        assert choice.finish_reason == "stop"
        assert choice.logprobs is not None
        scored = "".join(score.token for score in choice.logprobs.content or [])
        assert scored == choice.message.content
    text = client.completions.create(
        model=model, prompt="Once", max_tokens=20, extra_body=demand | {"min_tokens": 15}
    )
    assert re.fullmatch("[ab]{4}", text.choices[0].text)


def test_structured_answers_of_the_openai_client(client: openai.OpenAI, model: str) -> None:
    from pydantic import BaseModel, Field

    class Person(BaseModel):
        name: str = Field(max_length=12)
        age: int = Field(ge=0, le=120)

    made = client.chat.completions.parse(
        model=model, messages=ASK, response_format=Person, temperature=1.5, seed=3, max_tokens=80
    )
    assert isinstance(made.choices[0].message.parsed, Person)


def test_conformance_probe_with_forced_calls(address: str, model: str) -> None:
    """Calls are forced where a scenario wants one; the others leave the model its choice."""
    scenarios = [
        dataclasses.replace(scenario, tool_choice="required")
        if scenario.expect.tool_names and scenario.tool_choice == "auto"
        else scenario
        for scenario in BUILTIN_SCENARIOS
        if scenario.id not in BEYOND_THE_MODEL
    ]
    report = probe(f"{address}/v1", model, scenarios=scenarios, timeout_s=300, concurrency=4)
    problems = [o.to_dict() for o in report.outcomes if o.status != "pass" or o.warnings]
    assert not problems
    assert len(report.outcomes) == 3 * len(scenarios)


def test_one_call_where_parallel_ones_are_not_wanted(client: openai.OpenAI, model: str) -> None:
    tools: Any = [{"type": "function", "function": {"name": "ping"}}]
    made = client.chat.completions.create(
        model=model,
        messages=ASK,
        tools=tools,
        tool_choice="required",
        parallel_tool_calls=False,
        temperature=1.5,
        seed=2,
    )
    calls = made.choices[0].message.tool_calls
    assert calls is not None
    assert [(call.function.name, call.function.arguments) for call in calls] == [("ping", "{}")]  # type: ignore[union-attr]
    assert made.choices[0].finish_reason == "tool_calls"
    assert not made.choices[0].message.content
