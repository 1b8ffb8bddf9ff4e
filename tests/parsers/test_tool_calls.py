"""What each syntax tolerates, and what it refuses."""

import json
from itertools import pairwise
from random import Random

import pytest
from parser_runs import frontend, hear
from parser_vocabulary import TestVocabulary
from test_reasoning import parts_of, run
from test_round_trips import BENCHES, tokens_of

from helios.engine.messages import FinishReason
from helios.frontend.parsers import parser_factory
from helios.frontend.parsing import ParserRequest, ToolDefinition
from helios.ignition.preparation import syntaxes

BOOK = ToolDefinition(
    "book",
    {
        "properties": {
            "guests": {"type": "integer"},
            "note": {"type": "string"},
            "when": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "more": {},
        },
        "required": ["guests"],
    },
)
RUN = ToolDefinition("run", {"properties": {"input": {"type": "object"}}})
TOOLS = (BOOK, ToolDefinition("ping", {"properties": {}}), RUN)

Calls = list[tuple[str, dict[str, object]]]
ONE: Calls = [("book", {"guests": 4})]
PING: Calls = [("ping", {})]
BOTH = ONE + PING

GUESTS = "<parameter=guests>4</parameter>"
ATEM = (
    '<atem:function_calls>\n<atem:invoke name="{}">\n'
    '<atem:parameter name="guests">4</atem:parameter>\n'
    "</atem:invoke>\n</atem:function_calls>"
)
BOOK_ATEM = ATEM.format("book")
JSON_CALL = '{"name": "book", "arguments": {"guests": 4}}'

