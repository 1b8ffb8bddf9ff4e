"""Strings, copied as JSON string text while they come."""

import json
import re
import unicodedata
from collections.abc import Callable
from typing import TypeAlias

from helios.frontend.scan.source import Malformed, Sink, Source, Steps

Spell: TypeAlias = Callable[[str], str]

_JSON_TEXT = re.compile(r'(?:[^"\\\x00-\x1f\ud800-\udfff]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})++')
_PYTHON_TEXT = {quote: re.compile(rf"[^{quote}\\]++") for quote in "'\""}
_PYTHON_ESCAPES = {
    "\\": "\\",
    "'": "'",
    '"': '"',
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\n": "",
}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_OCTAL = re.compile(r"[0-7]{1,3}")


def escape(text: str) -> str:
    """Text as it stands inside a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def copy_json_string(source: Source, spell: Spell, sink: Sink) -> Steps[None]:
    """Copy a JSON string, quotes included. Escapes stay as they are written; raw control
    characters, which have one reading only, are escaped; tokens are spelled out."""
    sink(source.advance(source.position + 1))
    while True:
        yield from source.run(_JSON_TEXT, sink)
        character = yield from source.peek()
        if character == '"':
            sink(source.advance(source.position + 1))
            return
        if character != "\\":
            sink(escape(spell(source.advance(source.position + 1))))
            continue
        kind = (yield from source.need(2))[1]
        size = 6 if kind == "u" else 2
        if not _JSON_TEXT.match((yield from source.need(size))):
            raise Malformed
        sink(source.advance(source.position + size))


def copy_python_string(source: Source, spell: Spell, sink: Sink) -> Steps[None]:
    """Copy a single-quoted or double-quoted Python string as a JSON string."""
    quote = source.advance(source.position + 1)
    sink('"')
    while True:
        yield from source.run(_PYTHON_TEXT[quote], lambda text: sink(escape(spell(text))))
        if (yield from source.peek()) == quote:
            source.advance(source.position + 1)
            sink('"')
            return
        yield from _copy_python_escape(source, sink)


def _copy_python_escape(source: Source, sink: Sink) -> Steps[None]:
    kind = (yield from source.need(2))[1]
    if kind in _HEX_DIGITS:
        size = 2 + _HEX_DIGITS[kind]
        digits = (yield from source.need(size))[2:]
        sink(_code_point(digits, 16))
    elif kind in "01234567":
        digits = yield from _octal_digits(source)
        size = 1 + len(digits)
        sink(_code_point(digits, 8))
    elif kind == "N":
        yield from _copy_named(source, sink)
        return
    else:
        size = 2
        sink(escape(_PYTHON_ESCAPES.get(kind, "\\" + kind)))
    source.advance(source.position + size)


def _octal_digits(source: Source) -> Steps[str]:
    for size in (3, 4):
        window = yield from source.need(size)
        if not _OCTAL.fullmatch(window[1:]):
            return window[1:-1]
    return window[1:]


def _copy_named(source: Source, sink: Sink) -> Steps[None]:
    """`\\N{NAME}`."""
    for size in range(3, 90):
        window = yield from source.need(size)
        if window[-1] == "}":
            source.advance(source.position + size)
            try:
                sink(escape(unicodedata.lookup(window[3:-1])))
            except KeyError:
                raise Malformed from None
            return
    raise Malformed


def _code_point(digits: str, base: int) -> str:
    """A character by number, as JSON string text."""
    try:
        number = int(digits, base)
        if 0xD800 <= number < 0xE000:
            return f"\\u{number:04x}"
        return escape(chr(number))
    except (ValueError, OverflowError):
        raise Malformed from None
