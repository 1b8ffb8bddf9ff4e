"""Calls in a model's own tool syntax, as expressions written from the syntax's data."""

from collections.abc import Callable, Sequence
from typing import Protocol

from helios.contract.kinds import ToolParser
from helios.contract.syntax import ToolSyntax
from helios.frontend.grammar.json_calls import JsonCalls, JsonList
from helios.frontend.grammar.lark import Writer
from helios.frontend.grammar.markers import Markers
from helios.frontend.grammar.named_calls import NamedCalls
from helios.frontend.grammar.python_calls import PythonCalls
from helios.frontend.grammar.tag_calls import TagCalls
from helios.frontend.grammar.tools import Tool


class CallWriter(Protocol):
    """Writes the calls of one syntax. Immutable."""

    @property
    def opener(self) -> str:
        """The marker that opens calls within text; '' where there is none."""

    @property
    def other_openers(self) -> Sequence[str]:
        """Further markers that a reader takes for calls."""

    @property
    def bare(self) -> str:
        """The character with which calls begin that need no opener; '' where all need one."""

    def section(self, writer: Writer, tools: Sequence[Tool], opener: str, most: int) -> str:
        """One to `most` calls; `opener` is the expression of what opens them. Raises
        `RequestError` for tools that the syntax can't hold."""


_WRITERS: dict[ToolParser, Callable[[ToolSyntax, Markers], CallWriter]] = {
    ToolParser.FUNCTION_TAGS: TagCalls,
    ToolParser.INVOKE_TAGS: TagCalls,
    ToolParser.ARGUMENT_TAGS: TagCalls,
    ToolParser.DSML: TagCalls,
    ToolParser.SECTIONS: NamedCalls,
    ToolParser.NAMED_JSON: NamedCalls,
    ToolParser.QUOTED_MAPPING: NamedCalls,
    ToolParser.JSON_TAGS: JsonCalls,
    ToolParser.JSON_MESSAGE: JsonCalls,
    ToolParser.JSON_ARRAY: JsonList,
    ToolParser.PYTHONIC: PythonCalls,
}


def call_writer(parser: ToolParser, syntax: ToolSyntax | None, markers: Markers) -> CallWriter:
    """The writer of a parser's calls within plain messages."""
    return _WRITERS[parser](syntax or ToolSyntax(), markers)
