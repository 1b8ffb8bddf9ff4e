"""XTML: messages made of elements, each opened and closed by tags of three control tokens."""

import re
from collections.abc import Mapping, Sequence

from helios.contract.syntax import PreparedFrontend, ToolSyntax
from helios.frontend.grammar.demands import Demand, Mode
from helios.frontend.grammar.lark import (
    NOTHING,
    Writer,
    either,
    literal,
    optional,
    pattern,
    separated,
    sequence,
)
from helios.frontend.grammar.markers import Markers
from helios.frontend.grammar.messages import idle
from helios.frontend.grammar.tools import Parameter, Tool
from helios.frontend.grammar.values import RawText, split, text_terminal
from helios.frontend.reasoning.state import open_tail
from helios.frontend.tools.schemas import STRING, allowed_types


class ElementEnvelope:
    """Writes the messages of one core. Immutable."""

    def __init__(self, frontend: PreparedFrontend, markers: Markers) -> None:
        syntax = frontend.tool_syntax or ToolSyntax()
        self._frontend = frontend
        self._syntax = syntax
        self._markers = markers
        self._eos = frozenset(frontend.eos_tokens)
        self._open = syntax.block.open.removesuffix(f"tools{syntax.tag_end}")
        self._shut = syntax.block.close.removesuffix(f"tools{syntax.tag_end}")
        opened = rf"({re.escape(self._open)}|{re.escape(self._shut)})\s*(think|response)\b"
        self._tag = re.compile(opened)

    @property
    def opener_tokens(self) -> frozenset[int] | None:
        """No token stands for calls alone."""
        return None

    def start(self, writer: Writer, demand: Demand, prompt: str, *, continues: bool) -> str:
        """The expression of a whole response to a prompt."""
        within = self._within(open_tail(prompt, self._frontend.assistant))
        end = optional(self._closed("message"))
        body = sequence(self._body(writer, demand), end)
        if within == "response":
            return sequence(self._from_response(writer, demand), end)
        thought = sequence(
            idle(writer, self._markers, self._shut, (self._shut, self._open), self._eos),
            self._markers.expression(f"think{self._syntax.tag_end}"),
            body,
        )
        if within == "think":
            return thought
        return either(sequence(self._opened("think"), thought), body)

    def _within(self, tail: str) -> str:
        """The element that the prompt leaves open."""
        tags = list(self._tag.finditer(tail))
        return tags[-1][2] if tags and tags[-1][1] == self._open else ""

    def _body(self, writer: Writer, demand: Demand) -> str:
        answer = self._answer(writer, demand)
        response = sequence(self._opened("response"), answer, self._closed("response"))
        if demand.mode in (Mode.ANSWER, Mode.SILENT):
            return response
        calls = self._calls(writer, demand)
        if demand.mode is Mode.CALLS:
            return calls
        if demand.mode is Mode.EITHER:
            return either(response, calls)
        return either(sequence(response, optional(calls)), calls)

    def _from_response(self, writer: Writer, demand: Demand) -> str:
        """As `_body` where the response is open: calls close it first."""
        shut = self._closed("response")
        answer = sequence(self._answer(writer, demand), shut)
        if demand.mode in (Mode.ANSWER, Mode.SILENT):
            return answer
        calls = self._calls(writer, demand)
        if demand.mode is Mode.STRICT:
            return sequence(answer, optional(calls))
        called = sequence(shut, calls)
        return called if demand.mode is Mode.CALLS else either(answer, called)

    def _answer(self, writer: Writer, demand: Demand) -> str:
        return demand.answer or writer.terminal(pattern("(?s:.*)"))

    def _calls(self, writer: Writer, demand: Demand) -> str:
        call = writer.rule(either(*[self._call(writer, tool) for tool in demand.tools]))
        calls = separated(call, NOTHING, 1, demand.most)
        return sequence(self._opened("tools"), calls, self._closed("tools"))

    def _call(self, writer: Writer, tool: Tool) -> str:
        index = sequence(literal(' index="'), writer.terminal("/[1-9][0-9]{0,2}/"), literal('"'))
        parameters = tool.parameters
        body: list[str] = []
        if parameters is None:
            json = f'json {self._syntax.type_attribute}="object"'
            body = [self._opened(json), tool.arguments(writer), self._closed("json")]
        for one in parameters or ():
            argument = self._argument(writer, tool, one)
            body.append(argument if one.required else optional(argument))
        return sequence(
            self._markers.expression(f'{self._open}call tool="{_attribute(tool.name)}"'),
            optional(index),
            self._markers.expression(self._syntax.tag_end),
            *body,
            self._closed("call"),
        )

    def _argument(self, writer: Writer, tool: Tool, parameter: Parameter) -> str:
        parts = split(parameter.schema, tool.schema, parameter.where)
        options = [self._typed("string", self._text(writer, raw)) for raw in parts.raw]
        if parts.other is not None:
            options += self._others(writer, tool, parts.other)
        head = self._markers.expression(f'{self._open}argument key="{_attribute(parameter.name)}"')
        return writer.rule(sequence(head, either(*options), self._closed("argument")))

    def _others(self, writer: Writer, tool: Tool, schema: Mapping[str, object]) -> Sequence[str]:
        types = sorted(allowed_types(schema, tool.schema) - STRING)
        if "integer" in types and "number" in types:
            types.remove("integer")  # the wire calls both numbers
        values = {kind: tool.value(writer, _only(schema, kind)) for kind in types}
        return [self._typed(_WIRE.get(kind, kind), value) for kind, value in values.items()]

    def _typed(self, kind: str, value: str) -> str:
        attribute = f' {self._syntax.type_attribute}="{kind}"{self._syntax.tag_end}'
        return sequence(self._markers.expression(attribute), value)

    def _text(self, writer: Writer, raw: RawText) -> str:
        texts = self._markers.spelled([self._open, self._shut])
        return text_terminal(writer, RawText(raw.texts, raw.patterns, raw.least, raw.most), texts)

    def _opened(self, element: str) -> str:
        return self._markers.expression(f"{self._open}{element}{self._syntax.tag_end}")

    def _closed(self, element: str) -> str:
        return self._markers.expression(f"{self._shut}{element}{self._syntax.tag_end}")


_WIRE = {"integer": "number"}


def _only(schema: Mapping[str, object], kind: str) -> Mapping[str, object]:
    """A schema narrowed to one type."""
    return {"allOf": [dict(schema), {"type": kind}]}


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;")
