"""The life of a generation request over HTTP: body, permit, preparation, answer."""

import logging
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from helios.errors import HeliosError, RequestError
from helios.server.errors import ServerError, error_body, error_response
from helios.server.exchange import Exchange
from helios.server.generation import Generation
from helios.server.ingress import ClientGoneError, decode_body, read_body
from helios.server.service import Service
from helios.server.sse import EventWriter, attend, event

Body = TypeVar("Body")

_log = logging.getLogger("helios.server")


class GenerationEndpoint(Generic[Body]):
    """An ASGI application for one path. `prepare` runs in a frontend thread."""

    def __init__(
        self,
        service: Service,
        name: str,
        body: type[Body],
        prepare: Callable[[Service, Body, int], Exchange],
    ) -> None:
        self._service = service
        self._name = name
        self._body = body
        self._prepare = prepare

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Whatever goes wrong before headers are sent has a status."""
        started = time.monotonic()
        outcome = "failed"
        try:
            outcome = await self._answer(scope, receive, send)
        except ClientGoneError:
            outcome = "cancelled"
        except RequestError as error:
            outcome = "refused"
            await error_response(error)(scope, receive, send)
        except HeliosError as error:
            await error_response(error)(scope, receive, send)
        finally:
            metrics = self._service.metrics
            metrics.requests.add(1, self._name, outcome)
            metrics.duration.observe(time.monotonic() - started)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> str:
        service = self._service
        service.admission.check()  # before a body is read for nothing
        body = decode_body(await read_body(receive, service.limits.max_body_bytes), self._body)
        ingress_ns = service.engine.now_ns()
        with service.admission.permit():
            exchange = await service.in_frontend(lambda: self._prepare(service, body, ingress_ns))
            exchange.enqueued(service.engine.now_ns())
            with Generation(service, exchange.jobs) as generation:
                if exchange.streams:
                    writer = EventWriter(send, service.limits.sse_keep_alive)
                    return await attend(receive, _stream(exchange, generation, writer))
                whole = await attend(receive, _collect(exchange, generation))
            await Response(whole, media_type="application/json")(scope, receive, send)
            return "completed"


async def _collect(exchange: Exchange, generation: Generation) -> bytes:
    collector = exchange.collector()
    try:
        async for outputs in generation.batches():
            for index, output in outputs:
                collector.add(index, output)
        return collector.body()
    except HeliosError:
        raise
    except Exception as error:
        raise _broken() from error


async def _stream(exchange: Exchange, generation: Generation, writer: EventWriter) -> str:
    """Send events as they come; all that came while the client read go in one write."""
    async with writer:
        await writer.start()
        try:
            streamer = exchange.streamer()
            opening = streamer.begin()
            async for outputs in generation.batches():
                data = opening + b"".join([streamer.add(*output) for output in outputs])
                opening = b""
                if data:
                    await writer.write(data)
            await writer.end(opening + streamer.end())
            return "completed"
        except HeliosError as error:
            await writer.end(event(error_body(error)))
            return "failed"
        except Exception:
            await writer.end(event(error_body(_broken())))
            return "failed"


def _broken() -> HeliosError:
    """What the client hears of a fault of our own; the log has the rest."""
    _log.exception("presenting a response failed")
    return ServerError("the server failed to present the response", remedy="report this")
