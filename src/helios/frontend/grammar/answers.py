"""What a request may demand of an answer's text, as expressions."""

from dataclasses import field
from enum import Enum
from typing import Any

from helios.errors import RequestError
from helios.frontend.grammar.lark import (
    NO_TEXT,
    NOTHING,
    ForeignPart,
    Writer,
    either,
    literal,
    pattern,
)
from helios.frontend.grammar.schemas import FREE, Whitespace, compact, document, read_schema
from helios.records import dataclass

MAX_CHOICES = 4096


class AnswerKind(Enum):
    """How the demand is put."""

    JSON = "json"
    REGEX = "regex"
    CHOICE = "choice"
    GRAMMAR = "grammar"


@dataclass(frozen=True, slots=True)
class Answer:
    """A demand as it came: `where` is the request's field that holds `source`.

    `closed` shuts objects of a schema that say nothing of further properties.
    """

    kind: AnswerKind
    source: Any
    where: str
    closed: bool = False
    whitespace: Whitespace = field(default=FREE)


def write_answer(writer: Writer, answer: Answer) -> str:
    """The expression of conforming answers. Raises `RequestError`."""
    return _WRITERS[answer.kind](writer, answer)


def _json(writer: Writer, answer: Answer) -> str:
    schema = read_schema(answer.source, answer.where, closed=answer.closed)
    whole = document(schema, answer.whitespace)
    writer.parts.append(ForeignPart(answer.where, schema, compact(schema)))
    return writer.json(whole)


def _regex(writer: Writer, answer: Answer) -> str:
    from llguidance import LLMatcher, regex_to_lark

    regex = _text(answer)
    writer.parts.append(ForeignPart(answer.where, regex, LLMatcher.grammar_from_regex(regex)))
    return writer.terminal(pattern(regex_to_lark(regex))) if regex else NOTHING


def _choice(writer: Writer, answer: Answer) -> str:
    choices = answer.source
    if not isinstance(choices, list) or not all(isinstance(text, str) for text in choices):
        raise _bad(answer, "must be a list of texts")
    if not 0 < len(choices) <= MAX_CHOICES:
        raise _bad(answer, f"must have 1 to {MAX_CHOICES} choices")
    listed = either(*map(literal, choices))
    writer.parts.append(ForeignPart(answer.where, choices, f"start: {listed or NO_TEXT}"))
    return writer.rule(listed)


def _grammar(writer: Writer, answer: Answer) -> str:
    """Lark, or one of the notations that can be turned into it."""
    from llguidance import grammar_from

    text = _text(answer)
    try:
        lark = grammar_from("grammar", text)
    except Exception as error:  # the conversion raises whatever its own code runs into
        raise _bad(answer, f"can't be read: {error}") from None
    writer.parts.append(ForeignPart(answer.where, text, lark))
    return writer.nested(lark)


def _text(answer: Answer) -> str:
    if not isinstance(answer.source, str):
        raise _bad(answer, "must be a text")
    return answer.source


def _bad(answer: Answer, message: str) -> RequestError:
    return RequestError(
        message, field=answer.where, value=answer.source, remedy="correct the request"
    )


_WRITERS = {
    AnswerKind.JSON: _json,
    AnswerKind.REGEX: _regex,
    AnswerKind.CHOICE: _choice,
    AnswerKind.GRAMMAR: _grammar,
}
