"""Running the application: a socket, a loop, and an orderly end."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from helios.errors import ConfigurationError

DRAIN_SECONDS = 5
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000

Ready = Callable[[str], None]


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


def serve(
    app: ASGIApp,
    host: str = DEFAULT_HOST,
    port: int = DEFAULT_PORT,
    *,
    ready: Ready | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM, then give open requests five seconds and drop the rest.

    Port 0 takes a free one; `ready` gets the real address. Raises `ConfigurationError` where the
    address can't be had.
    """
    make_server(app, host, port, ready=ready)()


def make_server(
    app: ASGIApp, host: str, port: int, *, ready: Ready | None = None
) -> Callable[[], None]:
    """Take the address now; the result serves."""
    listener = _listen(host, port)
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    server = _Server(config, _address(listener), ready)

    def run() -> None:
        with listener:
            server.run(sockets=[listener])

    return run


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
