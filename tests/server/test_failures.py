"""Full servers, failing engines, and clients that leave."""

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from scripted_engine import answering
from serving import EOS, HELLO, WORDS, Serving, events

from helios.engine.ingress import QueueFull
from helios.engine.messages import (
    Event,
    Failed,
    FailureKind,
    Finished,
    FinishReason,
    Generate,
    Tokens,
)
from helios.errors import DeviceError, RequestError
from helios.server.settings import Limits

CHAT = "/v1/chat/completions"
BODY = {"model": "small", "messages": [{"role": "user", "content": "hi"}]}


def failing(kind: FailureKind, after: int) -> Callable[[Generate], Iterator[list[Event]]]:
    def script(request: Generate) -> Iterator[list[Event]]:
        for token in WORDS.encode(HELLO)[:after]:
            yield [Tokens(request.id, (token,))]
        yield [Failed(request.id, kind, "it broke")]

    return script


def endless(request: Generate) -> Iterator[list[Event]]:
    while True:
        time.sleep(0.001)  # the engine's pace, lest the events of a slow reader fill the memory
        yield [Tokens(request.id, tuple(WORDS.encode("more ")))]


def patient(request: Generate) -> Iterator[list[Event]]:
    """A hundred steps, then the end."""
    steps = endless(request)
    for _ in range(100):
        yield next(steps)
    yield [Finished(request.id, FinishReason.EOS, len(request.prompt), 100)]


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [(FailureKind.ADMISSION, 503, "admission_rejected"), (FailureKind.EXECUTION, 500, None)],
)
def test_failures_have_a_status(
    make_serving: Any, kind: FailureKind, status: int, code: str | None
) -> None:
    serving = make_serving(script=failing(kind, 2))
    response = serving.post(CHAT, BODY)
    assert response.status_code == status
    error = response.json()["error"]
    assert (error["code"], error["param"]) == (code, None)
    assert "it broke" in error["message"]
    assert serving.engine.cancelled == []  # it has ended by itself


@pytest.mark.parametrize("kind", FailureKind)
def test_failures_after_headers_are_one_event(make_serving: Any, kind: FailureKind) -> None:
    serving = make_serving(script=failing(kind, 2))
    response = serving.post(CHAT, {**BODY, "stream": True})
    chunks = events(response, done=False)
    assert [list(chunk) == ["error"] for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert len(chunks) > 2
    assert "it broke" in chunks[-1]["error"]["message"]
    assert serving.service.admission.active == 0


def test_one_failed_choice_ends_the_others(make_serving: Any) -> None:
    def script(request: Generate) -> Iterator[list[Event]]:
        return endless(request) if request.id == 1 else failing(FailureKind.EXECUTION, 1)(request)

    serving = make_serving(script=script)
    assert serving.post(CHAT, {**BODY, "n": 2}).status_code == 500
    assert serving.engine.cancelled == [1]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (QueueFull("full"), 429),
        (RequestError("no", field="top_logprobs"), 400),
        (DeviceError("gone"), 500),
    ],
)
def test_refused_submissions(make_serving: Any, error: Exception, status: int) -> None:
    serving = make_serving()
    serving.engine.refuse = error
    response = serving.post(CHAT, {**BODY, "stream": True})
    assert response.status_code == status
    assert ("retry-after" in response.headers) == (status == 429)
    assert serving.service.admission.active == 0


def test_a_submission_refused_halfway_cancels_the_rest(make_serving: Any) -> None:
    serving = make_serving(script=endless)
    submit = serving.engine.submit

    def limited(request: Generate, sink: Any) -> None:
        if len(serving.engine.submitted) == 2:
            raise QueueFull("full")
        submit(request, sink)

    serving.engine.submit = limited
    assert serving.post(CHAT, {**BODY, "n": 3}).status_code == 429
    assert serving.engine.cancelled == [1, 2]


def test_a_parser_that_breaks_is_the_servers_fault(make_serving: Any) -> None:
    serving = make_serving(script=broken_scores)
    body = {**BODY, "logprobs": True}
    assert serving.post(CHAT, body).json()["error"]["type"] == "server_error"
    chunks = events(serving.post(CHAT, {**body, "stream": True}), done=False)
    assert chunks[-1]["error"]["type"] == "server_error"
    assert len(serving.engine.cancelled) == 2


