"""What a scanner looks for, and how to tell that it may be about to come.

A shape describes a short text. From it follow a pattern for the whole text and one for every
proper prefix of it, so that a scanner can hold back exactly what could still become the shape.
Shapes are bounded: no prefix is longer than `width`.
"""

import re
import sys
from collections.abc import Iterable, Mapping

from helios.records import dataclass

MAX_SPACES = 32
"""How much whitespace may stand where a syntax allows any. More is text."""

SPACE = r"[ \t\r\n]"
"""The whitespace of templates and of JSON. Other kinds are always text."""

_NEVER = "(?!)"


@dataclass(frozen=True, slots=True)
class Shape:
    """A text to find. `whole` matches it, `prefix` its non-empty proper prefixes, and `final`
    matches it where no more text can come. All three are regular expressions."""

    whole: str
    prefix: str
    final: str
    width: int


def literal(text: str) -> Shape:
    """Exactly this text."""
    whole = re.escape(text)
    prefix = ""
    for character in reversed(text[:-1]):
        prefix = f"{re.escape(character)}(?:{prefix})?" if prefix else re.escape(character)
    return Shape(whole, prefix or _NEVER, whole, len(text))


def spaces() -> Shape:
    """Whitespace, perhaps none."""
    whole = f"{SPACE}{{0,{MAX_SPACES}}}"
    return Shape(whole, _NEVER, whole, MAX_SPACES)


def optional(shape: Shape) -> Shape:
    """The shape or nothing."""
    return Shape(f"(?:{shape.whole})?", shape.prefix, f"(?:{shape.final})?", shape.width)


def either(*shapes: Shape) -> Shape:
    """The first of these that matches. None may be a prefix of a later one."""
    if len(shapes) == 1:
        return shapes[0]
    return Shape(
        _any(shape.whole for shape in shapes),
        _any(shape.prefix for shape in shapes),
        _any(shape.final for shape in shapes),
        max(shape.width for shape in shapes),
    )


def sequence(*shapes: Shape) -> Shape:
    """One after the other."""
    first, *rest = shapes
    if not rest:
        return first
    then = sequence(*rest)
    return Shape(
        first.whole + then.whole,
        f"(?:{first.whole}(?:{then.prefix})?|{first.prefix})",
        first.final + then.final,
        first.width + then.width,
    )


def ahead(shape: Shape, *, or_end: bool = False) -> Shape:
    """The shape comes next but is not part of the match; with `or_end` the end may come too."""
    end = rf"|{SPACE}*\Z" if or_end else ""
    return Shape(f"(?={shape.whole})", shape.prefix, f"(?={shape.final}{end})", shape.width)


def only_spaces_left() -> Shape:
    """Whitespace and then the end."""
    run = f"{SPACE}{{1,{MAX_SPACES}}}"
    return Shape(_NEVER, run, rf"{SPACE}+\Z", MAX_SPACES)


def _any(patterns: Iterable[str]) -> str:
    return f"(?:{'|'.join(patterns)})"


class Boundary:
    """Compiled shapes; a match's `lastgroup` is the name of the one that matched."""

    __slots__ = ("_final", "_prefix", "_whole", "width")

    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self._whole = re.compile(_named(shapes, "whole"))
        self._final = re.compile(_named(shapes, "final"))
        prefixes = "|".join(shape.prefix for shape in shapes.values()) or _NEVER
        self._prefix = re.compile(rf"(?:{prefixes})\Z")
        self.width = max((shape.width for shape in shapes.values()), default=0)

    def find(
        self, text: str, start: int, ended: bool, end: int = sys.maxsize
    ) -> re.Match[str] | None:
        """The first match at or after `start` and before `end`."""
        return (self._final if ended else self._whole).search(text, start, end)

    def match(self, text: str, start: int, ended: bool) -> re.Match[str] | None:
        """A match at exactly `start`."""
        return (self._final if ended else self._whole).match(text, start)

    def held(self, text: str, start: int) -> int:
        """Where the earliest prefix begins that runs to the end of the text; else its length."""
        found = self._prefix.search(text, max(start, len(text) - self.width))
        return found.start() if found else len(text)

    def may_begin(self, text: str, start: int) -> bool:
        """Whether all text from `start` is a proper prefix."""
        if len(text) - start > self.width:
            return False
        return start == len(text) or self._prefix.match(text, start) is not None


def _named(shapes: Mapping[str, Shape], part: str) -> str:
    named = [f"(?P<{name}>{getattr(shape, part)})" for name, shape in shapes.items()]
    return "|".join(named) or _NEVER


def boundary(**shapes: Shape | None) -> Boundary:
    """The boundary of these shapes; a None is a shape that the syntax does not have."""
    return Boundary({name: shape for name, shape in shapes.items() if shape is not None})


def maybe(shape: Shape | None) -> Boundary | None:
    """The boundary of one shape, or None where the syntax does not have it."""
    return Boundary({"here": shape}) if shape else None
