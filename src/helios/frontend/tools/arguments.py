"""Builds a call's arguments, one JSON object, from keys and values as they come."""

from helios.frontend.scan.output import Output
from helios.frontend.scan.source import Malformed
from helios.frontend.tools.strings import Spell, escape


class Arguments:
    """The arguments object of the newest call. A key that comes twice is `Malformed`: the first
    value may already have been sent."""

    def __init__(self, output: Output, spell: Spell) -> None:
        self._output = output
        self._spell = spell
        self.keys: set[str] = set()
        self._whole = False

    def key(self, name: str) -> None:
        """Begin a value."""
        if name in self.keys or self._whole:
            raise Malformed
        self._output.arguments(f'{", " if self.keys else "{"}"{escape(name)}": ')
        self.keys.add(name)

    def quote(self) -> None:
        """Begin or end a string value."""
        self._output.arguments('"')

    def text(self, text: str) -> None:
        """More of a string value, raw."""
        self._output.arguments(escape(self._spell(text)))

    def string(self, text: str) -> None:
        """A whole string value, raw."""
        self._output.arguments(f'"{escape(self._spell(text))}"')

    def json(self, text: str) -> None:
        """A value as JSON, whole or in parts."""
        self._output.arguments(text)

    def whole(self, text: str) -> None:
        """The whole object as JSON, in parts, instead of keys and values."""
        if self.keys:
            raise Malformed
        self._whole = True
        self._output.arguments(text)

    def close(self) -> None:
        """No more values."""
        if not self._whole:
            self._output.arguments("}" if self.keys else "{}")