FUNCTION_TAGS: list[tuple[str, str, Calls]] = [
    (f"<tool_call><function=book>{GUESTS}</function></tool_call>", "", ONE),
    # A call without its block, if the tool is on offer; else it is prose.
    (f"a\n<function=book>\n{GUESTS}\n</function>", "a", ONE),
    (f"<function=book>{GUESTS}</function>\n</tool_call>b", "b", ONE),
    ("say <function=other> or <function=book", "say <function=other> or <function=book", []),
    # Two calls in a block, and a block that another one cuts short.
    (
        f"<tool_call><function=book>{GUESTS}</function><function=ping></function></tool_call>",
        "",
        BOTH,
    ),
    (
        f"<tool_call><function=book>{GUESTS}</function><tool_call><function=ping></function>",
        "",
        BOTH,
    ),
    # Missing closers of values and calls.
    ("<tool_call><function=book>\n<parameter=guests>\n4\n</function>\n</tool_call>", "", ONE),
    (f"<tool_call><function=book>\n{GUESTS}\n", "", ONE),
    ("<tool_call><function=book>\n<parameter=note>\nx\n</parameter>\n", "", []),
    # Tokens that open or close nothing are dropped, the text around them is not.
    ("Use <tool_call> around a call.", "Use  around a call.", []),
    ("a</tool_call>b", "ab", []),
    # A repeated argument would contradict what has been sent.
    (
        f"<tool_call><function=book>{GUESTS}{GUESTS}</function></tool_call>"
        "<tool_call><function=ping></function></tool_call>",
        "",
        PING,
    ),
    # A name that is not on offer is the client's to refuse; an empty one is none.
    ("<tool_call><function=other></function></tool_call>", "", [("other", {})]),
    ("<tool_call><function=></function></tool_call>b", "b", []),
]
JSON_TAGS: list[tuple[str, str, Calls]] = [
    ('<tool_call>{"arguments": {"guests": 4}, "name": "book"}</tool_call>', "", ONE),
    ('<tool_call>{"name": "book", "arguments": "{\\"guests\\": 4}"}</tool_call>', "", ONE),
    ('<tool_call>{"name": "ping", "arguments": null}</tool_call>', "", PING),
    ('<tool_call>{"name": "ping"}</tool_call>', "", PING),
    (f"<tool_call>{JSON_CALL}", "", ONE),
    (f"<tool_call>{JSON_CALL}and on", "and on", ONE),
    (f'<tool_call>{JSON_CALL}\n{{"name": "ping"}}</tool_call>', "", BOTH),
    (f'<tool_call>[{JSON_CALL}, {{"name": "ping"}}]</tool_call>', "", BOTH),
    # A raw newline in a string has one reading, a number with a leading zero has none.
    (
        '<tool_call>{"name": "book", "arguments": {"note": "a\nb"}}</tool_call>',
        "",
        [("book", {"note": "a\nb"})],
    ),
    ('<tool_call>{"name": "book", "arguments": {"guests": 04}}</tool_call>b', "b", []),
    ('<tool_call>{"arguments": {}}</tool_call>', '{"arguments": {}}', []),
    ("<tool_call>not a call</tool_call>!", "not a call!", []),
]
LLAMA_JSON: list[tuple[str, str, Calls]] = [
    (' {"name": "book", "parameters": {"guests": 4}}', "", ONE),
    ('{"name": "book", "parameters": {"guests": 4}}; {"name": "ping", "parameters": {}}', "", BOTH),
    # JSON that only looks like a call.
    ('{"name": "Ann", "parameters": {}}', '{"name": "Ann", "parameters": {}}', []),
    ('{"name": "book", "author": "Ann"}', '{"name": "book", "author": "Ann"}', []),
    ('{"name": "book"}', '{"name": "book"}', []),
    ('{"parameters": {"a": 1', '{"parameters": {"a": 1', []),
    ('So: {"name": "book", "parameters": {}}', 'So: {"name": "book", "parameters": {}}', []),
    # The tag says that a call follows, but not every time.
    ('a <|python_tag|>{"name": "other", "parameters": {}}', "a ", [("other", {})]),
    ("<|python_tag|>print(1)", "print(1)", []),
]
PYTHONIC: list[tuple[str, str, Calls]] = [
    (" [book(guests=4), ping()]", "", BOTH),
    ("[book(guests=4,), ping(),]", "", BOTH),
    ("[1, 2]", "[1, 2]", []),
    ("[other(a=1)]", "[other(a=1)]", []),
    ("[book(4)]", "", []),
    ("[]", "[]", []),
    (
        "[book(more=(1, 0x10, 1_000, .5, -2., True, None))]",
        "",
        [("book", {"more": [1, 16, 1000, 0.5, -2.0, True, None]})],
    ),
    (
        "[book(more={'a': \"b\\x41\\u00e9\\101\\N{BULLET}\\n\", 1: [], 'c': '\\q'})]",
        "",
        [("book", {"more": {"a": "bAéA•\n", "1": [], "c": "\\q"}})],
    ),
]
NOTE = "<arg_key>note</arg_key>"
KEY, VALUE = "<arg_key>guests</arg_key>", "<arg_value>4</arg_value>"
ARGUMENT_TAGS: list[tuple[str, str, Calls]] = [
    (f"<tool_call>book{KEY}4</arg_value></tool_call>", "", ONE),
    (f"<tool_call>book</arg_value>{KEY}{VALUE}</tool_call>", "", ONE),
    (f"<tool_call>book{KEY}<arg_value>4</tool_call>", "", ONE),
    (f"<tool_call>book{KEY}{VALUE}", "", ONE),
    ("<tool_call>book<arg_key>note</arg_key><arg_value>4</arg_value>", "", []),
    # Keys and then their values, as many of one as of the other; else nobody knows whose is whose.
    (
        f"<tool_call>book\n{KEY}\n<arg_key>note</arg_key>\n{VALUE}\n{VALUE}\n</tool_call>",
        "",
        [("book", {"guests": 4, "note": "4"})],
    ),
    (
        f"<tool_call>book{NOTE}{KEY}<arg_value>a</arg_value>{VALUE}"
        "<arg_key>more</arg_key><arg_value>[]</arg_value></tool_call>",
        "",
        [("book", {"note": "a", "guests": 4, "more": []})],
    ),
    (f"<tool_call>book{KEY}{NOTE}{VALUE}{VALUE}{VALUE}</tool_call>", "", []),
    (f"<tool_call>book{KEY}{NOTE}{VALUE}</tool_call>", "", []),
    (f"<tool_call>book{KEY}{NOTE}{VALUE}", "", []),
    (f"<tool_call>book{KEY}{NOTE}</tool_call>", "", []),
    (f"<tool_call>book{KEY}{KEY}{VALUE}{VALUE}</tool_call>", "", []),
    (f"<tool_call>ping<tool_call>book{KEY}{VALUE}</tool_call>", "", BOTH[::-1]),
    ("<tool_call> is a tag", " is a tag", []),
]
INVOKE = '<｜DSML｜invoke name="book">'


