"""What the benchmarks read, count and take, without any server of a peer."""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.ceilings import Ceilings, ModelWork, model_work, parse
from benchmarks.client import Answer, EventStream, ServerError, Target, complete
from benchmarks.corpus import Prompts
from benchmarks.instructions import INSTRUCTIONS, held, hold
from benchmarks.machine import share_used
from benchmarks.rates import RateTest, llama_rates
from benchmarks.workloads import Samples, output_rate, rotated

ROOT = Path(__file__).parents[2]


def test_holding_reaches_what_is_built_and_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELIOS_ISA", "")
    assert held() == INSTRUCTIONS["native"]
    hold("avx2")
    assert held() == INSTRUCTIONS["avx2"]
    script = "from benchmarks.instructions import held; print(held().suffix, *held().llama_cpp)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.split() == ["-avx2", "-DGGML_NATIVE=OFF"], done.stderr


def event(text: str = "", usage: int | None = None) -> bytes:
    content: dict[str, object] = {"choices": [{"index": 0, "text": text}] if usage is None else []}
    if usage is not None:
        content["usage"] = {"completion_tokens": usage}
    return b"data: " + json.dumps(content).encode() + b"\n\n"


STREAM = (
    b": a comment\n\n" + event() + event("a") + event("b") + event(usage=2) + b"data: [DONE]\n\n"
)


@pytest.mark.parametrize("size", [1, 7, 64, len(STREAM)])
def test_a_stream_in_pieces_of_any_size(size: int) -> None:
    stream = EventStream()
    for start in range(0, len(STREAM), size):
        stream.feed(STREAM[start : start + size])
    assert stream.first is not None
    assert stream.completion_tokens() == 2


def test_an_event_without_text_is_no_first_token() -> None:
    stream = EventStream()
    stream.feed(event() + event())
    assert stream.first is None
    stream.feed(event("x"))
    assert stream.first is not None


def test_the_usage_survives_a_long_stream() -> None:
    stream = EventStream()
    for _ in range(5000):
        stream.feed(event("word"))
    stream.feed(event(usage=5000) + b"data: [DONE]\n\n")
    assert stream.completion_tokens() == 5000


def test_a_stream_without_usage_counts_nothing() -> None:
    stream = EventStream()
    stream.feed(event("x") + b"data: [DONE]\n\n")
    assert stream.completion_tokens() == 0


async def serve_once(answer: bytes, tokens: int) -> tuple[Answer, dict[str, object]]:
    """The client against a server that answers once with these bytes; the body it was sent."""
    seen: dict[str, object] = {}

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        seen.update(json.loads(await reader.readexactly(length)))
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        target = Target(server.sockets[0].getsockname()[1], "small", {"top_k": 1})
        return await complete(target, [5, 6], tokens), seen


def chunked(*parts: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in (*parts, b""))


@pytest.mark.parametrize(
    "answer",
    [
        chunked(STREAM),
        chunked(STREAM[:50], STREAM[50:51], STREAM[51:]),
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + STREAM,
    ],
)
def test_a_completion_over_http(answer: bytes) -> None:
    found, body = asyncio.run(serve_once(answer, 2))
    assert found.tokens == 2
    assert found.sent <= found.first <= found.last <= time.perf_counter()
    assert (body["prompt"], body["max_tokens"], body["top_k"]) == ([5, 6], 2, 1)
    assert body["ignore_eos"] is True


def test_too_few_tokens_are_an_error() -> None:
    with pytest.raises(ServerError, match="3 tokens were asked for, 2 came"):
        asyncio.run(serve_once(chunked(STREAM), 3))


def test_a_refusal_is_an_error_with_its_text() -> None:
    answer = b"HTTP/1.1 503 Service Unavailable\r\n\r\nloading"
    with pytest.raises(ServerError, match="loading"):
        asyncio.run(serve_once(answer, 2))


def test_prompts_never_repeat_a_beginning_within_a_turn_or_after_it() -> None:
    prompts = Prompts(list(range(1000)))
    taken = [tuple(p) for _ in range(30) for p in prompts.take(2, 40)]
    assert all(len(p) == 40 for p in taken)
    assert len({p[:8] for p in taken}) == len(taken)


def test_a_prompt_longer_than_half_the_text_is_refused() -> None:
    with pytest.raises(ValueError, match="too many"):
        Prompts(list(range(100))).take(1, 51)


def test_output_rate_counts_from_the_first_request_to_the_last_byte() -> None:
    answers = [Answer(1.0, 1.5, 3.0, 10), Answer(1.2, 1.9, 6.0, 40)]
    assert output_rate(answers) == pytest.approx(50 / 5)


def test_samples_keep_the_order_of_repeats() -> None:
    samples = Samples()
    for value in (3.0, 1.0, 2.0):
        samples.add("http.1", "helios", value)
    assert samples.values == {"http.1": {"helios": [3.0, 1.0, 2.0]}}


def test_every_server_is_first_in_turn() -> None:
    servers = ["a", "b", "c"]
    turns = [rotated(servers, turn) for turn in range(4)]
    assert [turn[0] for turn in turns] == ["a", "b", "c", "a"]
    assert all(sorted(turn) == servers for turn in turns)


def test_llama_bench_rows_by_test() -> None:
    rows: list[dict[str, float]] = [
        {"n_prompt": 512, "n_gen": 0, "avg_ts": 200.5},
        {"n_prompt": 0, "n_gen": 128, "avg_ts": 100},
    ]
    assert llama_rates(rows) == {"pp512": 200.5, "tg128": 100.0}
    assert RateTest((512,), 128).names == ["pp512", "tg128"]


def test_the_busy_share_counts_stolen_time_and_not_waiting() -> None:
    before = [0] * 10
    #        user nice system idle iowait irq softirq steal guest
    after = [10, 0, 5, 50, 25, 0, 0, 10, 7, 0]
    assert share_used(before, after) == pytest.approx(0.25)
    assert share_used(before, before) == 1.0 or share_used(before, before) == 1


def test_ceilings_take_the_fastest_byte_products() -> None:
    found = {"threads": 2, "read_bytes": 2e10, "f32_flops": 1.8e11}
    assert parse({**found, "i8_macs_16bit": 1e11, "i8_macs_dot": 3e11}).i8_macs == 3e11
    assert parse(found).i8_macs == 0.9e11


def test_shares_of_the_limits() -> None:
    limits = Ceilings(2, 20e9, 180e9, 200e9)
    work = ModelWork(prompt_macs=100_000_000, token_bytes=100_000_000)
    assert work.prefill_share(1000, limits) == pytest.approx(0.5)
    assert work.decode_share(100, limits) == pytest.approx(0.5)


def test_the_work_of_smollm2(smollm2_gguf: Path) -> None:
    work = model_work(smollm2_gguf)
    layers = 30 * (2 * 576 * 576 + 2 * 576 * 192 + 3 * 576 * 1536)
    assert work.prompt_macs == layers
    assert work.token_bytes == layers * 20 // 32 + 49152 * 576 * 34 // 32
