"""Work stays proportional to the text, whatever the text is."""

import pytest
from parser_renderers import Call, Mark, Parts, message
from test_round_trips import BENCHES, Bench, spellings, tokens_of

from helios.engine.messages import FinishReason
from helios.frontend.parsers import parser_factory
from helios.frontend.parsing import ParserRequest, Piece, ToolDefinition
from helios.frontend.scan.parser import ScanningParser

UNITS = 1000
TOOLS = (ToolDefinition("book", {"properties": {"note": {"type": "string"}, "data": {}}}),)
EXAMPLE = Call("book", {"note": "window", "data": ["x", {"y": "z"}]})
MOST_LOOKS = 4
"""How often a character may be looked at, on average, where much comes at once."""
MOST_LOOKS_AT_ONCE = 100
"""And where one marker or one character comes at once."""


def parser_of(bench: Bench) -> ScanningParser:
    build = parser_factory(bench.syntax.frontend, bench.vocabulary, whole_calls=False)
    assert bench.syntax.frontend.assistant is not None
    parser = build(ParserRequest(bench.syntax.frontend.assistant.open, TOOLS))
    assert isinstance(parser, ScanningParser)
    return parser


def work(bench: Bench, start: list[int], unit: list[int], times: int) -> int:
    """The characters looked at while a unit comes again and again, a unit a step."""
    parser, decoder = parser_of(bench), bench.vocabulary.decoder()
    parser.feed(decoder.feed(start))
    pieces = decoder.feed(unit)
    for _ in range(times):
        parser.feed(pieces)
    parser.finish(FinishReason.LENGTH)
    return parser.work


def starts(bench: Bench) -> list[list[int]]:
    """Nowhere, and a few places inside a message."""
    tokens = tokens_of(bench.vocabulary, message(bench.syntax, "", "", [EXAMPLE]))
    inside = bytes(t if t < 256 else 0 for t in tokens)
    return [
        [],
        tokens[:1],
        tokens[: inside.find(b"book") + 1],
        tokens[: inside.find(b"window") + 3],
    ]


def units(bench: Bench) -> list[list[int]]:
    """Spaces, nesting, escapes; every marker, and every marker all but its last character."""
    texts = [" ", "a", "\\", '"', "{", '{"a":', "[", "<", *spellings(bench.syntax)]
    texts += [text[:-1] for text in spellings(bench.syntax) if len(text) > 1]
    return [list(text.encode()) for text in texts] + [[t] for t in bench.vocabulary.special_tokens]


@pytest.mark.parametrize("name", BENCHES)
def test_work_is_linear(name: str):
    """A little at a time, held-back text is looked at again, but never more than a marker's length
    of it. Work that grew with the text behind it would look at each character hundreds of times."""
    bench = BENCHES[name]
    for start in starts(bench):
        for unit in units(bench):
            done = work(bench, start, unit, UNITS)
            assert done <= MOST_LOOKS_AT_ONCE * (len(start) + len(unit) * UNITS), (start, unit)


@pytest.mark.parametrize(
    ("name", "opening", "text", "megabytes"),
    [
        ("function tags", [], " ", 10),
        (
            "function tags",
            [Mark("<tool_call>"), "<function=book><parameter=note>"],
            "</parameter>",
            10,
        ),
        (
            "json tags",
            [Mark("<tool_call>"), '{"name": "book", "arguments": {"note": "'],
            "\\\\",
            10,
        ),
        ("json tags", [Mark("<tool_call>"), '{"name": "book", "arguments": {"note": '], "[", 1),
        ("llama json", [], '{"a": 1} ', 10),
        ("atem", [], "<atem:invoke", 10),
        ("harmony", [], "to=", 10),
    ],
)
def test_megabytes(name: str, opening: Parts, text: str, megabytes: int):
    """Sixteen kibibytes a step."""
    bench = BENCHES[name]
    parser, decoder = parser_of(bench), bench.vocabulary.decoder()
    parser.feed(decoder.feed(tokens_of(bench.vocabulary, opening)))
    piece = Piece(text * (16384 // len(text)), 0)
    steps = megabytes * 2**20 // len(piece.text)
    said = 0
    for _ in range(steps):
        said += len(parser.feed([piece]))
    parser.finish(FinishReason.LENGTH)
    assert said >= steps - 1, "output keeps pace with input"
    assert parser.work <= MOST_LOOKS * megabytes * 2**20
