"""From what a request demands to a compiled grammar, by the core's own message syntax."""

from collections.abc import Sequence
from dataclasses import field
from enum import Enum
from typing import Protocol

from helios.contract.kinds import ToolParser
from helios.contract.syntax import PreparedFrontend
from helios.errors import RequestError
from helios.frontend.grammar.answers import Answer, write_answer
from helios.frontend.grammar.compiled import CompiledGrammars
from helios.frontend.grammar.demands import Demand, Mode
from helios.frontend.grammar.elements import ElementEnvelope
from helios.frontend.grammar.frames import FrameEnvelope
from helios.frontend.grammar.lark import Writer
from helios.frontend.grammar.markers import Markers
from helios.frontend.grammar.messages import MessageEnvelope
from helios.frontend.grammar.monitor import GrammarMonitor
from helios.frontend.grammar.tools import MOST_CALLS, Tool, read_tools
from helios.frontend.grammar.vocabulary import GrammarVocabulary, TokenSource
from helios.frontend.parsing import ToolDefinition
from helios.frontend.scan.marks import Marks
from helios.frontend.stops import StopMonitor
from helios.records import dataclass


class ToolChoice(Enum):
    """Who decides whether a tool is called."""

    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class Demands:
    """What a request demands. `tools` are those it offers to the model, which `names` limits
    where the choice does; the choice is NONE only where there were tools. `single` asks for at
    most one call."""

    answer: Answer | None = None
    choice: ToolChoice = ToolChoice.AUTO
    tools: Sequence[ToolDefinition] = ()
    names: frozenset[str] | None = None
    single: bool = False

    @property
    def allowed(self) -> list[tuple[int, ToolDefinition]]:
        """The tools that may be called."""
        names = self.names
        return [
            (number, tool)
            for number, tool in enumerate(self.tools)
            if names is None or tool.name in names
        ]

    @property
    def mode(self) -> Mode | None:
        """What the response is to consist of; None where anything will do."""
        if self.choice is ToolChoice.REQUIRED:
            return Mode.CALLS
        callable_tools = self.choice is ToolChoice.AUTO and bool(self.tools)
        if self.answer is not None:
            return Mode.EITHER if callable_tools else Mode.ANSWER
        if callable_tools:
            strict = any(tool.strict for _, tool in self.allowed)
            return Mode.STRICT if strict or self.names is not None else None
        return Mode.SILENT if self.choice is ToolChoice.NONE else None


@dataclass(frozen=True, slots=True)
class Constraint:
    """What the engine and the parser are told.

    `key` names a compiled grammar. `structured` says that answer text is the grammar's, `forced`
    that the request itself demanded a form. `banned` tokens must not be sampled.
    """

    key: str | None = None
    structured: bool = False
    forced: bool = False
    banned: frozenset[int] = field(default_factory=frozenset)


UNCONSTRAINED = Constraint()


class Envelope(Protocol):
    """Writes whole responses of one core."""

    @property
    def opener_tokens(self) -> frozenset[int] | None:
        """The tokens without which no call can be opened; None where banning tokens won't do."""

    def start(self, writer: Writer, demand: Demand, prompt: str, *, continues: bool) -> str:
        """The expression of a whole response to a prompt."""


class Constraints:
    """Constraints of one core. Immutable but for its cache; may be used by several threads."""

    def __init__(self, frontend: PreparedFrontend, tokenizer: TokenSource, marks: Marks) -> None:
        markers = Markers(marks)
        self._frontend = frontend
        self._envelope = _envelope(frontend, tokenizer, markers)
        self._vocabulary = GrammarVocabulary(tokenizer, markers.tokens, frontend.eos_tokens)
        self._compiled = CompiledGrammars(self._vocabulary)

    def constrain(self, demands: Demands, prompt: str, *, continues: bool = False) -> Constraint:
        """What holds a response to the demands. Raises `RequestError` naming the part of the
        request that can't be followed."""
        mode = demands.mode
        if mode is None:
            return UNCONSTRAINED
        if mode is Mode.SILENT:
            banned = self._envelope.opener_tokens
            if banned is not None:
                return Constraint(banned=banned)
        writer = Writer()
        answer = write_answer(writer, demands.answer) if demands.answer else ""
        tools = [] if mode in (Mode.ANSWER, Mode.SILENT) else self._tools(writer, demands)
        demand = Demand(mode, answer, tools, 1 if demands.single else MOST_CALLS)
        start = self._envelope.start(writer, demand, prompt, continues=continues)
        return Constraint(
            key=self._compiled.add(writer, start),
            structured=mode in (Mode.ANSWER, Mode.EITHER),
            forced=mode not in (Mode.STRICT, Mode.SILENT),
        )

    def answer(self, answer: Answer) -> Constraint:
        """As `constrain` for a text without any envelope."""
        writer = Writer()
        start = write_answer(writer, answer)
        return Constraint(self._compiled.add(writer, start), structured=True, forced=True)

    def monitor(
        self,
        key: str,
        *,
        ends: frozenset[int],
        minimum: int = 0,
        stops: StopMonitor | None = None,
    ) -> GrammarMonitor:
        """A monitor at the start of a grammar."""
        matcher = self._compiled.matcher(key)
        size = self._vocabulary.size
        return GrammarMonitor(matcher, size, ends=ends, minimum=minimum, stops=stops)

    def _tools(self, writer: Writer, demands: Demands) -> list[Tool]:
        if self._frontend.tool_parser is ToolParser.NONE:
            raise RequestError(
                "this model has no tool syntax", field="tools", remedy="leave the tools out"
            )
        return read_tools(writer, demands.allowed)


def _envelope(frontend: PreparedFrontend, tokenizer: TokenSource, markers: Markers) -> Envelope:
    syntax = frontend.tool_syntax
    if frontend.tool_parser is ToolParser.XTML:
        return ElementEnvelope(frontend, markers)
    if frontend.tool_parser in (ToolParser.HARMONY, ToolParser.ATEM) and syntax and syntax.frame:
        return FrameEnvelope(frontend, syntax.frame, markers)
    return MessageEnvelope(frontend, markers, leading_space=tokenizer.leading_strip)
