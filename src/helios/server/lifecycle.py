"""Running the application: a socket, a loop, and an orderly end."""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from helios.errors import ConfigurationError
from helios.server.settings import DEFAULT_HOST, DEFAULT_PORT, DRAIN_SECONDS

Ready = Callable[[str], None]


class HttpServer:
    """A listener that has its address from the start and serves once run.

    Port 0 takes a free one. Raises `ConfigurationError` where the address can't be had.
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str = DEFAULT_HOST,
        port: int = DEFAULT_PORT,
        *,
        ready: Ready | None = None,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        self._listener = _listen(host, port)
        self.address = _address(self._listener)
        config = uvicorn.Config(
            app,
            loop="uvloop",
            http="httptools",
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=drain_seconds,  # type: ignore[arg-type]
        )
        self._server = _Server(config, self.address, ready)

    def run(self) -> None:
        """Serve until a signal or `stop`, then give open requests their time and drop the rest."""
        logging.getLogger("uvicorn.error").addFilter(_is_no_drop)
        with self._listener:
            self._server.run(sockets=[self._listener])

    def stop(self) -> None:
        """End as a signal would; from any thread."""
        self._server.should_exit = True


def serve(
    app: ASGIApp,
    host: str = DEFAULT_HOST,
    port: int = DEFAULT_PORT,
    *,
    ready: Ready | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; `ready` gets the address once connections are accepted."""
    HttpServer(app, host, port, ready=ready).run()


def _is_no_drop(record: logging.LogRecord) -> bool:
    """Keep tracebacks of dropped requests out of the log: they are meant, and counted there."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, asyncio.CancelledError)


class _Server(uvicorn.Server):
    """Tells its address once it accepts connections."""

    def __init__(self, config: uvicorn.Config, address: str, ready: Ready | None) -> None:
        super().__init__(config)
        self._address = address
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._ready is not None:
            self._ready(self._address)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Uvicorn raises caught signals again once it has ended, which would end the process
        before the caller has stopped the engine. A signal has done its work by then."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def _listen(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        raise ConfigurationError(
            f"can't listen there: {error.strerror or error}",
            field="host, port",
            value=f"{host}:{port}",
            remedy="choose another address, or port 0 for any free one",
        ) from error
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
