"""What a parser says: deltas, joined where neighbours are of one kind."""

import secrets
import string
from collections.abc import Callable
from functools import partial

from helios.frontend.parsing import (
    ContentDelta,
    Delta,
    ReasoningDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from helios.frontend.scan.marks import Lettering

_ALPHANUMERIC = string.ascii_letters + string.digits
_Joined = Callable[[str], Delta]


def new_call_id(length: int = 0) -> str:
    """A call id that no other call has: `length` letters and digits, or the server's own form."""
    if length:
        return "".join(secrets.choice(_ALPHANUMERIC) for _ in range(length))
    return f"call_{secrets.token_hex(12)}"


class Output:
    """Collects one response's deltas. Call indexes count started calls; an abandoned call keeps
    its index and never ends. With `calls` off, calls are read and not reported."""

    def __init__(self, lettering: Lettering, *, calls: bool, id_length: int = 0) -> None:
        self._lettering = lettering
        self._calls = calls
        self._id_length = id_length
        self._deltas: list[Delta] = []
        self._parts: list[str] = []
        self._kind: _Joined | None = None
        self._ids: set[str] = set()
        self._count = 0
        self._open: list[int] = []
        self._fragment: _Joined = partial(ToolCallArguments, 0)

    def take(self) -> list[Delta]:
        """The deltas since the last time."""
        self._flush()
        deltas, self._deltas = self._deltas, []
        return deltas

    def take_calls(self) -> list[Delta]:
        """As `take`, without content and reasoning."""
        return [d for d in self.take() if not isinstance(d, ContentDelta | ReasoningDelta)]

    def content(self, text: str) -> None:
        """More answer text. Tokens in it are markup that leads nowhere and are dropped."""
        self._add(ContentDelta, self._lettering.drop(text))

    def answer(self, text: str) -> None:
        """More of an answer whose markers are text."""
        self._add(ContentDelta, self._lettering.spell_markers(text))

    def reasoning(self, text: str) -> None:
        """More reasoning. Markers in it are quoted, not meant."""
        self._add(ReasoningDelta, self._lettering.spell_markers(text))

    def start(self, name: str, call_id: str = "") -> None:
        """Open a call, under the wire's id where it has one that is still free."""
        if not call_id or call_id in self._ids:
            call_id = new_call_id(self._id_length)
        self._ids.add(call_id)
        index = self._count
        self._count += 1
        self._open.append(index)
        self._fragment = partial(ToolCallArguments, index)
        self._say(ToolCallStart(index, call_id, name))

    def arguments(self, fragment: str) -> None:
        """More of the newest call's arguments."""
        if self._calls:
            self._add(self._fragment, fragment)

    def end(self) -> None:
        """Every open call is complete."""
        for index in self._open:
            self._say(ToolCallEnd(index))
        self._open.clear()

    def abandon(self) -> None:
        """Open calls turned out to be none; they never end."""
        self._open.clear()

    @property
    def calling(self) -> bool:
        """Whether a call is open."""
        return bool(self._open)

    def _say(self, delta: Delta) -> None:
        if self._calls:
            self._flush()
            self._deltas.append(delta)

    def _add(self, kind: _Joined, text: str) -> None:
        if not text:
            return
        if kind != self._kind:
            self._flush()
            self._kind = kind
        self._parts.append(text)

    def _flush(self) -> None:
        if self._parts and self._kind:
            self._deltas.append(self._kind("".join(self._parts)))
        self._parts = []
        self._kind = None
