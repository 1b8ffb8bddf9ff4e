"""Values written as literals, copied as JSON while they come.

JSON itself, Python literals and quoted mappings differ in how they write strings, keys and
constants, not in how they nest. JSON passes through as it stands, numbers and escapes included.
Nesting is a list, not recursion, so depth has no limit but the text.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import field

from helios.frontend.scan.shapes import Boundary
from helios.frontend.scan.source import Cut, Malformed, Sink, Source, Steps, drop
from helios.frontend.tools.strings import Spell, copy_json_string, copy_python_string, escape
from helios.records import dataclass

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
_ATOM = re.compile(r"[^\s,:\[\]{}()\"'=]++")
_BARE_VALUE = re.compile(r"[^,\]}]++")
_BARE_KEY = re.compile(r"[^:,{}\[\]]++")
_JSON_CONSTANTS = {"true": "true", "false": "false", "null": "null"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How literals are written. `raw_quote` stands around strings without escapes; in a `loose`
    dialect keys stand bare and so may strings, and commas may trail."""

    quotes: str = '"'
    brackets: Mapping[str, str] = field(default_factory=lambda: {"{": "}", "[": "]"})
    constants: Mapping[str, str] = field(default_factory=lambda: _JSON_CONSTANTS)
    python: bool = False
    raw_quote: Boundary | None = None

    @property
    def loose(self) -> bool:
        """Whether the dialect tolerates what JSON does not."""
        return self.python or self.raw_quote is not None


JSON = Dialect()
PYTHON = Dialect(
    quotes="'\"",
    brackets={"{": "}", "[": "]", "(": ")"},
    constants={**_JSON_CONSTANTS, "True": "true", "False": "false", "None": "null"},
    python=True,
)


def quoted_mapping(quote: Boundary) -> Dialect:
    """Bare keys, and raw strings between quote tokens."""
    return Dialect(raw_quote=quote)


