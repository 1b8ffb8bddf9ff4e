"""The product as its users meet it: `helios serve` in a process of its own, and real clients."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import openai
import pytest

GRAVITY = (
    "Gravity is a fundamental concept in physics that describes the curvature of spacetime caused "
    "by the presence of mass."
)
QUESTION = [{"role": "user", "content": "What is gravity?"}]


def helios(*words: str, **options: object) -> subprocess.Popen[str]:
    """The command line in a process of its own."""
    code = "from helios.cli.main import main; main()"
    command = [sys.executable, "-c", code, *words]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload, no-any-return]


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[tuple[str, subprocess.Popen[str], list[str]]]:
    """A server on a free port: its address, its process, and what it printed on the way."""
    environment = os.environ | {
        "HELIOS_HOME": str(folder / "home"),
        "HELIOS_CACHE": str(folder / "cache"),
        "COLUMNS": "200",
    }
    options = ("--port", "0", "--memory", "700MiB", *words)
    process = helios("serve", "smollm2", *options, env=environment)
    assert process.stderr is not None
    try:
        address, lines = _wait_until_ready(process.stderr)
        yield address, process, lines
    finally:
        process.kill()
        process.wait(timeout=30)
        process.stderr.close()


def _wait_until_ready(stream: IO[str]) -> tuple[str, list[str]]:
    lines = []
    for line in stream:
        lines.append(line)
        if found := re.search(r"ready .* at (http://\S+)", line):
            return found[1], lines
    raise AssertionError("the server ended: " + "".join(lines))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("user")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    with serving(folder) as (address, _, _):
        yield address


@pytest.fixture(scope="module")
def client(server: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server}/v1", api_key="unused", max_retries=0)


def test_openai_client_gets_the_answer(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="smollm2", messages=QUESTION, temperature=0, max_tokens=24
    )
    assert (answer.choices[0].message.content or "").startswith(GRAVITY)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (34, 24)


def test_openai_client_streams_the_same_answer(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="smollm2", messages=QUESTION, temperature=0)
    chunks = list(
        client.chat.completions.create(
            model="smollm2",
            messages=QUESTION,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    pieces = [c.choices[0].delta.content or "" for c in chunks if c.choices]
    assert len([p for p in pieces if p]) > 20
    assert "".join(pieces) == whole.choices[0].message.content
    assert "".join(pieces).startswith(GRAVITY)
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage
    assert whole.choices[0].finish_reason == "stop"


def test_completions_and_models(client: openai.OpenAI) -> None:
    names = [model.id for model in client.models.list().data]
    assert "smollm2" in names
    answer = client.completions.create(
        model="smollm2", prompt="The capital of France is", temperature=0, max_tokens=8
    )
    assert "Paris" in answer.choices[0].text


def test_a_seed_reproduces_over_http(client: openai.OpenAI) -> None:
    def ask(seed: int) -> str | None:
        answer = client.chat.completions.create(
            model="smollm2", messages=QUESTION, temperature=1.2, seed=seed, max_tokens=16
        )
        return answer.choices[0].message.content

    assert ask(1) == ask(1)
    assert ask(1) != ask(2)


def test_the_server_serves_on_after_bad_requests(client: openai.OpenAI, server: str) -> None:
    cases: list[tuple[dict[str, object], type[openai.APIStatusError], str]] = [
        ({"model": "nobody"}, openai.NotFoundError, "model"),
        ({"temperature": -1}, openai.BadRequestError, "temperature"),
        ({"max_tokens": -5}, openai.BadRequestError, "max_tokens"),
        ({"messages": "hello"}, openai.BadRequestError, "messages"),
        ({"messages": [{"role": "user", "content": "x " * 9000}]}, openai.BadRequestError, ""),
    ]
    for change, error, field in cases:
        request = {"model": "smollm2", "messages": QUESTION, "max_tokens": 2} | change
        with pytest.raises(error) as caught:
            client.chat.completions.create(**request)  # type: ignore[call-overload]
        assert caught.value.body is not None
        assert field in json.dumps(caught.value.body)
    for body in (b"{", b'{"temperature": NaN}'):
        request_ = urllib.request.Request(f"{server}/v1/chat/completions", body)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request_)
        assert refused.value.code == 400
    test_openai_client_gets_the_answer(client)


def test_a_client_that_leaves_frees_its_place(client: openai.OpenAI, server: str) -> None:
    for _ in range(3):
        stream = client.chat.completions.create(
            model="smollm2", messages=QUESTION, max_tokens=4000, stream=True
        )
        next(iter(stream))
        stream.close()
    test_openai_client_gets_the_answer(client)


def test_chat_command_talks_to_it(server: str) -> None:
    words = ("chat", "--url", server, "--temperature", "0", "--max-tokens", "24")
    once = helios(*words, "What is gravity?", stdout=subprocess.PIPE)
    assert once.communicate(timeout=60)[0].startswith(GRAVITY)
    conversation = helios(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    printed, _ = conversation.communicate(
        "What is gravity?\n/clear\nWhat is gravity?\n", timeout=60
    )
    assert printed.count(GRAVITY) == 2
    assert conversation.returncode == 0
    as_json = helios(*words, "--json", "What is gravity?", stdout=subprocess.PIPE)
    answer = json.loads(as_json.communicate(timeout=60)[0])
    assert answer["content"].startswith(GRAVITY)
    assert answer["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 24


def test_metrics_and_health(server: str, client: openai.OpenAI) -> None:
    with urllib.request.urlopen(f"{server}/metrics") as response:
        text = response.read().decode()
    assert "helios_" in text
    assert "gravity" not in text.lower()
    with urllib.request.urlopen(f"{server}/health") as response:
        health = json.load(response)
    assert health["status"] == "ok"
    memory = health["memory_bytes"]
    assert 0 < memory["committed"] <= memory["planned"] <= memory["budget"]
    with urllib.request.urlopen(f"{server}/v1/helios/plan") as response:
        report = json.load(response)
    assert report["plan"]["total"] == memory["planned"]
    assert report["failure"] is None
    assert {"contract", "plan", "weights"} <= {phase["name"] for phase in report["phases"]}


def test_second_start_uses_the_cache_and_an_interrupt_ends_it(server: str, folder: Path) -> None:
    cores = list((folder / "cache").iterdir())
    stamp = cores[0].stat().st_mtime_ns
    with serving(folder) as (_, process, _):
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
    assert list((folder / "cache").iterdir()) == cores
    assert cores[0].stat().st_mtime_ns == stamp