def broken_scores(request: Generate) -> Iterator[list[Event]]:
    """Tokens without the scores that were asked for."""
    yield from endless(request)


class Client:
    """One ASGI request whose body is complete, and whose end the test decides."""

    def __init__(self, serving: Serving, body: dict[str, Any], *, slow: bool = False) -> None:
        self._serving = serving
        self._body = body
        self._sent = False
        self.leave = asyncio.Event()
        self.may_write = asyncio.Event()
        self.writing = asyncio.Event()
        self.messages: list[Any] = []
        if not slow:
            self.may_write.set()

    def start(self) -> "asyncio.Task[None]":
        scope = {
            "type": "http",
            "method": "POST",
            "path": CHAT,
            "headers": [],
            "query_string": b"",
            "root_path": "",
            "server": ("helios", 80),
            "scheme": "http",
            "http_version": "1.1",
        }
        return asyncio.ensure_future(self._serving.app(scope, self._receive, self._send))

    async def _receive(self) -> Any:
        if not self._sent:
            self._sent = True
            return {
                "type": "http.request",
                "body": json.dumps(self._body).encode(),
                "more_body": False,
            }
        await self.leave.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.messages.append(message)
        if message["type"] == "http.response.body":
            self.writing.set()
            await self.may_write.wait()

    @property
    def text(self) -> str:
        return b"".join([m.get("body", b"") for m in self.messages]).decode()


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(test(), 30)

    asyncio.run(bounded())


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_ends_its_generation(make_serving: Any, stream: bool) -> None:
    serving = make_serving(script=endless)

    async def test() -> None:
        client = Client(serving, {**BODY, "stream": stream})
        task = client.start()
        while not serving.engine.submitted:
            await asyncio.sleep(0)
        client.leave.set()
        await task
        assert serving.engine.cancelled == [1]
        assert serving.service.admission.active == 0
        assert "[DONE]" not in client.text

    run(test)


def test_a_client_that_leaves_while_it_does_not_read(make_serving: Any) -> None:
    serving = make_serving(script=endless)

    async def test() -> None:
        client = Client(serving, {**BODY, "stream": True}, slow=True)
        task = client.start()
        await client.writing.wait()
        client.leave.set()
        await task
        assert serving.engine.cancelled == [1]
        assert serving.service.admission.active == 0

    run(test)


def test_a_server_that_stops_ends_its_generations(make_serving: Any) -> None:
    serving = make_serving(script=endless)

    async def test() -> None:
        client = Client(serving, {**BODY, "stream": True})
        task = client.start()
        await client.writing.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert serving.engine.cancelled == [1]
        assert serving.service.admission.active == 0

    run(test)


def test_slow_readers_lose_nothing_and_block_nobody(make_serving: Any) -> None:
    text = "slow but sure " * 10
    serving = make_serving(text=text)

    async def test() -> None:
        slow = Client(serving, {**BODY, "stream": True}, slow=True)
        fast = Client(serving, {**BODY, "stream": True})
        slow_task = slow.start()
        await slow.writing.wait()
        await fast.start()
        assert "[DONE]" in fast.text
        assert "[DONE]" not in slow.text
        assert serving.service.admission.active == 1  # until its reader has everything
        slow.may_write.set()
        await slow_task
        contents = [chunk["choices"][0]["delta"].get("content", "") for chunk in data(slow.text)]
        assert "".join(contents) == text
        # What came meanwhile went out together.
        assert len(slow.messages) < len(fast.messages) + 5
        assert len(slow.messages) < len(contents)
        assert serving.service.admission.active == 0

    run(test)


def data(text: str) -> list[Any]:
    parts = [part.removeprefix("data: ") for part in text.split("\n\n") if part]
    assert parts[-1] == "[DONE]"
    return [json.loads(part) for part in parts[:-1]]


