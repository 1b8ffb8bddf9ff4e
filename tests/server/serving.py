"""Everything between a request and the scripted engine, for tests."""

import asyncio
import json
from collections.abc import Callable
from types import TracebackType
from typing import Any

import httpx
from scripted_engine import Script, ScriptedEngine, answering
from small_tokenizers import END, byte_level

from helios.contract.prepared import ServingDefaults
from helios.engine.messages import Generate
from helios.frontend.model import Frontend
from helios.frontend.parsing import ParserFactory, plain_parser
from helios.frontend.prompt import ChatPrompts
from helios.frontend.template import Template
from helios.frontend.tokenizer import Tokenizer
from helios.server.app import build_app
from helios.server.service import ServedModel, Service
from helios.server.settings import Limits

WORDS = Tokenizer(byte_level())
EOS = WORDS.token_id(END) or 0
HELLO = "Hello, wörld 🙂!"
CONTEXT = 256
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def frontend(
    template: str | None = CHATML, parsers: ParserFactory = plain_parser, **options: Any
) -> Frontend:
    chat = None if template is None else ChatPrompts(WORDS, Template(template), **options)
    return Frontend(WORDS, chat, parsers, frozenset({EOS}))


class Serving:
    """One application and its engine."""

    def __init__(
        self,
        text: str | Callable[[Generate], str] = HELLO,
        *,
        script: Script | None = None,
        model: Frontend | None = None,
        limits: Limits | None = None,
        defaults: ServingDefaults | None = None,
        api_key: str | None = None,
        engine: Any = None,
    ) -> None:
        self.engine: Any = engine or ScriptedEngine(script or answering(WORDS, text, EOS))
        served = ServedModel(
            "small",
            ("tiny",),
            CONTEXT,
            WORDS.vocabulary,
            defaults or ServingDefaults(),
            model or frontend(),
            numerics="a16",
            created=5,
        )
        self.service = Service(served, self.engine, limits)
        self.app = build_app(self.service, api_key=api_key)

    def __enter__(self) -> "Serving":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.engine.stop()
        self.service.close()

    def client(self) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://helios")

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """One request on a loop of its own."""
        self.service._bell = None

        async def go() -> httpx.Response:
            async with self.client() as client:
                return await client.request(method, path, **options)

        return asyncio.run(go())

    def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        return self.request("POST", path, json=body, **options)

    def chat(self, text: str = "hi", **fields: Any) -> Any:
        """A chat's body; asserts success."""
        fields.setdefault("messages", [{"role": "user", "content": text}])
        response = self.post("/v1/chat/completions", {"model": "small", **fields})
        assert response.status_code == 200, response.text
        return response.json()

    def chat_stream(self, text: str = "hi", **fields: Any) -> list[Any]:
        """A chat's chunks; asserts that the stream ends as it should."""
        fields.setdefault("messages", [{"role": "user", "content": text}])
        body = {"model": "small", "stream": True, **fields}
        return events(self.post("/v1/chat/completions", body))

    def complete(self, prompt: Any = "once", **fields: Any) -> Any:
        """A completion's body; asserts success."""
        response = self.post("/v1/completions", {"model": "small", "prompt": prompt, **fields})
        assert response.status_code == 200, response.text
        return response.json()

    def complete_stream(self, prompt: Any = "once", **fields: Any) -> list[Any]:
        """A completion's chunks."""
        body = {"model": "small", "prompt": prompt, "stream": True, **fields}
        return events(self.post("/v1/completions", body))


def events(response: httpx.Response, *, done: bool = True) -> list[Any]:
    """The data of an event stream."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    parts = response.text.split("\n\n")
    assert parts.pop() == ""
    assert all(part.startswith("data: ") for part in parts)
    data = [part.removeprefix("data: ") for part in parts]
    assert (data[-1] == "[DONE]") == done
    assert data.count("[DONE]") == done
    return [json.loads(item) for item in data[: len(data) - done]]