class Literals:
    """Copies values of one dialect from a source."""

    def __init__(self, source: Source, spell: Spell, dialect: Dialect = JSON) -> None:
        self._source = source
        self._spell = spell
        self._dialect = dialect

    def copy(self, sink: Sink) -> Steps[None]:
        """Copy exactly one value to `sink` as JSON. Raises `Malformed`; `Cut` at the end."""
        closers: list[str] = []
        while True:
            yield from self._source.spaces(sink)
            opener = yield from self._source.peek()
            closer = self._dialect.brackets.get(opener)
            if closer is None:
                yield from self._scalar(sink)
            else:
                self._source.advance(self._source.position + 1)
                sink("{" if closer == "}" else "[")
                closers.append(closer)
                yield from self._source.spaces(sink)
                if (yield from self._source.peek()) != closer:
                    if closer == "}":
                        yield from self._key(sink)
                    continue
            if (yield from self._leave(closers, sink)):
                return

    def _leave(self, closers: list[str], sink: Sink) -> Steps[bool]:
        """Go on after a value: out of what closes here, to the next value. Whether all closed."""
        while closers:
            yield from self._source.spaces(sink)
            character = yield from self._source.peek()
            if character == ",":
                self._source.advance(self._source.position + 1)
                if self._dialect.loose:
                    yield from self._source.spaces()
                    character = yield from self._source.peek()
                if character != closers[-1]:
                    sink(",")
                    if closers[-1] == "}":
                        yield from self._source.spaces(sink)
                        yield from self._key(sink)
                    return False
            if character != closers[-1]:
                raise Malformed
            self._source.advance(self._source.position + 1)
            sink("}" if closers.pop() == "}" else "]")
        return True

    def _key(self, sink: Sink) -> Steps[None]:
        first = yield from self._source.peek()
        if self._dialect.raw_quote is not None:
            yield from self._bare_key(sink)
        elif first in self._dialect.quotes:
            yield from self.string(sink)
        elif self._dialect.python:
            parts: list[str] = []
            yield from self._scalar(parts.append)
            sink(escape_key("".join(parts)))
        else:
            raise Malformed
        yield from self._source.spaces(sink)
        if (yield from self._source.peek()) != ":":
            raise Malformed
        self._source.advance(self._source.position + 1)
        sink(":")

    def _bare_key(self, sink: Sink) -> Steps[None]:
        if (yield from self._quoted(sink)):
            return
        parts: list[str] = []
        yield from self._source.run(_BARE_KEY, parts.append)
        sink(f'"{escape(self._spell("".join(parts)).strip())}"')

    def _scalar(self, sink: Sink) -> Steps[None]:
        if self._dialect.raw_quote is not None and (yield from self._quoted(sink)):
            return
        if (yield from self._source.peek()) in self._dialect.quotes:
            yield from self.string(sink)
            return
        bare = self._dialect.raw_quote is not None
        parts: list[str] = []
        yield from self._source.run(_BARE_VALUE if bare else _ATOM, parts.append)
        if self._source.exhausted:
            raise Cut
        atom = "".join(parts).strip()
        value = self._dialect.constants.get(atom)
        if value is None:
            value = (
                python_number(atom) if self._dialect.loose else atom if is_number(atom) else None
            )
        if value is None and bare and atom:
            value = f'"{escape(self._spell(atom))}"'
        if value is None:
            raise Malformed
        sink(value)

    def _quoted(self, sink: Sink) -> Steps[bool]:
        """Copy a raw string, if one stands here."""
        quote = self._dialect.raw_quote
        if quote is None or not (yield from self._source.accept(quote)):
            return False
        sink('"')
        found = yield from self._source.copy(quote, lambda text: sink(escape(self._spell(text))))
        if found is None:
            raise Cut
        sink('"')
        return True

    def string(self, sink: Sink) -> Steps[None]:
        """Copy a quoted string to `sink` as JSON."""
        copy = copy_python_string if self._dialect.python else copy_json_string
        yield from copy(self._source, self._spell, sink)

    def text(self) -> Steps[str]:
        """Read a quoted string. `Malformed` where there is none."""
        if (yield from self._source.peek()) not in self._dialect.quotes:
            raise Malformed
        parts: list[str] = []
        yield from self.string(parts.append)
        return str(json.loads("".join(parts)))

    def first_field(self) -> Steps[str | None]:
        """Enter an object and read its first key and the colon; None where it is empty."""
        self._source.advance(self._source.position + 1)
        yield from self._source.spaces()
        if (yield from self._source.peek()) == "}":
            self._source.advance(self._source.position + 1)
            return None
        return (yield from self._field_name())

    def next_field(self) -> Steps[str | None]:
        """After a field's value: the next key, or None where the object closes."""
        yield from self._source.spaces()
        separator = yield from self._source.peek()
        self._source.advance(self._source.position + 1)
        if separator == "}":
            return None
        if separator != ",":
            raise Malformed
        yield from self._source.spaces()
        return (yield from self._field_name())

    def _field_name(self) -> Steps[str]:
        parts: list[str] = []
        yield from self._key(parts.append)
        yield from self._source.spaces()
        return str(json.loads("".join(parts).rstrip(": \t\r\n")))

    def skip(self) -> Steps[None]:
        """Read a value that nobody wants."""
        yield from self.copy(drop)


def field_names(text: str) -> set[str]:
    """The keys of an object, given its valid JSON, however deep the values nest."""
    literals = Literals(Source(text, ended=True), str)
    names: set[str] = set()

    def collect() -> Steps[None]:
        name = yield from literals.first_field()
        while name is not None:
            names.add(name)
            yield from literals.skip()
            name = yield from literals.next_field()

    for _ in collect():
        raise ValueError(text)
    return names


def escape_key(value: str) -> str:
    """A JSON scalar as a JSON object key."""
    return value if value.startswith('"') else f'"{value}"'


def is_number(atom: str) -> bool:
    """Whether an atom is a JSON number."""
    return _NUMBER.match(atom) is not None


def python_number(atom: str) -> str | None:
    """The JSON number that a Python number writes, or None."""
    if is_number(atom):
        return atom
    if atom.strip("+-0123456789._eExXoObBaAcCdDfF"):
        return None
    try:
        return repr(int(atom, 0))
    except ValueError:
        pass
    try:
        value = float(atom)
    except ValueError:
        return None
    return repr(value) if math.isfinite(value) else None


def whole(text: str, dialect: Dialect = JSON) -> str | None:
    """The JSON of a text that is exactly one value, or None."""
    # The space after the value tells a number at the very end from one that was cut.
    source = Source(text + " ", ended=True)
    parts: list[str] = []
    try:
        for _ in Literals(source, str, dialect).copy(parts.append):
            return None
        for _ in source.spaces():
            return None
    except (Cut, Malformed):
        return None
    return "".join(parts).strip() if source.exhausted else None
