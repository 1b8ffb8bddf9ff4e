"""A core's frontend as one object: tokenizer, template, parsers and the tokens that end."""

from collections.abc import Sequence
from dataclasses import dataclass

from helios.contract.kinds import ToolParser
from helios.contract.syntax import PreparedFrontend
from helios.engine.messages import Generate
from helios.errors import RequestError
from helios.frontend.parsers import parser_factory
from helios.frontend.parsing import ParserFactory
from helios.frontend.prompt import ChatInput, ChatPrompts, Prompt, check_length
from helios.frontend.stops import StopMonitor
from helios.frontend.template import Template
from helios.frontend.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Frontend:
    """Everything between text and tokens for one model. Immutable; may be shared by threads.

    `chat` is None where the core has no template and serves completions only.
    """

    tokenizer: Tokenizer
    chat: ChatPrompts | None
    parsers: ParserFactory
    eos: frozenset[int]
    bos: int | None = None

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

    def monitor(self, request: Generate) -> StopMonitor:
        """What tells the engine where a request's string stops match."""
        if request.grammar is not None:
            raise RequestError("is not supported", field="grammar", remedy="leave it out")
        return StopMonitor(
            self.tokenizer,
            request.stop_strings,
            minimum=request.sampling.min_output,
            silent=self.eos,
        )


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
    return Frontend(words, chat, parsers, frozenset(syntax.eos_tokens), _bos(syntax, words))


def _bos(syntax: PreparedFrontend, tokenizer: Tokenizer) -> int | None:
    spelling = syntax.template_tokens.get("bos_token") if syntax.add_bos else None
    return None if spelling is None else tokenizer.token_id(spelling)
