"""The text still to be read, and the primitives that grammars are made of.

A grammar is a generator: it yields where it needs more text and goes on when there is some. So
it reads like a grammar for whole text, and still takes every text as far as it is known. What a
primitive has passed is never looked at again, and what it holds back is never longer than the
shapes it looks for, so that work stays proportional to the text.
"""

import re
from collections.abc import Callable, Generator
from typing import TypeAlias, TypeVar

from helios.frontend.scan.shapes import SPACE, Boundary

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
Sink: TypeAlias = Callable[[str], object]

_SPACES = re.compile(f"{SPACE}*+")


class Cut(Exception):
    """The text ended where the grammar needs more."""


class Malformed(Exception):
    """The text can't be what its opener promised."""


def drop(text: str) -> None:
    """The sink of text that nobody wants."""


class Source:
    """Text as it comes.

    `natural` says, once `ended`, that the text ended in good order rather than at a limit.
    `work` counts the characters that were looked at.
    """

    __slots__ = ("_record", "ended", "natural", "position", "text", "work")

    def __init__(self, text: str = "", *, ended: bool = False) -> None:
        self.text = text
        self.position = 0
        self.ended = ended
        self.natural = ended
        self.work = 0
        self._record: list[str] | None = None

    def push(self, text: str) -> None:
        """More text has come."""
        self.text = self.text[self.position :] + text
        self.position = 0
        self.work += len(self.text)

    def end(self, natural: bool) -> None:
        """No more text will come."""
        self.ended = True
        self.natural = natural

    @property
    def exhausted(self) -> bool:
        """Whether everything has been read and nothing will follow."""
        return self.ended and self.position == len(self.text)

    @property
    def recording(self) -> bool:
        """Whether what is read is remembered."""
        return self._record is not None

    def record(self, text: str) -> None:
        """Remember what is read from here on, after `text`."""
        self._record = [text]

    def forget(self) -> None:
        """Remember no longer."""
        self._record = None

    def recorded(self) -> str:
        """What was remembered; then forget it."""
        text = "".join(self._record or ())
        self._record = None
        return text

    def advance(self, end: int) -> str:
        """Read up to an index of `text`."""
        passed = self.text[self.position : end]
        self.position = end
        if self._record is not None:
            self._record.append(passed)
        return passed

    def copy(self, until: Boundary, sink: Sink) -> Steps[re.Match[str] | None]:
        """Pass text to `sink` up to a boundary and read the boundary. None at the end."""
        while True:
            found = until.find(self.text, self.position, self.ended)
            self._looked(found, len(self.text))
            held = len(self.text) if self.ended else until.held(self.text, self.position)
            if found and found.start() <= held:
                if found.start() > self.position:
                    sink(self.advance(found.start()))
                self.advance(found.end())
                return found
            if held > self.position:
                sink(self.advance(held))
            if self.ended:
                return None
            yield

    def take(self, until: Boundary, limit: int) -> Steps[tuple[str, re.Match[str]]]:
        """Read a text of at most `limit` characters, and the boundary behind it.

        Nothing is read where there is none: `Malformed` where the text is longer, `Cut` where it
        is unfinished.
        """
        parts: list[str] = []
        room = limit
        while True:
            window = min(len(self.text), self.position + room + until.width)
            found = until.find(self.text, self.position, self.ended, window)
            self._looked(found, window)
            if found and found.start() - self.position <= room:
                parts.append(self.advance(found.start()))
                self.advance(found.end())
                return "".join(parts), found
            if self.ended or len(self.text) - self.position >= room + until.width:
                self._unread(parts)
                raise Cut if self.ended and len(self.text) - self.position <= limit else Malformed
            held = until.held(self.text, self.position)
            room -= held - self.position
            parts.append(self.advance(held))
            yield

    def _unread(self, parts: list[str]) -> None:
        """Put back what has just been read."""
        if parts:
            self.text = "".join(parts) + self.text[self.position :]
            self.position = 0
            if self._record is not None:
                del self._record[-len(parts) :]

    def rest(self) -> str:
        """Read everything that is left."""
        return self.advance(len(self.text))

    def accept(self, what: Boundary) -> Steps[re.Match[str] | None]:
        """Read a boundary that stands right here, or nothing."""
        while True:
            found = what.match(self.text, self.position, self.ended)
            self._looked(found, min(len(self.text), self.position + what.width))
            if found:
                self.advance(found.end())
                return found
            if self.ended or not what.may_begin(self.text, self.position):
                return None
            yield

    def peek(self) -> Steps[str]:
        """The next character, unread. `Cut` at the end."""
        while self.position == len(self.text):
            if self.ended:
                raise Cut
            yield
        return self.text[self.position]

    def need(self, count: int) -> Steps[str]:
        """The next characters, unread. `Cut` where there are fewer."""
        while len(self.text) - self.position < count:
            if self.ended:
                raise Cut
            yield
        return self.text[self.position : self.position + count]

    def spaces(self, sink: Sink = drop) -> Steps[None]:
        """Read whitespace, however much."""
        yield from self.run(_SPACES, sink)

    def run(self, pattern: re.Pattern[str], sink: Sink) -> Steps[None]:
        """Read the longest run that matches a pattern of single characters."""
        while True:
            found = pattern.match(self.text, self.position)
            self._looked(found, self.position)
            if found and found.end() > self.position:
                sink(self.advance(found.end()))
            if self.position < len(self.text) or self.ended:
                return
            yield

    def _looked(self, found: re.Match[str] | None, otherwise: int) -> None:
        self.work += 1 + (found.end() if found else otherwise) - self.position