def _dsml(*parameters: tuple[str, str, str], name: str = "book") -> str:
    written = "".join(
        f'<｜DSML｜parameter name="{key}" string="{string}">{value}</｜DSML｜parameter>\n'
        for key, string, value in parameters
    )
    return (
        f'<｜DSML｜tool_calls>\n<｜DSML｜invoke name="{name}">\n{written}</｜DSML｜invoke>\n'
        "</｜DSML｜tool_calls>"
    )


DSML: list[tuple[str, str, Calls]] = [
    # The attribute decides, not the schema.
    (
        f'<｜DSML｜tool_calls>{INVOKE}<｜DSML｜parameter name="guests" string="true">4'
        "</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>",
        "",
        [("book", {"guests": "4"})],
    ),
    # Two newlines belong to the opener, no more.
    (
        f'a\n\n\n<｜DSML｜tool_calls>{INVOKE}{{"guests": 4}}</｜DSML｜invoke></｜DSML｜tool_calls>',
        "a\n",
        ONE,
    ),
    (
        '<｜DSML｜tool_calls><｜DSML｜invoke name=""></｜DSML｜invoke></｜DSML｜tool_calls>b',
        "b",
        [],
    ),
    ('<｜DSML｜tool_calls><｜DSML｜invoke name="ping"></｜DSML｜tool_calls>b', "b", PING),
    # The arguments under one parameter that the tool has not.
    (_dsml(("arguments", "false", '{"guests": 4}')), "", ONE),
    (_dsml(("input", "true", ' {"guests": 4}')), "", ONE),
    (_dsml(("input", "false", "{}"), name="ping"), "", PING),
    # What only looks so: not an object of its parameters, not alone, or a parameter of its own.
    (_dsml(("input", "false", '{"a": 4}')), "", [("book", {"input": {"a": 4}})]),
    (_dsml(("input", "false", "4")), "", [("book", {"input": 4})]),
    (_dsml(("input", "true", "4")), "", [("book", {"input": "4"})]),
    (
        _dsml(("input", "true", '{"guests": 4}'), ("guests", "false", "4")),
        "",
        [("book", {"input": '{"guests": 4}', "guests": 4})],
    ),
    (
        _dsml(("guests", "false", "4"), ("input", "false", '{"guests": 4}')),
        "",
        [("book", {"guests": 4, "input": {"guests": 4}})],
    ),
    (
        _dsml(("input", "false", '{"guests": 4}'), name="other"),
        "",
        [("other", {"input": {"guests": 4}})],
    ),
    (
        _dsml(("input", "false", '{"input": {}}'), name="run"),
        "",
        [("run", {"input": {"input": {}}})],
    ),
    ('<｜DSML｜tool_calls><｜DSML｜invoke name="ping"/></｜DSML｜tool_calls>b', "b", PING),
]
_KIMI = "<|tool_call_begin|>functions.{}:7<|tool_call_argument_begin|>{}<|tool_call_end|>"
NUMBERED: list[tuple[str, str, Calls]] = [
    (_KIMI.format("book", '{"guests": 4}'), "", ONE),
    (
        f"<|tool_calls_section_begin|>{_KIMI.format('book', '{bad')}noise"
        f"{_KIMI.format('ping', '{}')}<|tool_calls_section_end|>b",
        "b",
        PING,
    ),
]
MISTRAL: list[tuple[str, str, Calls]] = [
    ('[TOOL_CALLS]book{"guests": 4}[TOOL_CALLS]ping[ARGS]{}', "", BOTH),
    ("[TOOL_CALLS]book[ARGS][4][TOOL_CALLS]ping[ARGS]{}", "", PING),
    ("[TOOL_CALLS] are made like {this}", " are made like {this}", []),
]
MAPPING: list[tuple[str, str, Calls]] = [
    ("<|tool_call>call:book{guests:4}<tool_call|><tool_call|>b", "b", ONE),
    ('<|tool_call>call:book{guests:4, note:"a, b"}', "", [("book", {"guests": 4, "note": "a, b"})]),
    ("<|tool_call>call:book{note:two words}<tool_call|>", "", [("book", {"note": "two words"})]),
    ("<|tool_call>call:book<tool_call|>b", "b", []),
    ('<|tool_call>book{note:<|"|>}<|"|>}<tool_call|>', "", [("book", {"note": "}"})]),
]
_TOOLS_ELEMENT = "<|open|>tools<|sep|>{}<|close|>tools<|sep|>"
XTML: list[tuple[str, str, Calls]] = [
    (
        _TOOLS_ELEMENT.format(
            '<|open|>call tool="book"<|sep|><|open|>json type="object"<|sep|>{"guests": 4}'
            "<|close|>json<|sep|><|close|>call<|sep|>"
        ),
        "",
        ONE,
    ),
    # Closers that are missing, incomplete, spaced out or orphaned.
    (
        _TOOLS_ELEMENT.format(
            '<|open|>call tool="book"<|sep|><|open|>argument key="guests" type="number"<|sep|>4'
            '<|close|>argument<|sep|><|open|>call tool="ping"<|sep|>'
        ),
        "",
        BOTH,
    ),
    ("<|open|>response<|sep|>a<|close|>message<|sep|>", "a", []),
    (
        "<|open|>think<|sep|><|close|> think<|open|>response<|sep|>a<|close|> response<|sep|>",
        "a",
        [],
    ),
    ("<|close|>response<|sep|>a", "a", []),
    ('<|open|>call index="1"<|sep|><|close|>call<|sep|>', "", []),
]
ATEM_FRAMES: list[tuple[str, str, Calls]] = [
    (
        f" to=book<|message|>{BOOK_ATEM}<|eom|><|start|>assistant to=user<|message|>b<|eot|>",
        "b",
        ONE,
    ),
    # Recipients: any tool, the namespace form, a mismatch, a tool that is not on offer.
    (f" to=tool<|message|>{BOOK_ATEM}<|eot|>", "", ONE),
    (f" to=book.book<|message|>{ATEM.format('book.book')}<|eot|>", "", ONE),
    (f" to=ping<|message|>{BOOK_ATEM}<|eot|>", "", []),
    (f" to=tool<|message|>{ATEM.format('other')}<|eot|>", "", []),
    # One invocation a frame.
    (f" to=tool<|message|>{BOOK_ATEM[:-23]}{BOOK_ATEM[23:]}<|eot|>", "", ONE),
    # A block that is a whole visible body is a call; within prose it is prose.
    (f" to=user<|message|>{BOOK_ATEM}<|eot|>", "", ONE),
    (f"<|message|>{BOOK_ATEM}<|eot|>", "", ONE),
    (f" to=user<|message|>so: {BOOK_ATEM}<|eot|>", f"so: {BOOK_ATEM}", []),
    (f" to=user<|message|>{BOOK_ATEM} so<|eot|>", f"{BOOK_ATEM} so", []),
    # Frames without closers and headers without openers.
    (f" to=user<|message|>a<|start|>assistant to=book<|message|>{BOOK_ATEM}<|eot|>", "a", ONE),
    (f" to=user<|message|>a<|eom|> to=book<|message|>{BOOK_ATEM}<|eot|>", "a", ONE),
    ("to=commentary<|message|>a", "a", []),
    ("no header at all", "no header at all", []),
]
HARMONY: list[tuple[str, str, Calls]] = [
    ('<|channel|>commentary to=functions.book<|message|>{"guests": 4}<|call|>', "", ONE),
    (
        ' to=functions.book<|channel|>commentary<|message|>{"guests": 4}<|end|>'
        "<|start|>assistant<|channel|>final<|message|>b",
        "b",
        ONE,
    ),
    ('<|channel|>commentary to=book<|message|>{"guests": 4}<|call|>', "", ONE),
    ("<|channel|>commentary to=python<|message|>print(1)<|call|>", "", []),
    ("<|channel|>??<|end|><|start|>assistant<|channel|>final<|message|>b", "b", []),
    ("<|channel|>final<|start|>assistant<|channel|>final<|message|>b", "b", []),
    ("<|channel|>final the answer", "the answer", []),
    ("plain words", "plain words", []),
]
CASES = {
    "function tags": FUNCTION_TAGS,
    "json tags": JSON_TAGS,
    "llama json": LLAMA_JSON,
    "pythonic": PYTHONIC,
    "argument tags": ARGUMENT_TAGS,
    "dsml tool_calls": DSML,
    "numbered sections": NUMBERED,
    "mistral named": MISTRAL,
    "quoted mapping": MAPPING,
    "xtml": XTML,
    "atem": ATEM_FRAMES,
    "harmony": HARMONY,
}


