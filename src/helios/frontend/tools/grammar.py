"""What a message needs to know of a tool syntax."""

from collections.abc import Mapping
from typing import Protocol

from helios.contract.syntax import ToolSyntax
from helios.frontend.scan.marks import Marks
from helios.frontend.scan.shapes import Shape, either, literal, sequence, spaces
from helios.frontend.scan.source import Steps
from helios.frontend.tools.reply import Reply

NAME_LIMIT = 256
"""The longest tool name or call id. What is longer is no name."""
KEY_LIMIT = 4096
"""The longest argument name, and the longest tag around one."""


class ToolGrammar(Protocol):
    """A compiled tool syntax. Immutable; shared by all responses of a core."""

    @property
    def openers(self) -> Mapping[str, Shape]:
        """What opens calls within text, each under a name; the syntax's own opener first."""

    @property
    def bare(self) -> bool:
        """Whether a message may itself be a call, without any opener."""

    def calls(self, reply: Reply, opener: str) -> Steps[None]:
        """Read the calls behind an opener, or at the start of a message where `opener` is ''.

        Raises `Malformed`. Unless the reply has been committed by then, the text was never a call.
        """

    def recover(self, reply: Reply) -> Steps[None]:
        """Read on to where text may follow after a broken call."""


class Spelling:
    """Turns the markers of a syntax into shapes."""

    def __init__(self, syntax: ToolSyntax, marks: Marks) -> None:
        self._syntax = syntax
        self._marks = marks

    def marker(self, text: str) -> Shape | None:
        """A marker, or None where the syntax has none."""
        return literal(self._marks.private(text)) if text else None

    def spaced(self, *texts: str) -> Shape | None:
        """Whitespace and then one of several markers; None where the syntax has none of them."""
        shapes = [shape for text in texts if (shape := self.marker(text))]
        return sequence(spaces(), either(*shapes)) if shapes else None

    def opener(self, text: str) -> Shape:
        """A marker together with what belongs to it of the text before."""
        shape = literal(self._marks.private(text))
        if self._syntax.trims_content:
            return sequence(spaces(), shape)
        if self._syntax.lead:
            return either(sequence(literal(self._syntax.lead), shape), shape)
        return shape

    def is_token(self, text: str) -> bool:
        """Whether a marker can't be spelled in ordinary text."""
        return self._marks.is_token(text)
