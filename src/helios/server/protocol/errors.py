"""Error bodies."""

import msgspec


class ErrorDetail(msgspec.Struct):
    """What went wrong; `param` names the request's parameter, `code` the kind for programs."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorResponse(msgspec.Struct):
    """The body of every response that is not a success."""

    error: ErrorDetail
