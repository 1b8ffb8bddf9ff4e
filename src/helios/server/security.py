"""An optional API key for everything under /v1."""

import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from helios.server.errors import KeyRefusedError, error_response


class RequireKey:
    """Refuses API requests without `Authorization: Bearer KEY`, before their bodies are read."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._expected = f"Bearer {key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer 401."""
        if scope["type"] == "http" and scope["path"].startswith("/v1/"):
            given = Headers(scope=scope).get("authorization", "").encode("latin-1")
            if not hmac.compare_digest(given, self._expected):
                error = KeyRefusedError(
                    "the API key is missing or wrong",
                    remedy="send Authorization: Bearer with the server's key",
                )
                await error_response(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)
