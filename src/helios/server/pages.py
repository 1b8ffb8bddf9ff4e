"""The small endpoints: models, health, metrics, the chat page and the API's description."""

import base64
import hashlib
import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from helios.errors import HeliosError
from helios.server.errors import error_response
from helios.server.openapi import document
from helios.server.protocol.models import Model, ModelList
from helios.server.service import Service

Handler = Callable[[Request], Response]


class Pages:
    """Handlers that answer from what the service knows."""

    def __init__(self, service: Service) -> None:
        self._service = service

    # Made when they are first asked for, so that no start waits for them.

    @cached_property
    def _page(self) -> bytes:
        return (Path(__file__).parent / "page" / "index.html").read_bytes()

    @cached_property
    def _policy(self) -> str:
        return _content_policy(self._page)

    @cached_property
    def _document(self) -> bytes:
        return document()

    async def models(self, request: Request) -> Response:
        """Every name of the model."""
        return _json(ModelList([self._model(name) for name in self._service.model.names]))

    async def model(self, request: Request) -> Response:
        """One name of the model."""
        name = request.path_params["name"]
        try:
            self._service.model.check_name(name)
        except HeliosError as error:
            return error_response(error)
        return _json(self._model(name))

    async def health(self, request: Request) -> Response:
        """200 while the engine runs, else 503; planned, committed and measured bytes apart."""
        healthy = self._service.engine.healthy
        status = "ok" if healthy else "failed"
        body = {"status": status, "memory_bytes": self._service.startup.memory_dict()}
        return _json(body, 200 if healthy else 503)

    async def plan(self, request: Request) -> Response:
        """What start-up did, and the plan that the model runs by."""
        return _json(self._service.startup.to_dict())

    async def metrics(self, request: Request) -> Response:
        """What Prometheus scrapes."""
        text = self._service.metrics.render()
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, request: Request) -> Response:
        """The API's description."""
        return Response(self._document, media_type="application/json")

    async def page(self, request: Request) -> Response:
        """The chat page. Its policy lets it run its own script and talk to this server only."""
        headers = {"content-security-policy": self._policy}
        return Response(self._page, headers=headers, media_type="text/html")

    def _model(self, name: str) -> Model:
        model = self._service.model
        return Model(
            id=name,
            created=model.created,
            max_model_len=model.context_tokens,
            numerics=model.numerics or None,
        )


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def _content_policy(page: bytes) -> str:
    script = re.search(rb"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script[1] if script else b"").digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
