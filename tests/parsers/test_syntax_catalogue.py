"""Every syntax of the catalogue is one that a contract may declare."""

from types import SimpleNamespace

import pytest
from parser_runs import frontend
from parser_vocabulary import TestVocabulary

from helios.contract.decode_frontend import decode_frontend
from helios.contract.kinds import ReasoningParser, ToolParser
from helios.contract.rules import frontend as rules
from helios.errors import ContractError
from helios.frontend.parsers import parser_factory
from helios.frontend.parsing import plain_parser
from helios.frontend.tools.schemas import TYPES, allowed_types
from helios.ignition.preparation import syntaxes as s
from helios.schema import frontend_pb2 as pb

TOOLS = {name: value for name, value in vars(s).items() if isinstance(value, s.Tools)}
REASONING = {name: value for name, value in vars(s).items() if isinstance(value, s.Reasoning)}
PARTNERS = {
    pb.TOOL_PARSER_XTML: s.XTML_THINK,
    pb.TOOL_PARSER_ATEM: s.RECIPIENT_REASONING,
    pb.TOOL_PARSER_HARMONY: s.HARMONY_REASONING,
}
CHECKED = (
    rules.frame_parsers_are_paired,
    rules.xtml_reasoning_has_xtml_tools,
    rules.tool_syntax_is_complete,
    rules.typing_has_its_attribute,
    rules.reasoning_syntax_is_complete,
    rules.terminal_markers_open_tools,
    rules.reasoning_has_an_envelope,
    rules.markers_are_paired,
)


def test_every_parser_has_a_syntax():
    assert {tools.parser for tools in TOOLS.values()} == set(pb.ToolParser.values()) - {0, 1}
    parsers = {reasoning.parser for reasoning in REASONING.values()}
    assert parsers == set(pb.ReasoningParser.values()) - {0, 1}


@pytest.mark.parametrize("name", TOOLS)
def test_tools_obey_the_contract(name: str):
    tools = TOOLS[name]
    reasoning = PARTNERS.get(tools.parser, s.THINK)
    ends = tools.parser not in PARTNERS and bool(tools.syntax.block.open or tools.syntax.call.open)
    facts = frontend(tools, reasoning, calls_end_reasoning=ends)
    for rule in CHECKED:
        rule(SimpleNamespace(frontend=facts))
    assert parser_factory(facts, TestVocabulary(()))


@pytest.mark.parametrize("name", [n for n, r in REASONING.items() if r not in PARTNERS.values()])
def test_reasoning_obeys_the_contract(name: str):
    facts = frontend(None, REASONING[name])
    for rule in CHECKED:
        rule(SimpleNamespace(frontend=facts))
    assert parser_factory(facts, TestVocabulary(())) is not plain_parser


def test_nothing_declared_is_plain():
    assert parser_factory(frontend(None, None), TestVocabulary(())) is plain_parser


def test_parsers_of_different_envelopes_are_refused():
    for tools, reasoning in ((s.HARMONY, s.THINK), (s.ATEM, None), (s.JSON_TAGS, s.XTML_THINK)):
        facts = frontend(tools, reasoning)
        with pytest.raises(ContractError, match="reasoning_parser"):
            parser_factory(facts, TestVocabulary(()))


def test_declaring_replaces_what_was_declared():
    message = pb.FrontendContract(
        image_preparation=pb.IMAGE_PREPARATION_NONE, image_layout=pb.IMAGE_LAYOUT_NONE
    )
    s.declare(message, s.JSON_TAGS, s.THINK, calls_end_reasoning=True)
    assert list(message.reasoning_syntax.terminal_markers) == ["<tool_call>"]
    assert not s.THINK.syntax.terminal_markers
    s.declare(message, None, None)
    facts = decode_frontend(message)
    assert (facts.tool_parser, facts.tool_syntax) == (ToolParser.NONE, None)
    assert (facts.reasoning_parser, facts.reasoning_syntax) == (ReasoningParser.NONE, None)


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "string"}, {"string"}),
        ({"type": ["integer", "null"]}, {"integer", "null"}),
        ({"anyOf": [{"type": "object"}, {"type": "null"}]}, {"object", "null"}),
        ({"oneOf": [{"type": "array"}, {"const": 1}]}, {"array", "integer"}),
        ({"allOf": [{"type": ["string", "null"]}, {"type": "string"}]}, {"string"}),
        ({"enum": ["a", 1.5, True, None]}, {"string", "number", "boolean", "null"}),
        ({"$ref": "#/$defs/a~1b"}, {"boolean"}),
        ({"$ref": "#/$defs/loop"}, TYPES),
        ({"$ref": "other.json"}, TYPES),
        ({"type": "unheard of"}, TYPES),
        ({}, TYPES),
        (True, TYPES),
    ],
)
def test_types_of_schemas(schema: object, types: set[str]):
    root = {"$defs": {"a/b": {"type": "boolean"}, "loop": {"$ref": "#/$defs/loop"}}}
    assert allowed_types(schema, root) == types
