"""Every refusal and failure as an HTTP answer: the one place that knows statuses."""

import msgspec
from starlette.responses import Response

from helios.engine.messages import FailureKind
from helios.errors import AdmissionError, DeviceError, HeliosError, RequestError
from helios.frontend.prompt import ContextLengthError
from helios.server.protocol.errors import ErrorDetail, ErrorResponse


class UnknownModelError(RequestError):
    """The request names a model that isn't served here."""


class UnknownFieldError(RequestError):
    """The request has a parameter that means nothing here."""


class BodyTooLargeError(RequestError):
    """The body is larger than the server takes."""


class KeyRefusedError(RequestError):
    """The API key is missing or wrong."""


class OverloadedError(HeliosError):
    """All permits are taken, or the engine's queue is full."""


class ServerError(HeliosError):
    """Something broke here; the request was not at fault."""


# The first row whose type matches decides: status, OpenAI's error type, code.
_ANSWERS: tuple[tuple[type[HeliosError], int, str, str | None], ...] = (
    (ContextLengthError, 400, "invalid_request_error", "context_length_exceeded"),
    (UnknownFieldError, 400, "invalid_request_error", "unknown_parameter"),
    (UnknownModelError, 404, "invalid_request_error", "model_not_found"),
    (BodyTooLargeError, 413, "invalid_request_error", "body_too_large"),
    (KeyRefusedError, 401, "invalid_request_error", "invalid_api_key"),
    (RequestError, 400, "invalid_request_error", None),
    (OverloadedError, 429, "rate_limit_error", "overloaded"),
    (AdmissionError, 503, "service_unavailable_error", "admission_rejected"),
    (HeliosError, 500, "server_error", None),
)


def failure(kind: FailureKind, message: str) -> HeliosError:
    """The error for an engine's terminal failure; its kind decides, never its text."""
    if kind is FailureKind.ADMISSION:
        return AdmissionError(message)
    return DeviceError(message)


def status_of(error: HeliosError) -> int:
    """The HTTP status of an error."""
    return _answer(error)[0]


def error_body(error: HeliosError) -> bytes:
    """OpenAI's error body."""
    _, kind, code = _answer(error)
    field = error.field if isinstance(error, RequestError) else ""
    detail = ErrorDetail(message=str(error), type=kind, param=field or None, code=code)
    return msgspec.json.encode(ErrorResponse(detail))


def error_response(error: HeliosError) -> Response:
    """The whole answer."""
    headers = {}
    if isinstance(error, OverloadedError):
        headers["retry-after"] = "1"
    elif isinstance(error, KeyRefusedError):
        headers["www-authenticate"] = "Bearer"
    return Response(error_body(error), status_of(error), headers, "application/json")


def _answer(error: HeliosError) -> tuple[int, str, str | None]:
    for kind, status, name, code in _ANSWERS:
        if isinstance(error, kind):
            return status, name, code
    raise AssertionError("every HeliosError has an answer")
