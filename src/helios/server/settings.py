"""What a server is set to: plain numbers that cost nothing to import."""

from helios.records import dataclass

DRAIN_SECONDS = 5
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the HTTP side. `max_choices` bounds the generations of one request;
    `sse_keep_alive` is how many seconds a stream may be silent, 0 for as long as it likes."""

    queue_capacity: int = 256
    max_active: int = 32
    frontend_workers: int = 2
    max_body_bytes: int = 32 * 1024 * 1024
    max_choices: int = 128
    sse_keep_alive: float = 15.0
