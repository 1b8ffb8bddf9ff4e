"""A small streaming client of OpenAI-compatible chat, on the standard library alone."""

import http.client
import json
from collections.abc import Generator
from typing import Any
from urllib.parse import urlsplit

from helios.errors import ConfigurationError, HeliosError
from helios.records import dataclass

_TIMEOUT_S = 600.0


class ChatError(HeliosError):
    """The server refused, failed, or could not be reached."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server listens, and the key it asks for."""

    url: str
    api_key: str = ""

    def models(self) -> list[str]:
        """The ids the server answers to."""
        with _Exchange(self, "GET", "/v1/models") as response:
            return [entry["id"] for entry in json.load(response)["data"]]

    def stream(self, request: dict[str, Any]) -> Generator[dict[str, Any], None, None]:
        """The chunks of a streamed chat completion; closing the iterator cancels it."""
        body = request | {"stream": True, "stream_options": {"include_usage": True}}
        with _Exchange(self, "POST", "/v1/chat/completions", body) as response:
            for line in response:
                if not line.startswith(b"data: "):
                    continue
                data = line.removeprefix(b"data: ").strip()
                if data == b"[DONE]":
                    return
                chunk = json.loads(data)
                if "error" in chunk:
                    raise ChatError(chunk["error"]["message"], field=self.url)
                yield chunk
        raise ChatError("the stream ended early", field=self.url, remedy="look at the server's log")


class _Exchange:
    """One request and its response; leaving it closes the connection."""

    def __init__(self, server: Server, method: str, path: str, body: object = None) -> None:
        parts = urlsplit(server.url)
        kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        if parts.scheme not in kinds or not parts.hostname:
            raise ConfigurationError(
                "is not the address of a server",
                field="--url",
                value=server.url,
                remedy="give one such as http://127.0.0.1:8000",
            )
        self._url = server.url
        self._connection = kinds[parts.scheme](parts.hostname, parts.port, timeout=_TIMEOUT_S)
        headers = {"Content-Type": "application/json"}
        if server.api_key:
            headers["Authorization"] = f"Bearer {server.api_key}"
        self._request = (method, parts.path.rstrip("/") + path, json.dumps(body), headers)

    def __enter__(self) -> http.client.HTTPResponse:
        method, path, body, headers = self._request
        try:
            self._connection.request(method, path, body, headers)
            response: http.client.HTTPResponse = self._connection.getresponse()
        except OSError as error:
            raise ChatError(
                f"no server answers: {error}",
                field=self._url,
                remedy="start one with `helios serve MODEL`",
            ) from error
        if response.status != http.client.OK:
            raise ChatError(_message(response), field=self._url, value=response.status)
        return response

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def _message(response: http.client.HTTPResponse) -> str:
    text = response.read(1 << 16).decode(errors="replace")
    try:
        return str(json.loads(text)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return text.strip() or response.reason
