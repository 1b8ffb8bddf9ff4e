"""Reading a request: a bounded body, decoded into its struct or refused by parameter."""

import re
from typing import TypeVar

import msgspec
from starlette.types import Receive

from helios.errors import RequestError
from helios.server.errors import BodyTooLargeError, UnknownFieldError

Body = TypeVar("Body")

_PLACE = re.compile(r"^(?P<message>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)


class ClientGoneError(Exception):
    """The client closed the connection: there is nobody to answer."""


async def read_body(receive: Receive, limit: int) -> bytes:
    """The whole body. Raises `BodyTooLargeError` as soon as it exceeds `limit` bytes."""
    parts: list[bytes] = []
    length = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        part = message.get("body", b"")
        length += len(part)
        if length > limit:
            raise BodyTooLargeError(
                f"the body is larger than {limit} bytes", remedy="send a smaller request"
            )
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def decode_body(body: bytes, kind: type[Body]) -> Body:
    """The body as its struct; raises `RequestError` naming the parameter that is wrong."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise _wrong_parameter(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(
            f"the body is not valid JSON: {error}", remedy="send one JSON object in UTF-8"
        ) from error


def _wrong_parameter(text: str) -> RequestError:
    """`msgspec` says `message - at `$.path``; here the path is the parameter's name."""
    place = _PLACE.match(text)
    assert place is not None
    message, path = place["message"], place["path"] or ""
    if unknown := _UNKNOWN.match(message):
        field = f"{path}.{unknown['name']}" if path else unknown["name"]
        return UnknownFieldError("is not a parameter that this server knows", field=field)
    if missing := _MISSING.match(message):
        field = f"{path}.{missing['name']}" if path else missing["name"]
        return RequestError("is required", field=field, remedy="add it")
    return RequestError(message[:1].lower() + message[1:], field=path, remedy="correct the value")
