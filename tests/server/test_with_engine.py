"""The server over the real engine and scheduler, on the simulated device."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from serving import CONTEXT, WORDS, Serving, events, frontend

from helios.contract.operation import Operation
from helios.contract.submission import Geometry, Variant
from helios.engine.engine import Engine
from helios.runtime.simulated import Faults, SimulatedDevice
from helios.server.settings import Limits

SHAPE = Geometry(
    context_tokens=CONTEXT,
    page_tokens=8,
    pages=256,
    slots=4,
    snapshots=4,
    vocabulary=WORDS.vocabulary,
    input_vocabulary=WORDS.vocabulary,
    variants=tuple(
        Variant(operation.name.lower(), operation, 4, 4 if operation is Operation.DECODE else 16)
        for operation in (
            Operation.INITIALIZE,
            Operation.RESUME,
            Operation.RESTORE,
            Operation.PREFILL,
            Operation.SCORED_PREFILL,
            Operation.DECODE,
            Operation.MIXED,
        )
    ),
)
CHAT = "/v1/chat/completions"


class Simulated(Serving):
    """A service whose engine is real and whose device is not."""

    def __init__(self, faults: Faults | None = None, shape: Geometry = SHAPE) -> None:
        model = frontend()
        device = SimulatedDevice(shape) if faults is None else SimulatedDevice(shape, faults=faults)
        engine = Engine(device, queue_capacity=64, monitor_factory=model.monitor)
        super().__init__(engine=engine, model=model, limits=Limits(64, 4))

    def __enter__(self) -> "Simulated":
        return self

    def __exit__(self, *details: Any) -> None:
        self.engine.close()
        self.service.close()


@pytest.fixture
def simulated() -> Iterator[Simulated]:
    with Simulated() as simulated:
        yield simulated


def chat(seed: int, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"Tell me about {seed}."}]
    body = {"model": "small", "messages": messages, "max_tokens": 24, "seed": seed}
    return {**body, "ignore_eos": True, **fields}


def content(chunks: list[Any]) -> str:
    return "".join(c["choices"][0]["delta"].get("content", "") for c in chunks)


def test_many_requests_at_once_answer_as_they_do_alone(simulated: Simulated) -> None:
    async def together() -> list[httpx.Response]:
        async with simulated.client() as client:
            bodies = [chat(seed, stream=seed % 2 == 0) for seed in range(12)]
            return await asyncio.gather(*[client.post(CHAT, json=body) for body in bodies])

    simulated.service._bell = None
    responses = asyncio.run(together())
    for seed, response in enumerate(responses):
        alone = simulated.post(CHAT, chat(seed)).json()["choices"][0]["message"]["content"]
        if seed % 2:
            assert response.json()["choices"][0]["message"]["content"] == alone
        else:
            assert content(events(response)) == alone
    assert simulated.service.admission.active == 0


def test_string_stops_end_in_the_engine(simulated: Simulated) -> None:
    whole = simulated.post(CHAT, chat(3, return_token_ids=True)).json()
    text = whole["choices"][0]["message"]["content"]
    stop = text[4:7]
    assert len(stop) == 3
    stopped = simulated.post(CHAT, chat(3, stop=stop, return_token_ids=True)).json()
    choice = stopped["choices"][0]
    assert choice["message"]["content"] == text[: text.index(stop)]
    assert choice["finish_reason"] == "stop"
    ids, all_ids = choice["token_ids"], whole["choices"][0]["token_ids"]
    assert ids == all_ids[: len(ids)]
    assert stopped["usage"]["completion_tokens"] == len(ids) < len(all_ids)


def test_token_stops_end_in_the_engine(simulated: Simulated) -> None:
    ids = simulated.post(CHAT, chat(5, return_token_ids=True)).json()["choices"][0]["token_ids"]
    body = chat(5, stop_token_sequences=[ids[3:5]], return_token_ids=True)
    choice = simulated.post(CHAT, body).json()["choices"][0]
    assert choice["token_ids"] == ids[:5]
    assert choice["message"]["content"] == shown(ids[:3])


def shown(tokens: list[int]) -> str:
    return WORDS.decode([token for token in tokens if token not in WORDS.special_tokens])


def test_scores_come_from_the_device(simulated: Simulated) -> None:
    body = {"model": "small", "prompt": [5, 6, 7], "max_tokens": 2, "echo": True, "logprobs": 2}
    scores = simulated.post("/v1/completions", body).json()["choices"][0]["logprobs"]
    assert scores["token_logprobs"][0] is None
    assert all(value <= 0 for value in scores["token_logprobs"][1:])
    assert 2 <= len(scores["top_logprobs"][1]) <= 3
    body["max_tokens"] = 0
    alone = simulated.post("/v1/completions", body).json()["choices"][0]["logprobs"]
    assert alone["token_logprobs"] == scores["token_logprobs"][:3]


def test_times_are_in_order(simulated: Simulated) -> None:
    body = chat(1, return_token_ids=True, return_token_timestamps=True)
    answer = simulated.post(CHAT, body).json()
    performance = answer["performance"]
    times = answer["choices"][0]["token_timestamps_ns"]
    assert [performance["ingress_ns"], performance["enqueue_ns"], *times] == sorted(
        [performance["ingress_ns"], performance["enqueue_ns"], *times]
    )
    assert len(times) == len(answer["choices"][0]["token_ids"])


def test_reuse_is_reported(simulated: Simulated) -> None:
    body = chat(2, return_token_ids=True)
    first, second = (simulated.post(CHAT, body).json() for _ in range(2))
    assert first["reused_prompt_tokens"] == 0
    assert second["reused_prompt_tokens"] > 0
    cached = second["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached == second["reused_prompt_tokens"]
    assert first["choices"] == second["choices"]


def test_what_the_pool_can_never_hold_is_503() -> None:
    with Simulated(shape=replace(SHAPE, pages=4)) as simulated:
        response = simulated.post(CHAT, chat(1))
        assert response.status_code == 503
        assert response.json()["error"]["code"] == "admission_rejected"
        chunks = events(simulated.post(CHAT, chat(1, stream=True)), done=False)
        assert chunks[-1]["error"]["code"] == "admission_rejected"
        small = {"model": "small", "prompt": [5], "max_tokens": 4}
        assert simulated.post("/v1/completions", small).status_code == 200


def test_a_device_that_fails_gives_500_and_the_server_serves_on() -> None:
    with Simulated(Faults(errors=0.2)) as simulated:
        statuses = [simulated.post(CHAT, chat(seed)).status_code for seed in range(8)]
        assert set(statuses) <= {200, 500}
        assert 500 in statuses
        assert simulated.request("GET", "/v1/models").status_code == 200
        assert simulated.service.admission.active == 0


def test_engine_metrics_are_exposed(simulated: Simulated) -> None:
    simulated.chat(max_tokens=4)
    text = simulated.request("GET", "/metrics").text
    assert "helios_decode_steps_total" in text
    assert "helios_constrained_max_inflight 0.0" in text
    stats = simulated.engine.stats()
    assert f"helios_sampled_tokens_total {float(stats['sampled_tokens_total'])}" in text
    assert json.dumps(stats)
