"""Text and back, exactly; and no text does anything but parse or name a line."""

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from program_examples import every_operation, programs

from helios.contract.operation import Operation
from helios.errors import ProgramError
from helios.program import parser
from helios.program.builder import ProgramBuilder
from helios.program.ir import DType, ExtentKind, Op, Program, Role
from helios.program.text import from_text, to_text

SMALL = """\
program decode-b8 DECODE

extent B dynamic 8
extent R load 4

state @pending i32[R]
transport @slots i32[B]
completion @out i32[B] role tokens
weight $table f32[70, 16]

%token i32[B] role sampled_token = state_read(@pending, @slots)
%x f32[B, 16] = embedding(%token, $table) scale=1e-05
store(%token, @out)
"""


def test_text_is_what_people_read() -> None:
    assert to_text(from_text(SMALL)) == SMALL
    program = from_text(SMALL)
    assert program.ops[0].results[0].role is Role.SAMPLED_TOKEN
    assert program.ops[1].attributes["scale"] == 1e-5


def test_comments_and_blank_lines_are_skipped() -> None:
    spaced = SMALL.replace("\n", '  # "a comment\n\n\t\r\n')
    assert from_text(spaced) == from_text(SMALL)


def test_every_operation_round_trips() -> None:
    program = every_operation()
    assert from_text(to_text(program)) == program


@settings(max_examples=80, derandomize=True, deadline=None)
@given(programs())
def test_random_programs_round_trip(program: Program) -> None:
    text = to_text(program)
    back = from_text(text)
    assert back == program
    assert to_text(back) == text
    for one, other in zip(program.ops, back.ops, strict=True):
        assert dict(one.attributes) == dict(other.attributes)
        assert [type(v) for v in one.attributes.values()] == [
            type(v) for v in other.attributes.values()
        ]


@pytest.mark.parametrize("value", [0.1, 1e16, 1e-300, 5e-324, -0.0, 1.7976931348623157e308])
def test_floats_are_exact(value: float) -> None:
    b = ProgramBuilder("p", Operation.DECODE)
    b.extent("T", ExtentKind.DYNAMIC, 1)
    b.value("scale", b.transport("x", DType.F32, ("T",)), factor=value)
    back = from_text(to_text(b.build())).ops[0].attributes["factor"]
    assert back == value
    assert isinstance(back, float)
    assert math.copysign(1, back) == math.copysign(1, value)


def test_a_malformed_program_can_still_be_printed() -> None:
    text = to_text(
        Program("p", Operation.DECODE, (), (Op("nonsense", (None,), (), {"a": (1, 2)}),))
    )
    assert "nonsense(_) a=[1, 2]" in text
    with pytest.raises(ProgramError, match="unknown operation"):
        from_text(text)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("program decode-b8 DECODE\n", "", 2, "expected 'program'"),
        ("DECODE", "decode", 1, "unknown Operation"),
        ("extent B dynamic 8", "extent B dynamic", 3, "expected an integer"),
        ("extent B dynamic 8", "extent B elastic 8", 3, "unknown ExtentKind"),
        ("extent B dynamic 8", "extent B dynamic 8.5", 3, "not an integer"),
        ("extent B dynamic 8", f"extent B dynamic {'9' * 5000}", 3, "not an integer"),
        ("extent B dynamic 8", "extent B dynamic 8 8", 3, "unexpected text"),
        ("extent B dynamic 8", "extent B dynamic 8 ;", 3, "unexpected character"),
        ("extent R load 4", "program again DECODE", 4, "a second program"),
        ("state @pending i32[R]", "state $pending i32[R]", 6, "expected a name after '@'"),
        ("state @pending i32[R]", "state @pending i33[R]", 6, "unknown DType"),
        ("state @pending i32[R]", "state @pending i32[R", 6, "expected ','"),
        ("state @pending i32[R]", "state @pending i32[=]", 6, "expected a dimension"),
        ("state @pending i32[R]", "state @pending i32[R] role king", 6, "unknown Role"),
        ("transport @slots i32[B]", "state @pending i32[R]", 7, "declared twice"),
        ("(@pending, @slots)", "(@pending, @nowhere)", 11, "not declared above"),
        ("(@pending, @slots)", "(@pending, )", 11, "expected an operand"),
        ("(%token, $table)", "(%other, $table)", 12, "no such value above"),
        ("(%token, $table)", "(%token, $table", 12, "expected ','"),
        ("scale=1e-05", "scale=1e-05 scale=1.0", 12, "attribute given twice"),
        ("scale=1e-05", "scale=", 12, "expected a value"),
        ("scale=1e-05", "scale=nan", 12, "expected a value"),
        ("scale=1e-05", 'scale="\\q"', 12, "malformed text"),
        ("scale=1e-05", "scale", 12, "expected '='"),
        ("store(%token, @out)\n", "", 8, "declared and never used"),
    ],
)
def test_a_parse_error_names_the_line(old: str, new: str, line: int, message: str) -> None:
    assert old in SMALL
    with pytest.raises(ProgramError) as caught:
        from_text(SMALL.replace(old, new, 1))
    assert caught.value.field == f"line {line}"
    assert message in caught.value.message
    assert caught.value.remedy


def test_parsed_text_is_verified() -> None:
    with pytest.raises(ProgramError, match=r"ops\[1\] embedding"):
        from_text(SMALL.replace("f32[B, 16]", "f32[B, 17]"))


def test_text_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "MAX_TEXT", len(SMALL) - 1)
    with pytest.raises(ProgramError, match="too long"):
        from_text(SMALL)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(data=st.data())
def test_disturbed_text_gives_a_program_or_a_program_error(data: st.DataObject) -> None:
    text = EVERY
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(start + 30, len(text))))
        new = data.draw(st.text(alphabet=ALPHABET, max_size=6))
        text = text[:start] + new + text[end:]
    try:
        from_text(text)
    except ProgramError as error:
        explained(error)


EVERY = to_text(every_operation())
ALPHABET = 'abBTSR019%@$_.,=()[]"\\ \n#-e'


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.text())
@example("")
@example("program p DECODE\n%x")
@example('program p DECODE\nstore(_) a="\ud800"')
def test_any_text_gives_a_program_or_a_program_error(text: str) -> None:
    try:
        from_text(text)
    except ProgramError as error:
        explained(error)


def explained(error: ProgramError) -> None:
    assert error.field
    assert str(error)
