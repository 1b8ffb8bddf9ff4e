"""Writing grammars in the dialect of Lark that llguidance reads.

Expressions are fragments of text, '' the one that matches nothing but the empty string. A
`Writer` names rules and terminals and remembers from which part of the request each foreign part
came, so that a refusal can name it.
"""

import json
from collections.abc import Iterable, Mapping

from helios.records import dataclass

NOTHING = ""
NO_TEXT = '""'
"""The empty text where Lark needs an expression."""


_OPTIONS = '%llguidance {"no_forcing": true}'
"""Text without a choice is not encoded anew at every step: for long texts that would take ever
longer, and a marker spelled in an answer could come out as its token."""


@dataclass(frozen=True, slots=True)
class ForeignPart:
    """A schema, regular expression or grammar of the request's own; `where` is its field."""

    where: str
    source: object
    grammar: str  # by itself, as llguidance reads it


def literal(text: str) -> str:
    """Exactly this text."""
    return json.dumps(text).replace("\x7f", "\\u007f") if text else NOTHING


def sequence(*parts: str) -> str:
    """One after the other."""
    return " ".join(part for part in parts if part)


def either(*parts: str) -> str:
    """One of several, of which '' makes it optional."""
    distinct = dict.fromkeys(part for part in parts if part)
    joined = next(iter(distinct)) if len(distinct) == 1 else f"({' | '.join(distinct)})"
    return optional(joined) if NOTHING in parts else joined


def optional(part: str) -> str:
    """The part or nothing."""
    return f"({part})?" if part else NOTHING


def repeated(part: str, least: int = 0, most: int | None = None) -> str:
    """The part several times; without `most`, however often."""
    if not part or most == 0:
        return NOTHING
    if (least, most) == (1, 1):
        return part
    return f"({part}){{{least},{'' if most is None else most}}}"


def separated(part: str, separator: str, least: int, most: int | None) -> str:
    """The part one to `most` times, separators between; with `least` 0 also nothing."""
    if most == 0:
        return NOTHING
    if not separator:
        return repeated(part, least, most)
    rest = repeated(
        sequence(separator, part), max(least - 1, 0), None if most is None else most - 1
    )
    whole = sequence(part, rest)
    return whole if least else optional(whole)


def pattern(regex: str) -> str:
    """A regular expression whose slashes and line breaks are escaped."""
    return f"/{regex}/"


def escaped(text: str) -> str:
    """A text as part of a regular expression."""
    return "".join(c if c.isascii() and c.isalnum() else f"\\x{{{ord(c):x}}}" for c in text)


def containing(texts: Iterable[str]) -> str:
    """The terminal of texts that hold one of these."""
    return pattern(f"(?s:.*)({'|'.join(map(escaped, texts))})(?s:.*)")


def tokens_except(tokens: Iterable[int]) -> str:
    """Any one token but these."""
    return f"<[^{','.join(map(str, sorted(tokens)))}]>"


class Writer:
    """Collects the rules of one grammar. The same body always gets the same name."""

    def __init__(self) -> None:
        self.parts: list[ForeignPart] = []
        self._names: dict[str, str] = {}
        self._rules: list[str] = []
        self._nested: list[dict[str, str]] = []

    def rule(self, body: str, options: str = "") -> str:
        """A rule's name."""
        return self._define("r", body, options)

    def terminal(self, body: str) -> str:
        """A terminal's name: its body is one regular expression."""
        return self._define("T", body, "")

    def reserve(self) -> str:
        """A name for a rule that refers to itself; `fill` gives it its body."""
        name = f"r{len(self._names)}"
        self._names[name] = name
        return name

    def fill(self, name: str, body: str) -> None:
        """The body of a reserved rule."""
        self._rules.append(f"{name}: {body or NO_TEXT}")

    def json(self, document: Mapping[str, object]) -> str:
        """Any text of JSON that a schema allows."""
        return self.rule(f"%json {json.dumps(document)}")

    def until(self, terminal: str, end: str) -> str:
        """A terminal up to and including the first occurrence of a text."""
        return self.rule(terminal, f"[suffix={literal(end)}]")

    def nested(self, lark: str) -> str:
        """A whole grammar with names of its own."""
        name = f"nested{len(self._nested)}"
        self._nested.append({"name": name, "lark_grammar": lark})
        return f"@{name}"

    def grammar(self, start: str) -> str:
        """The whole as llguidance reads it."""
        lines = [_OPTIONS, f"start: {start or NO_TEXT}", *self._rules]
        own = {"name": "envelope", "lark_grammar": "\n".join(lines) + "\n"}
        return json.dumps({"grammars": [own, *self._nested]})

    def _define(self, letter: str, body: str, options: str) -> str:
        key = f"{letter}{options}: {body}"
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = f"{letter}{len(self._names)}"
            self._rules.append(f"{name}{options}: {body or NO_TEXT}")
        return name
