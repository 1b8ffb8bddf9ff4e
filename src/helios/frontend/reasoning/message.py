"""A plain message: perhaps reasoning, then text and calls.

Reasoning ends once. A closer that comes later as its token is dropped with all other stray
tokens; spelled in ordinary text it is text. An opener that is no token counts only at the very
start of an answer, where prose can't quote it.
"""

from helios.frontend.reasoning.think import ThinkTags
from helios.frontend.scan.shapes import boundary, maybe, only_spaces_left, sequence, spaces
from helios.frontend.scan.source import Cut, Malformed, Steps
from helios.frontend.tools.grammar import ToolGrammar
from helios.frontend.tools.reply import Reply


class MessageGrammar:
    """The compiled syntax of messages. Immutable.

    `tools` is None where no tools are on offer: their markers are then text. `ends_reasoning`
    says that an opener of calls does, `trims` that whitespace around calls is syntax.
    """

    def __init__(
        self,
        think: ThinkTags | None,
        tools: ToolGrammar | None,
        *,
        ends_reasoning: bool = False,
        trims: bool = False,
    ) -> None:
        openers = dict(tools.openers) if tools else {}
        self.think = think
        self.tools = tools
        self.within = boundary(
            think=think.open if think and think.open_is_token else None, **openers
        )
        self.thinking = boundary(
            close=think.close if think else None,
            **dict(list(openers.items())[:1] if ends_reasoning else ()),
        )
        self.at_start = boundary(
            **{kind: sequence(spaces(), shape) for kind, shape in openers.items()}
        )
        self.trailing = maybe(only_spaces_left() if trims else None)


class Message:
    """One response's message. `structured` says that a grammar constrains the answer, which is
    then either calls or text in which markers have no meaning."""

    def __init__(self, grammar: MessageGrammar, reply: Reply, *, structured: bool) -> None:
        self._grammar = grammar
        self._reply = reply
        self._source = reply.source
        self._structured = structured

    def run(self) -> Steps[None]:
        """Read the whole message."""
        while (yield from self._part()):
            pass

    def _part(self) -> Steps[bool]:
        """Read reasoning, or an answer up to the next reasoning. Whether more may follow."""
        think = self._grammar.think
        if think:
            if (yield from self._source.accept(think.opened)):
                yield from self._reason(think)
                return True
            if (yield from self._source.accept(think.closed)):
                yield from self._newlines(think)
                return True
        if self._grammar.tools and self._grammar.tools.bare:
            yield from self._calls("", "")
        if self._structured:
            yield from self._structured_answer()
            return False
        return (yield from self._answer())

    def _reason(self, think: ThinkTags) -> Steps[None]:
        yield from self._source.accept(think.newline)
        if (yield from self._source.accept(think.opened)):
            yield from self._source.accept(think.newline)
        found = yield from self._source.copy(self._grammar.thinking, self._reply.output.reasoning)
        if found and found.lastgroup == "close":
            yield from self._newlines(think)
        elif found:
            yield from self._calls(found.group(), found.lastgroup or "")

    def _newlines(self, think: ThinkTags) -> Steps[None]:
        """The two newlines behind a closer, one after the other: either may be missing."""
        if (yield from self._source.accept(think.newline)):
            yield from self._source.accept(think.newline)

    def _answer(self) -> Steps[bool]:
        while True:
            found = yield from self._source.copy(self._grammar.within, self._reply.output.content)
            if found is None:
                return False
            if found.lastgroup == "think" and self._grammar.think:
                yield from self._reason(self._grammar.think)
                return True
            yield from self._calls(found.group(), found.lastgroup or "")

    def _structured_answer(self) -> Steps[None]:
        while found := (yield from self._source.accept(self._grammar.at_start)):
            yield from self._calls(found.group(), found.lastgroup or "")
        yield from self._source.copy(_NOTHING, self._reply.output.answer)

    def _calls(self, opener: str, kind: str) -> Steps[None]:
        """Read calls. What turns out to be none is text after all, less the tokens in it; what
        was already known for a call, and is broken, is skipped."""
        tools = self._grammar.tools
        if tools is None:
            return
        self._source.record(opener)
        try:
            yield from tools.calls(self._reply, kind)
        except Malformed:
            if self._source.recording:
                self._reply.output.content(self._source.recorded())
            else:
                self._reply.output.abandon()
                yield from tools.recover(self._reply)
        except Cut:
            if not self._source.recording or (kind and not self._source.natural):
                raise
            self._reply.output.content(self._source.recorded())
        self._source.forget()
        if self._grammar.trailing:
            yield from self._source.accept(self._grammar.trailing)


_NOTHING = boundary()
