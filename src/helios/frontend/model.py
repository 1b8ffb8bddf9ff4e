"""A core's frontend as one object: tokenizer, template, parsers and the tokens that end."""

from collections.abc import Sequence

from helios.contract.kinds import ToolParser
from helios.contract.syntax import PreparedFrontend
from helios.engine.messages import Generate
from helios.errors import RequestError
from helios.frontend.grammar.answers import Answer
from helios.frontend.grammar.constraints import UNCONSTRAINED, Constraint, Constraints, Demands
from helios.frontend.parsers import marks_of, parser_factory
from helios.frontend.parsing import ParserFactory
from helios.frontend.prompt import ChatInput, ChatPrompts, Prompt, check_length
from helios.frontend.stops import StopMonitor
from helios.frontend.template import Template
from helios.frontend.tokenizer import Tokenizer
from helios.records import dataclass
from helios.scheduler.request import HostMonitor


@dataclass(frozen=True, slots=True)
class Frontend:
    """Everything between text and tokens for one model. Immutable; may be shared by threads.

    `chat` is None where the core has no template and serves completions only, `constraints`
    where no answer can be held to a form.
    """

    tokenizer: Tokenizer
    chat: ChatPrompts | None
    parsers: ParserFactory
    eos: frozenset[int]
    bos: int | None = None
    constraints: Constraints | None = None

    def chat_prompt(self, chat: ChatInput, context: int) -> Prompt:
        """A conversation's prompt; raises `RequestError`, at once for what can't fit."""
        if self.chat is None:
            raise RequestError(
                "this model has no chat template",
                field="messages",
                remedy="use /v1/completions",
            )
        return self.chat.prepare(chat, context)

    def text_prompt(self, text: str, context: int) -> Prompt:
        """A text's prompt, with the token that begins every text of this model."""
        check_length(self.tokenizer, text, context, "prompt")
        tokens = self.tokenizer.encode(text)
        if self.bos is not None and tokens[:1] != [self.bos]:
            tokens.insert(0, self.bos)
        if not tokens:
            raise RequestError("must not be empty", field="prompt", remedy="send some text")
        return Prompt(text, tuple(tokens))

    def token_prompt(self, tokens: Sequence[int]) -> Prompt:
        """A prompt given as tokens, taken as it is."""
        if not tokens:
            raise RequestError("must not be empty", field="prompt", remedy="send some tokens")
        return Prompt(self.tokenizer.decode(tokens, at_start=False), tuple(tokens))

    def constrain(self, demands: Demands, prompt: Prompt) -> Constraint:
        """What holds a chat response to a request's demands; raises `RequestError`."""
        if demands.mode is None:
            return UNCONSTRAINED
        constraints = self._constraints("tool_choice" if demands.answer is None else "")
        return constraints.constrain(demands, prompt.text, continues=prompt.continues)

    def constrain_text(self, answer: Answer | None) -> Constraint:
        """The same for a text without any message around it."""
        if answer is None:
            return UNCONSTRAINED
        return self._constraints(answer.where).answer(answer)

    def monitor(self, request: Generate) -> HostMonitor:
        """What tells the engine which tokens a request's grammar allows, and where its string
        stops match."""
        stops = None
        if request.stop_strings:
            stops = StopMonitor(
                self.tokenizer,
                request.stop_strings,
                minimum=request.sampling.min_output,
                silent=self.eos,
            )
        if request.grammar is None and stops is not None:
            return stops
        return self._constraints("grammar").monitor(
            request.grammar or "",
            ends=frozenset(request.eos_tokens),
            minimum=request.sampling.min_output,
            stops=stops,
        )

    def _constraints(self, field: str) -> Constraints:
        if self.constraints is None:
            raise RequestError(
                "can't be enforced for this model",
                field=field or "response_format",
                remedy="leave it out",
            )
        return self.constraints


def load_frontend(syntax: PreparedFrontend, tokenizer: str, template: str | None) -> Frontend:
    """Build the frontend from the contract and the texts of its two resources.

    Raises `ContractError` where a resource can't be used, or parsers don't go together.
    """
    words = Tokenizer(tokenizer)
    parsers = parser_factory(syntax, words)
    chat = None
    if template:
        chat = ChatPrompts(
            words,
            Template(template, syntax.template_tokens),
            thinking_switches=syntax.thinking_switches,
            boundary_rules=syntax.prefix_boundaries,
            tools_supported=syntax.tool_parser is not ToolParser.NONE,
        )
    return Frontend(
        words,
        chat,
        parsers,
        frozenset(syntax.eos_tokens),
        _bos(syntax, words),
        Constraints(syntax, words, marks_of(syntax, words)),
    )


def _bos(syntax: PreparedFrontend, tokenizer: Tokenizer) -> int | None:
    spelling = syntax.template_tokens.get("bos_token") if syntax.add_bos else None
    return None if spelling is None else tokenizer.token_id(spelling)
