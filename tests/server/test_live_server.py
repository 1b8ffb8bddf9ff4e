"""A real listener, its end, and the client that people use."""

import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from scripted_engine import answering
from serving import EOS, HELLO, WORDS, Serving

from helios.engine.messages import Event, Generate
from helios.errors import ConfigurationError
from helios.server.lifecycle import HttpServer
from helios.server.settings import Limits

HI: Any = [{"role": "user", "content": "hi"}]
HERE = Path(__file__).parent


@contextmanager
def listening(serving: Serving) -> Iterator[str]:
    """A server on a free port, in a thread."""
    ready: queue.SimpleQueue[str] = queue.SimpleQueue()
    with serving:
        server = HttpServer(serving.app, port=0, ready=ready.put)
        thread = threading.Thread(target=server.run)
        thread.start()
        assert ready.get(timeout=30) == server.address
        yield server.address
        server.stop()
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with listening(Serving()) as address:
        yield address


@pytest.fixture
def client(address: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_chat(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="small", messages=HI, temperature=0)
    assert answer.choices[0].message.content == HELLO
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == len(WORDS.encode(HELLO)) + 1


def test_chat_stream(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="small", messages=HI, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == HELLO
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens > 0


def test_comments_of_a_silent_stream_are_skipped() -> None:
    heard = threading.Event()

    def mute(request: Generate) -> Iterator[list[Event]]:
        while not heard.wait(0.01):
            yield []
        yield from answering(WORDS, HELLO, EOS)(request)

    def hear(response: httpx.Response) -> None:
        for line in response.iter_lines():
            if line == ": keep-alive":
                heard.set()
                return

    serving = Serving(script=mute, limits=Limits(sse_keep_alive=0.01))
    body = {"model": "small", "messages": HI, "stream": True}
    with (
        listening(serving) as address,
        openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client,
    ):
        stream = client.chat.completions.create(model="small", messages=HI, stream=True)
        with httpx.stream("POST", f"{address}/v1/chat/completions", json=body) as response:
            hear(response)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == HELLO


def test_chat_logprobs_and_choices(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="small", messages=HI, n=2, logprobs=True, top_logprobs=1, stop=["wör"], seed=3
    )
    assert [choice.message.content for choice in answer.choices] == ["Hello, "] * 2
    logprobs = answer.choices[1].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert logprobs.content[0].top_logprobs[0].logprob == 0


def test_completions(client: openai.OpenAI) -> None:
    answer = client.completions.create(
        model="small", prompt=["a", "b"], max_tokens=100, echo=True, logprobs=1
    )
    assert [choice.text for choice in answer.choices] == [f"a{HELLO}", f"b{HELLO}"]
    assert answer.choices[0].logprobs is not None
    assert answer.choices[0].logprobs.token_logprobs is not None
    stream = client.completions.create(model="small", prompt="a", max_tokens=100, stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream) == HELLO


def test_errors_are_the_clients_own(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="other", messages=HI)
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as wrong:
        client.chat.completions.create(model="small", messages=HI, temperature=-1)
    assert wrong.value.param == "temperature"
    assert [model.id for model in client.models.list()] == ["small", "tiny"]
    assert client.models.retrieve("tiny").id == "tiny"


def test_extra_fields_through_the_client(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="small", messages=HI, extra_body={"return_token_ids": True, "top_k": 5}
    )
    choice: Any = answer.choices[0]
    assert choice.token_ids == [*WORDS.encode(HELLO), EOS]


async def nothing(scope: Any, receive: Any, send: Any) -> None:
    """An application that is never run."""


def test_a_taken_port_is_said_to_be(address: str) -> None:
    port = int(address.rsplit(":", 1)[1])
    with pytest.raises(ConfigurationError, match=rf"127\.0\.0\.1:{port}"):
        HttpServer(nothing, port=port)
    with pytest.raises(ConfigurationError, match=r"no\.such\.host"):
        HttpServer(nothing, "no.such.host.invalid")


PROGRAM = """
import sys
sys.path[:0] = sys.argv[1:3]
from serving import Serving
from test_failures import endless, patient
from helios.server.lifecycle import HttpServer
from helios.server.settings import Limits
scripts = {"endless": endless, "patient": patient}
with Serving(script=scripts.get(sys.argv[3])) as serving:
    HttpServer(
        serving.app, port=0, drain_seconds=float(sys.argv[4]),
        ready=lambda address: print(address, flush=True),
    ).run()
    print("ended", serving.engine.cancelled, flush=True)
"""


def start(script: str, drain: float) -> tuple["subprocess.Popen[str]", str]:
    paths = [str(HERE), str(HERE.parent / "frontend")]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *paths, script, str(drain)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_an_idle_server(number: signal.Signals) -> None:
    process, address = start("hello", 5)
    assert httpx.get(f"{address}/health").status_code == 200
    process.send_signal(number)
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, output) == (0, "ended []\n"), errors


def read_stream(address: str, process: "subprocess.Popen[str]", received: list[str]) -> None:
    """Read a stream, and send the signal while it runs."""
    body = {"model": "small", "messages": HI, "stream": True}
    path = f"{address}/v1/chat/completions"
    with httpx.stream("POST", path, json=body, timeout=30) as response:
        for line in response.iter_lines():
            received.append(line)
            if len(received) == 5:
                process.send_signal(signal.SIGINT)


def test_a_signal_lets_responses_end() -> None:
    process, address = start("patient", 30)
    received: list[str] = []
    read_stream(address, process, received)
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, output) == (0, "ended []\n"), errors
    assert "data: [DONE]" in received


def test_a_signal_drops_what_does_not_end_in_time() -> None:
    process, address = start("endless", 0.2)
    received: list[str] = []
    with pytest.raises(httpx.RemoteProtocolError):
        read_stream(address, process, received)
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, output) == (0, "ended [1]\n"), errors
    assert "1 running task" in errors
    assert "Traceback" not in errors
    assert json.loads(received[0].removeprefix("data: "))["object"] == "chat.completion.chunk"
