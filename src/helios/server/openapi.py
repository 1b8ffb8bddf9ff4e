"""The API's description, made from the structs that decode and encode it."""

from typing import Any

import msgspec

from helios import __version__
from helios.server.protocol.chat import ChatChunk, ChatCompletion, ChatRequest
from helios.server.protocol.completions import Completion, CompletionRequest
from helios.server.protocol.errors import ErrorResponse
from helios.server.protocol.models import Model, ModelList

_KINDS = (
    ChatRequest,
    ChatCompletion,
    ChatChunk,
    CompletionRequest,
    Completion,
    ErrorResponse,
    Model,
    ModelList,
)
_ERRORS = {
    "400": "The request is wrong; `param` names the parameter.",
    "404": "No such model.",
    "413": "The body is too large.",
    "429": "The server is full; try again later.",
    "500": "The model or the server failed.",
    "503": "The request can't be run with what was loaded.",
}


def document() -> bytes:
    """The OpenAPI 3.1 document."""
    schemas, components = msgspec.json.schema_components(
        _KINDS, ref_template="#/components/schemas/{name}"
    )
    named = {kind.__name__: schema for kind, schema in zip(_KINDS, schemas, strict=True)}
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "Helios", "version": __version__},
            "paths": _paths(named),
            "components": {
                "schemas": components,
                "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            },
        }
    )


def _paths(schemas: dict[str, Any]) -> dict[str, Any]:
    chat = _generation("Continue a conversation", schemas["ChatRequest"], schemas["ChatCompletion"])
    stream = {"text/event-stream": {"schema": schemas["ChatChunk"]}}
    chat["post"]["responses"]["200"]["content"].update(stream)
    completion = _generation("Continue texts", schemas["CompletionRequest"], schemas["Completion"])
    stream = {"text/event-stream": {"schema": schemas["Completion"]}}
    completion["post"]["responses"]["200"]["content"].update(stream)
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "/v1/chat/completions": chat,
        "/v1/completions": completion,
        "/v1/models": {"get": _read("List the model's names", schemas["ModelList"])},
        "/v1/models/{name}": {
            "get": {**_read("Look a name up", schemas["Model"], "404"), "parameters": [name]}
        },
        "/health": {"get": _health()},
        "/v1/helios/plan": {
            "get": _read("What start-up did, and the plan it loaded", {"type": "object"})
        },
    }


def _generation(summary: str, request: Any, response: Any) -> dict[str, Any]:
    responses = {"200": _content("The response.", response)}
    error = {"$ref": "#/components/schemas/ErrorResponse"}
    responses.update({status: _content(text, error) for status, text in _ERRORS.items()})
    body = {"required": True, "content": {"application/json": {"schema": request}}}
    return {"post": {"summary": summary, "requestBody": body, "responses": responses}}


def _health() -> dict[str, Any]:
    """Well or not, the body is the same."""
    body = {
        "type": "object",
        "required": ["status", "memory_bytes"],
        "properties": {
            "status": {"enum": ["ok", "failed"]},
            "memory_bytes": {
                "type": "object",
                "additionalProperties": {"type": ["integer", "null"]},
            },
        },
    }
    answers = {"200": "The engine runs.", "503": "It does not."}
    responses = {status: _content(text, body) for status, text in answers.items()}
    return {"summary": "Whether the engine runs, and its memory", "responses": responses}


def _read(summary: str, response: Any, *errors: str) -> dict[str, Any]:
    responses = {"200": _content("The answer.", response)}
    error = {"$ref": "#/components/schemas/ErrorResponse"}
    responses.update({status: _content(_ERRORS[status], error) for status in errors})
    return {"summary": summary, "responses": responses}


def _content(description: str, schema: Any) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}
