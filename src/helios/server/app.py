"""The application: every path and what answers it."""

import logging

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from helios.errors import HeliosError, RequestError
from helios.server.chat import prepare_chat
from helios.server.completions import prepare_completion
from helios.server.endpoint import GenerationEndpoint
from helios.server.errors import ServerError, error_body
from helios.server.pages import Pages
from helios.server.protocol.chat import ChatRequest
from helios.server.protocol.completions import CompletionRequest
from helios.server.security import RequireKey
from helios.server.service import Service

_log = logging.getLogger("helios.server")


def build_app(service: Service, *, api_key: str | None = None) -> Starlette:
    """The HTTP application of one served model."""
    pages = Pages(service)
    chat = GenerationEndpoint(service, "chat", ChatRequest, prepare_chat)
    completions = GenerationEndpoint(service, "completions", CompletionRequest, prepare_completion)
    return Starlette(
        routes=[
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/completions", completions, methods=["POST"]),
            Route("/v1/models", pages.models),
            Route("/v1/models/{name:path}", pages.model),
            Route("/health", pages.health),
            Route("/metrics", pages.metrics),
            Route("/v1/helios/plan", pages.plan),
            Route("/openapi.json", pages.openapi),
            Route("/", pages.page),
        ],
        middleware=[Middleware(RequireKey, key=api_key)] if api_key else [],
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )


async def _refused(request: Request, error: Exception) -> Response:
    """Unknown paths and methods, in OpenAI's form."""
    assert isinstance(error, HTTPException)
    problem: HeliosError = RequestError(
        f"{request.method} {request.url.path}: {error.detail}", remedy="see /openapi.json"
    )
    headers = dict(error.headers or {})
    return Response(error_body(problem), error.status_code, headers, "application/json")


async def _failed(request: Request, error: Exception) -> Response:
    """A fault of our own: the client hears that there was one."""
    problem = ServerError("the server failed", remedy="report this")
    return Response(error_body(problem), 500, media_type="application/json")