@pytest.mark.parametrize(
    ("name", "text", "content", "calls"),
    [(name, *case) for name, cases in CASES.items() for case in cases],
)
def test_case(name: str, text: str, content: str, calls: Calls):
    heard = run(name, text, tools=TOOLS)
    assert [(made, json.loads(arguments)) for made, arguments in heard.calls] == calls
    assert len(heard.names) == len(calls)
    assert heard.content == content


@pytest.mark.parametrize("name", ["argument tags", "dsml tool_calls"])
def test_cases_do_not_depend_on_how_they_are_split(name: str):
    bench, chance = BENCHES[name], Random(7)
    build = parser_factory(bench.syntax.frontend, bench.vocabulary)
    assert bench.syntax.frontend.assistant is not None
    request = ParserRequest(bench.syntax.frontend.assistant.open, TOOLS)
    for text, content, calls in CASES[name]:
        tokens = tokens_of(bench.vocabulary, parts_of(name, text))
        for _ in range(20):
            cuts = sorted(chance.choices(range(len(tokens) + 1), k=chance.randint(1, 9)))
            groups = [tokens[a:b] for a, b in pairwise([0, *cuts, len(tokens)])]
            heard = hear(build(request), bench.vocabulary, groups)
            assert [(made, json.loads(arguments)) for made, arguments in heard.calls] == calls
            assert heard.content == content


