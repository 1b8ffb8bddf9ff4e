"""Plain messages: perhaps reasoning, then the answer or calls.

The grammar is idle while the model reasons: any token may come, but none that ends the response.
It is active from the first token where the prompt has closed reasoning or there is none.
"""

from collections.abc import Iterable

from helios.contract.kinds import ToolParser
from helios.contract.syntax import PreparedFrontend, ReasoningSyntax
from helios.frontend.grammar.calls import CallWriter, call_writer
from helios.frontend.grammar.demands import Demand, Mode
from helios.frontend.grammar.lark import (
    NOTHING,
    Writer,
    containing,
    either,
    literal,
    optional,
    pattern,
    repeated,
    sequence,
    tokens_except,
)
from helios.frontend.grammar.markers import Markers
from helios.frontend.reasoning.state import ReasoningState, initial_reasoning_state

_ANYTHING = pattern("(?s:.*)")


class MessageEnvelope:
    """Writes the messages of one core. Immutable."""

    def __init__(
        self, frontend: PreparedFrontend, markers: Markers, *, leading_space: bool = False
    ) -> None:
        self._frontend = frontend
        self._markers = markers
        self._eos = frozenset(frontend.eos_tokens)
        self._space = optional(literal(" ")) if leading_space else NOTHING
        self.calls: CallWriter | None = None
        if frontend.tool_parser is not ToolParser.NONE:
            self.calls = call_writer(frontend.tool_parser, frontend.tool_syntax, markers)

    @property
    def opener_tokens(self) -> frozenset[int] | None:
        """The tokens without which no call can be opened; None where text can open one."""
        if self.calls is None:
            return frozenset()
        openers = [self.calls.opener, *self.calls.other_openers]
        tokens = [self._markers.split(opener).token for opener in openers if opener]
        return None if None in tokens else frozenset(token for token in tokens if token is not None)

    def start(self, writer: Writer, demand: Demand, prompt: str, *, continues: bool) -> str:
        """The expression of a whole response to a prompt."""
        syntax = self._frontend.reasoning_syntax
        state = initial_reasoning_state(prompt, self._frontend.assistant, syntax)
        body = writer.rule(self._body(writer, demand))
        if syntax is None or state is ReasoningState.CLOSED:
            return body if continues else sequence(self._space, body)
        if state is ReasoningState.OPEN:
            return self._reasoning(writer, demand, syntax, body)
        if continues or not syntax.delimiters.open:
            return body
        opened = sequence(
            optional(literal("\n")),
            self._markers.expression(syntax.delimiters.open),
            self._reasoning(writer, demand, syntax, body),
        )
        return either(opened, sequence(self._space, body))

    def _reasoning(self, writer: Writer, demand: Demand, syntax: ReasoningSyntax, body: str) -> str:
        """Reasoning to its end, and what follows. An opener of calls may be that end as well."""
        newlines = repeated(literal("\n"), 0, 2) if syntax.wrapping_newlines else NOTHING
        close = syntax.delimiters.close
        calls = self.calls if demand.mode in (Mode.CALLS, Mode.EITHER, Mode.STRICT) else None
        interrupts = [syntax.delimiters.close]
        if calls and calls.opener in syntax.terminal_markers:
            interrupts.append(calls.opener)
        closed = sequence(idle(writer, self._markers, close, interrupts, self._eos), newlines, body)
        if len(interrupts) == 1 or calls is None or not self._markers.is_token(calls.opener):
            return closed
        opener = idle(writer, self._markers, calls.opener, interrupts, self._eos)
        return either(closed, calls.section(writer, demand.tools, opener, demand.most))

    def _body(self, writer: Writer, demand: Demand) -> str:
        if demand.mode is Mode.ANSWER:
            return demand.answer
        if demand.mode is Mode.SILENT or self.calls is None:
            return self._text(writer)
        if demand.mode is Mode.STRICT:
            return self._text_with_calls(writer, demand, self.calls)
        opener = self._markers.expression(self.calls.opener)
        section = self.calls.section(writer, demand.tools, opener, demand.most)
        return section if demand.mode is Mode.CALLS else either(demand.answer, section)

    def _text_with_calls(self, writer: Writer, demand: Demand, calls: CallWriter) -> str:
        """Text, in which calls follow their opener, or bare calls in its place."""
        text = self._text(writer)
        options: list[str] = []
        if calls.bare:
            options.append(
                calls.section(
                    writer, demand.tools, self._markers.expression(calls.opener), demand.most
                )
            )
        elif calls.opener:
            marker = self._markers.split(calls.opener)
            if marker.token is None:
                opened = writer.rule(sequence(_ANYTHING, literal(calls.opener)), "[lazy]")
            else:
                lead = sequence(_ANYTHING, literal(marker.lead))
                opened = sequence(writer.terminal(lead), marker.rest)
            section = calls.section(writer, demand.tools, opened, demand.most)
            times = 1 if demand.most == 1 else None
            return sequence(repeated(section, 0, times), text)
        return either(*options, text)

    def _text(self, writer: Writer) -> str:
        """Text that no reader takes for a call, nor a part of it."""
        calls = self.calls
        if calls is None:
            return writer.rule(writer.terminal(_ANYTHING))
        conditions = [_ANYTHING]
        spelled = self._markers.spelled([calls.opener, *calls.other_openers])
        if spelled:
            conditions.append(f"~{writer.terminal(containing(spelled))}")
        if calls.bare:
            bare = pattern(rf"[ \t\r\n]*\{calls.bare}(?s:.*)")
            conditions.append(f"~{writer.terminal(bare)}")
        return writer.rule(writer.terminal(" & ".join(conditions)))


def idle(
    writer: Writer, markers: Markers, end: str, interrupts: Iterable[str], eos: Iterable[int]
) -> str:
    """Anything up to and including the marker `end`, without the other `interrupts`.

    Where the marker begins with a token every other token may come, the special ones too, except
    `eos`; else any text.
    """
    marker = markers.split(end)
    if marker.token is None:
        return writer.until(_ANYTHING, end)
    if marker.lead:
        return sequence(writer.terminal(sequence(_ANYTHING, literal(marker.lead))), marker.rest)
    tokens = {markers.split(text).token for text in interrupts} - {None}
    stopped = {token for token in tokens if token is not None} | set(eos)
    return sequence(writer.rule(repeated(tokens_except(stopped))), marker.rest)