def test_full_ingress(make_serving: Any) -> None:
    serving = make_serving(script=endless, limits=Limits(queue_capacity=1, max_active=1))

    async def test() -> None:
        clients = [Client(serving, {**BODY, "stream": True}) for _ in range(2)]
        tasks = [client.start() for client in clients]
        for client in clients:
            await client.writing.wait()
        third = Client(serving, BODY)
        await third.start()
        assert third.messages[0]["status"] == 429
        assert (b"retry-after", b"1") in third.messages[0]["headers"]
        assert "overloaded" in third.text
        clients[0].leave.set()
        await tasks[0]
        fourth = Client(serving, {**BODY, "stream": True})
        tasks.append(fourth.start())
        await fourth.writing.wait()
        assert fourth.messages[0]["status"] == 200
        for client in (clients[1], fourth):
            client.leave.set()
        await asyncio.gather(*tasks)

    run(test)


def test_a_body_that_never_ends_is_let_go(serving: Serving) -> None:
    async def test() -> None:
        client = Client(serving, BODY)
        client._sent = True
        task = client.start()
        client.leave.set()
        await task
        assert client.messages == []
        assert serving.engine.submitted == []

    run(test)


def test_requests_that_the_engine_cancels_are_failures(make_serving: Any) -> None:
    def script(request: Generate) -> Iterator[list[Event]]:
        yield [Finished(request.id, FinishReason.CANCELLED, 1, 0)]

    assert make_serving(script=script).post(CHAT, BODY).status_code == 500


# ---- silence ---------------------------------------------------------------------------------


class Mute:
    """A model that says nothing until it may."""

    def __init__(self) -> None:
        self.may_speak = threading.Event()

    def __call__(self, request: Generate) -> Iterator[list[Event]]:
        while not self.may_speak.wait(0.01):
            yield []
        yield from answering(WORDS, HELLO, EOS)(request)


def spoken(client: Client) -> list[str]:
    """What a stream says, comments as they are."""
    return client.text.split("\n\n")[:-1]


def test_a_silent_stream_is_kept_alive_by_comments(make_serving: Any) -> None:
    mute = Mute()
    serving = make_serving(script=mute, limits=Limits(sse_keep_alive=0.01))

    async def test() -> None:
        client = Client(serving, {**BODY, "stream": True})
        task = client.start()
        while client.text.count(": keep-alive\n\n") < 3:
            await asyncio.sleep(0)
        assert client.messages[0]["type"] == "http.response.start"
        assert set(spoken(client)) == {": keep-alive"}
        mute.may_speak.set()
        await task
        said = [part for part in spoken(client) if part != ": keep-alive"]
        assert all(part.startswith("data: ") for part in said)
        assert said[-1] == "data: [DONE]"
        chunks = [json.loads(part.removeprefix("data: ")) for part in said[:-1]]
        deltas = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks]
        assert "".join(deltas) == HELLO
        assert not client.messages[-1]["more_body"]
        assert [m["more_body"] for m in client.messages[1:]].count(False) == 1

    run(test)


def test_nothing_is_added_while_a_client_reads_slowly_or_where_it_is_not_wanted(
    make_serving: Any,
) -> None:
    async def slow() -> None:
        serving = make_serving(script=endless, limits=Limits(sse_keep_alive=0.001))
        client = Client(serving, {**BODY, "stream": True}, slow=True)
        task = client.start()
        await client.writing.wait()
        before = len(client.messages)
        await asyncio.sleep(0.05)
        assert len(client.messages) == before, "one write at a time"
        client.leave.set()
        await task

    async def unwanted() -> None:
        mute = Mute()
        serving = make_serving(script=mute, limits=Limits(sse_keep_alive=0))
        client = Client(serving, {**BODY, "stream": True})
        task = client.start()
        while not serving.engine.submitted:
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        mute.may_speak.set()
        await task
        assert "keep-alive" not in client.text

    run(slow)
    run(unwanted)


def test_a_client_that_leaves_a_silent_stream_ends_it(make_serving: Any) -> None:
    serving = make_serving(script=Mute(), limits=Limits(sse_keep_alive=0.01))

    async def test() -> None:
        client = Client(serving, {**BODY, "stream": True})
        task = client.start()
        while "keep-alive" not in client.text:
            await asyncio.sleep(0)
        client.leave.set()
        await task
        after = len(client.messages)
        await asyncio.sleep(0.05)
        assert len(client.messages) == after
        assert len(serving.engine.cancelled) == 1

    run(test)