@pytest.mark.parametrize("at_once", [True, False])
def test_grouped_values_whose_markers_are_no_tokens(at_once: bool):
    text = f"<tool_call>book{NOTE}{KEY}<arg_value>a</arg_value>b</arg_value>\n{VALUE}\n</tool_call>"
    vocabulary = TestVocabulary([])
    build = parser_factory(frontend(syntaxes.ARGUMENT_TAGS, None), vocabulary)
    tokens = list(text.encode())
    groups = [tokens] if at_once else [[token] for token in tokens]
    heard = hear(build(ParserRequest("<|assistant|>", TOOLS)), vocabulary, groups)
    assert [(name, json.loads(arguments)) for name, arguments in heard.calls] == [
        ("book", {"note": "a</arg_value>b", "guests": 4})
    ]


def test_arguments_under_one_parameter_may_nest_deep():
    deep = "[" * 20_000 + "]" * 20_000
    text = _dsml(("input", "false", f'{{"more": {deep}, "guests": 4}}'))
    assert run("dsml tool_calls", text, tools=TOOLS).arguments == [
        f'{{"more": {deep}, "guests": 4}}'
    ]


def test_a_spelled_frame_end_is_text():
    spelled = run("atem", [*parts_of("atem", " to=user<|message|>"), "<|eot|> is text"])
    assert spelled.content == "<|eot|> is text"


def test_wire_ids_are_kept():
    call = _KIMI.format("book", "{}")
    assert run("numbered sections", call, tools=TOOLS).ids == ["functions.book:7"]
    ids = run("numbered sections", call + call, tools=TOOLS).ids
    assert ids[0] == "functions.book:7" != ids[1]
    given = run("mistral named", "[TOOL_CALLS]ping[CALL_ID]abc123XYZ[ARGS]{}", tools=TOOLS)
    assert given.ids == ["abc123XYZ"]
    listed = '[TOOL_CALLS][{"name": "ping", "arguments": {}, "id": "abcdefghi"}]'
    assert run("mistral list", listed, tools=TOOLS).ids == ["abcdefghi"]


