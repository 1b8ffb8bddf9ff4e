"""XTML: a message made of elements, each opened and closed by tags of three control tokens.

    <open>think<sep>…<close>think<sep><open>response<sep>…<close>response<sep>
    <open>tools<sep><open>call tool="book" index="1"<sep>
      <open>argument key="guests" type="number"<sep>4<close>argument<sep><close>call<sep>
    <close>tools<sep><close>message<sep>

Elements close each other where a closer is missing. `index` is information only. A call may hold
one `json` element instead of arguments.
"""

import re

from helios.contract.syntax import ToolSyntax
from helios.frontend.scan.marks import Marks
from helios.frontend.scan.shapes import ahead, boundary, either, literal, sequence, spaces
from helios.frontend.scan.source import Cut, Malformed, Sink, Steps, drop
from helios.frontend.tools.arguments import Arguments
from helios.frontend.tools.grammar import KEY_LIMIT
from helios.frontend.tools.reply import Reply
from helios.frontend.tools.schemas import TYPES, encode

_ELEMENTS = ("think", "response", "tools", "call", "argument", "json", "message")
_INNER = ("call", "argument", "json")
_ATTRIBUTE = re.compile(r'([\w.\-]+)\s*=\s*"([^"]*)"')


class XtmlGrammar:
    """The compiled control tokens, taken from the tags of the `tools` element. Immutable."""

    def __init__(self, syntax: ToolSyntax, marks: Marks) -> None:
        open_mark = syntax.block.open.removesuffix(f"tools{syntax.tag_end}")
        close_mark = syntax.block.close.removesuffix(f"tools{syntax.tag_end}")
        opener = literal(marks.private(open_mark))
        closer = literal(marks.private(close_mark))
        separator = literal(marks.private(syntax.tag_end))
        closers = {name: sequence(closer, spaces(), literal(name)) for name in _ELEMENTS}
        any_tag = either(ahead(opener), ahead(closer))
        self.type_attribute = syntax.type_attribute
        self.tag = boundary(open=opener, **closers)
        self.separator = boundary(here=sequence(spaces(), separator))
        self.header_end = boundary(here=separator, cut=any_tag)
        self.value_end = boundary(
            here=closers["argument"], cut=any_tag if marks.is_token(close_mark) else None
        )


class Xtml:
    """One response's elements."""

    def __init__(self, grammar: XtmlGrammar, reply: Reply) -> None:
        self._grammar = grammar
        self._reply = reply
        self._source = reply.source
        self._name = ""
        self._arguments: Arguments | None = None

    def run(self) -> Steps[None]:
        """Read the whole message. Text outside of all elements is answer."""
        sink: Sink = self._reply.output.content
        while found := (yield from self._source.copy(self._grammar.tag, sink)):
            element = found.lastgroup or ""
            try:
                if element == "open":
                    sink = yield from self._open()
                else:
                    yield from self._source.accept(self._grammar.separator)
                    sink = self._close(element)
            except Malformed:
                self._reply.output.abandon()
                self._arguments = None
                sink = drop
        required = self._reply.tools.types(self._name).required
        if self._source.natural and self._arguments and required <= self._arguments.keys:
            self._finish_call()
        self._reply.output.abandon()

    def _open(self) -> Steps[Sink]:
        """Read an opening tag; where the text of its element goes."""
        header, _ = yield from self._source.take(self._grammar.header_end, KEY_LIMIT)
        element = header.split(None, 1)[0] if header.strip() else ""
        attributes = {key: _unescape(value) for key, value in _ATTRIBUTE.findall(header)}
        if element in ("argument", "json"):
            if self._arguments:
                yield from self._value(element, attributes, self._arguments)
            return drop
        self._finish_call()
        if element == "call":
            self._start_call(self._reply.lettering.drop(attributes.get("tool", "")))
        if element in ("call", "tools"):
            return drop
        return self._reply.output.reasoning if element == "think" else self._reply.output.content

    def _close(self, element: str) -> Sink:
        """Leave an element; where the text behind it goes."""
        if element not in ("argument", "json"):
            self._finish_call()
        return drop if element in _INNER else self._reply.output.content

    def _start_call(self, name: str) -> None:
        if not name:
            raise Malformed
        self._name = name
        self._reply.start(name)
        self._arguments = self._reply.arguments()

    def _finish_call(self) -> None:
        if self._arguments:
            self._arguments.close()
            self._reply.output.end()
        self._arguments = None

    def _value(self, element: str, attributes: dict[str, str], arguments: Arguments) -> Steps[None]:
        if element == "json":
            yield from self._source.spaces()
            if (yield from self._source.peek()) != "{":
                raise Malformed
            yield from self._reply.literals().copy(arguments.whole)
            return
        if "key" not in attributes:
            raise Malformed
        arguments.key(self._reply.lettering.spell(attributes["key"]))
        kind = attributes.get(self._grammar.type_attribute, "string")
        if kind == "string":
            arguments.quote()
            yield from self._copy_value(arguments.text)
            arguments.quote()
            return
        parts: list[str] = []
        yield from self._copy_value(parts.append)
        text = self._reply.lettering.spell("".join(parts))
        value = encode(text, TYPES.intersection([kind]) or TYPES)
        if value is None:
            arguments.string(text)
        else:
            arguments.json(value)

    def _copy_value(self, sink: Sink) -> Steps[None]:
        found = yield from self._source.copy(self._grammar.value_end, sink)
        if found is None:
            raise Cut
        if found.lastgroup == "here":
            yield from self._source.accept(self._grammar.separator)


def _unescape(value: str) -> str:
    return value.replace("&quot;", '"').replace("&amp;", "&")
