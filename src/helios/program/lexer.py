"""The tokens of one line of a program's text."""

import re
from collections.abc import Callable
from enum import IntEnum
from typing import TypeVar

from helios.errors import ProgramError

MAX_DIGITS = 32
"""The longest integer that is read; Python's own limit raises another error."""

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r]+|\#.*)
    | (?P<text>"(?:[^"\\]|\\.)*")
    | (?P<number>-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)
    | (?P<reference>[%@$][A-Za-z_][A-Za-z0-9_.:/+-]*)
    | (?P<word>[A-Za-z_][A-Za-z0-9_.:/+-]*)
    | (?P<mark>[()\[\],=])
    """,
    re.VERBOSE,
)
_E = TypeVar("_E", bound=IntEnum)
_T = TypeVar("_T")


class Line:
    """The tokens of one line, read from left to right."""

    def __init__(self, number: int, line: str) -> None:
        self._number = number
        self._tokens: list[tuple[str, str]] = []
        self._next = 0
        position = 0
        while position < len(line):
            match = _TOKEN.match(line, position)
            if match is None:
                raise self.error("unexpected character", line[position], "quote or remove it")
            if match.lastgroup != "space":
                self._tokens.append((match.lastgroup or "", match.group()))
            position = match.end()

    def error(self, message: str, value: object, remedy: str) -> ProgramError:
        """What to raise about this line."""
        return ProgramError(message, field=f"line {self._number}", value=value, remedy=remedy)

    def at_end(self) -> bool:
        """Whether every token is taken."""
        return self._next == len(self._tokens)

    def peek(self) -> str:
        """The next token, or nothing at the end."""
        return "" if self.at_end() else self._tokens[self._next][1]

    def accept(self, text: str) -> bool:
        """Take the next token if it is this one."""
        if self.peek() != text:
            return False
        self._next += 1
        return True

    def expect(self, text: str) -> None:
        """Take the next token, which must be this one."""
        if not self.accept(text):
            raise self.error(
                f"expected '{text}'", self.peek() or "end of line", "complete the line"
            )

    def take(self, kind: str, wanted: str) -> str:
        """Take the next token, which must be of a kind."""
        if self.at_end() or self._tokens[self._next][0] != kind:
            raise self.error(
                f"expected {wanted}", self.peek() or "end of line", "complete the line"
            )
        self._next += 1
        return self._tokens[self._next - 1][1]

    def take_any(self) -> tuple[str, str]:
        """Take the next token, with its kind."""
        if self.at_end():
            raise self.error("expected a value", "end of line", "complete the line")
        self._next += 1
        return self._tokens[self._next - 1]

    def reference(self, sigil: str) -> str:
        """Take a name that follows its sigil."""
        text = self.take("reference", f"a name after '{sigil}'")
        if text[0] != sigil:
            raise self.error(f"expected a name after '{sigil}'", text, f"write {sigil}{text[1:]}")
        return text[1:]

    def integer(self) -> int:
        """Take an integer."""
        return self.to_integer(self.take("number", "an integer"))

    def to_integer(self, text: str) -> int:
        """The integer a token spells."""
        if len(text) > MAX_DIGITS or not text.lstrip("-").isdigit():
            raise self.error("not an integer", text, "write digits only")
        return int(text)

    def choice(self, enum: type[_E], style: Callable[[str], str]) -> _E:
        """Take a member's name, written in a style."""
        word = self.take("word", f"one of {', '.join(style(m.name) for m in enum)}")
        for member in enum:
            if style(member.name) == word:
                return member
        raise self.error(
            f"unknown {enum.__name__}", word, f"one of {', '.join(style(m.name) for m in enum)}"
        )

    def items(self, close: str, item: Callable[[], _T]) -> list[_T]:
        """Items separated by commas, up to the closing mark."""
        found: list[_T] = []
        while not self.accept(close):
            if found:
                self.expect(",")
            found.append(item())
        return found