def test_a_numbered_id_may_hold_a_newline_that_its_name_does_not():
    heard = run("numbered sections", _KIMI.format("book\n", '{"guests": 4}'), tools=TOOLS)
    assert (heard.names, heard.ids) == (["book"], ["functions.book\n:7"])


def test_other_ids_have_the_form_that_the_syntax_can_write():
    made = run("mistral named", "[TOOL_CALLS]ping[ARGS]{}", tools=TOOLS).ids[0]
    assert len(made) == 9
    assert made.isalnum()
    tagged = run("json tags", f"<tool_call>{JSON_CALL}</tool_call>", tools=TOOLS)
    assert tagged.ids[0].startswith("call_")


def test_json_arguments_pass_through_as_they_were_written():
    written = '{"guests":  9007199254740993, "more": 1.50e+3, "note": "\\u00e9\\/"}'
    text = f'<tool_call>{{"name": "book", "arguments": {written}}}</tool_call>'
    assert run("json tags", text, tools=TOOLS).arguments == [written]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"guests": "9007199254740993"}, {"guests": 9007199254740993}),
        ({"guests": "4.0"}, {"guests": 4.0}),
        ({"guests": "4.5"}, {"guests": "4.5"}),
        ({"guests": "four"}, {"guests": "four"}),
        ({"guests": "True"}, {"guests": "True"}),
        ({"note": "5"}, {"note": "5"}),
        ({"note": '{"a": 1}'}, {"note": '{"a": 1}'}),
        ({"note": "&lt;b&gt; "}, {"note": "&lt;b&gt; "}),
        ({"when": "null"}, {"when": None}),
        ({"when": "None"}, {"when": "None"}),
        ({"more": "[1, {}]"}, {"more": [1, {}]}),
        ({"more": "[1, {]"}, {"more": "[1, {]"}),
        ({"more": "NaN"}, {"more": "NaN"}),
    ],
)
def test_schema_typed_values(written: dict[str, str], read: dict[str, object]):
    body = "".join(f"<parameter={k}>\n{v}\n</parameter>\n" for k, v in written.items())
    text = f"<tool_call><function=book>\n{body}</function></tool_call>"
    assert json.loads(run("function tags", text, tools=TOOLS).arguments[0]) == read


def test_without_tools_their_markers_are_text():
    text = "a <function=book></function>"
    assert run("function tags", text, tools=()).content == text
    frames = run("harmony", HARMONY[0][0], tools=())
    assert (frames.names, frames.content) == ([], "")
    assert run("xtml", XTML[0][0], tools=()).names == []


@pytest.mark.parametrize("reason", [FinishReason.LENGTH, FinishReason.CANCELLED])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("json tags", f"<tool_call>{JSON_CALL}"),
        ("argument tags", f"<tool_call>book{KEY}{VALUE}"),
        ("harmony", '<|channel|>commentary to=functions.book<|message|>{"guests": 4}'),
        ("pythonic", "[book(guests=4), ping()"),
        ("xtml", '<|open|>tools<|sep|><|open|>call tool="ping"<|sep|>'),
    ],
)
def test_a_call_whose_closer_is_cut_off_is_none(name: str, text: str, reason: FinishReason):
    heard = run(name, text, tools=TOOLS, reason=reason)
    assert (heard.names, heard.content) == ([], "")


@pytest.mark.parametrize("text", ["a<|end|><|start|>assis", "a<|end|><|start|>assistant to=fun"])
def test_a_cut_header_is_no_text(text: str):
    heard = run("harmony", f"<|channel|>final<|message|>{text}", reason=FinishReason.LENGTH)
    assert (heard.names, heard.content) == ([], "a")


def test_one_dsml_version_does_not_read_another():
    assert run("dsml function_calls", DSML[3][0], tools=TOOLS).names == []
