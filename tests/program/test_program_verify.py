"""Every rule of a well-formed program, and that the verifier never fails otherwise."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program_examples import every_operation, programs

from helios.contract.operation import Operation
from helios.errors import ProgramError
from helios.program import verify as verify_module
from helios.program.builder import ProgramBuilder
from helios.program.ir import (
    AttributeValue,
    Buffer,
    BufferKind,
    DType,
    Extent,
    ExtentKind,
    Op,
    Program,
    Ref,
    Role,
    TensorType,
    Value,
    Weight,
)
from helios.program.ops import OPS, OperandSpec, OpSpec
from helios.program.text import to_text
from helios.program.verify import MAX_LENGTH, Verifier, infer_results, verify

I32, F32 = DType.I32, DType.F32
B = Extent("B", ExtentKind.DYNAMIC, 4)
R = Extent("R", ExtentKind.LOAD, 4)
SLOTS = Buffer("slots", BufferKind.TRANSPORT, TensorType(I32, ("B",)))
STATE = Buffer("state", BufferKind.STATE, TensorType(I32, ("R",)))
OUT = Buffer("out", BufferKind.COMPLETION, TensorType(I32, ("B",)))
READ = Value("read", TensorType(I32, ("B",)))
READING = Op("state_read", (STATE, SLOTS), (READ,))
STORING = Op("store", (READ, OUT), ())


def program(*ops: Op, extents: tuple[Extent, ...] = (B, R), name: str = "p") -> Program:
    return Program(name, Operation.DECODE, extents, ops)


def typed(item: Value | Buffer | Weight, *shape: int | str) -> Ref:
    return dataclasses.replace(item, type=TensorType(item.type.dtype, shape))


def test_a_small_program_holds() -> None:
    verify(program(READING, STORING))
    verify(program())
    verify(every_operation())


def test_a_known_operation_is_looked_at_again_under_other_extents() -> None:
    verifier = Verifier()
    verifier.verify(program(READING, STORING))
    verifier.verify(program(READING, STORING, name="again"))
    with pytest.raises(ProgramError, match="no dynamic extent"):
        verifier.verify(program(READING, extents=(B, dataclasses.replace(R, kind=B.kind))))
    with pytest.raises(ProgramError, match="before it is written"):
        verifier.verify(program(STORING))
    with pytest.raises(ProgramError, match="written twice"):
        verifier.verify(program(READING, STORING, STORING))


def scale(result: Value, **attributes: AttributeValue) -> Op:
    x = Buffer("x", BufferKind.TRANSPORT, TensorType(F32, ("B",)))
    return Op("scale", (x,), (result,), attributes)


def written(name: str, *shape: int | str) -> Op:
    value = Buffer("v", BufferKind.TRANSPORT, TensorType(I32, ("B", *shape[1:])))
    return Op(
        "state_write", (Buffer(name, BufferKind.STATE, TensorType(I32, shape)), SLOTS, value), ()
    )


Y = Value("y", TensorType(F32, ("B",)))


@pytest.mark.parametrize(
    ("broken", "field", "message"),
    [
        (program(name=""), "program.name", "must match"),
        (program(name="a b"), "program.name", "must match"),
        (program(name="n" * 257), "program.name", "must match"),
        (program(extents=(B, B)), "p.extents.B", "declared twice"),
        (program(extents=(Extent("B", ExtentKind.DYNAMIC, 0),)), "B", "needs a capacity"),
        (program(extents=(Extent("B", ExtentKind.LOAD, -1),)), "B", "out of range"),
        (program(extents=(Extent("B", ExtentKind.LOAD, 1 << 41),)), "B", "out of range"),
        (program(extents=(Extent("1", ExtentKind.LOAD, 1),)), "extents.1", "must match"),
        (program(Op("nonsense", (), ())), "nonsense", "unknown operation"),
        (program(Op("state_read", (STATE,), (READ,))), "state_read", "rows is missing"),
        (
            program(Op("state_read", (STATE, SLOTS, SLOTS), (READ,))),
            "state_read",
            "too many operands",
        ),
        (program(Op("state_read", (STATE, SLOTS), ())), "state_read", "1 results expected"),
        (program(STORING), "%read", "before it is written"),
        (program(READING, Op("store", (typed(READ, 3), OUT), ())), "%read", "before it is"),
        (program(READING, READING), "%read", "the name is taken"),
        (
            program(Op("state_read", (STATE, SLOTS), (typed(READ, 4),))),
            "%read",
            "the op table infers i32[B]",
        ),
        (
            program(Op("state_read", (STATE, SLOTS), (dataclasses.replace(READ, name="%"),))),
            "%%",
            "must match",
        ),
        (
            program(READING, Op("state_read", (typed(STATE, "R", 3), SLOTS), (Y,))),
            "state",
            "one name, two things",
        ),
        (
            program(Op("state_read", (dataclasses.replace(STATE, name="a b"), SLOTS), (READ,))),
            "a b",
            "must match",
        ),
        (program(READING, STORING, STORING), "out", "completion written twice"),
        (
            program(Op("state_add", (STATE, STATE, SLOTS), ())),
            "state_add.rows",
            "must live in",
        ),
        (program(scale(Y)), "factor", "not written out"),
        (program(scale(Y, factor=1)), "scale.factor", "must be float"),
        (program(scale(Y, factor=float("nan"))), "scale.factor", "finite"),
        (program(scale(Y, factor=1.0, other=1)), "scale.other", "unknown attribute"),
        (program(scale(Y, factor=1.0), extents=(R,)), "x", "unknown extent"),
        (program(written("s", "B")), "s", "no dynamic extent"),
        (program(written("s", "R", 0)), "s", "positive integer"),
        (program(written("s", "R", MAX_LENGTH + 1)), "s", "positive integer"),
        (program(written("s", "R", True)), "s", "positive integer"),
        (program(written("s", 3, "R")), "s", "only in the first dimension"),
        (program(written("s", *[2] * 9)), "s", "too many dimensions"),
        (
            program(
                Op(
                    "linear",
                    (
                        typed(Buffer("x", BufferKind.TRANSPORT, TensorType(F32, ())), "B", 3),
                        Weight("w", TensorType(F32, ("R", 3))),
                    ),
                    (Y,),
                    {"coarse": False},
                )
            ),
            "w",
            "constant shape",
        ),
        (
            program(
                Op(
                    "gather",
                    (
                        Buffer("x", BufferKind.TRANSPORT, TensorType(I32, ("B",))),
                        Buffer("i", BufferKind.TRANSPORT, TensorType(I32, ("R",))),
                    ),
                    (Value("g", TensorType(I32, ("R",))),),
                )
            ),
            "g",
            "no load extent",
        ),
    ],
)
def test_a_broken_program_is_refused(broken: Program, field: str, message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        verify(broken)
    assert caught.value.field.endswith(field)
    assert message in caught.value.message
    assert caught.value.remedy or caught.value.value is None


def test_a_written_buffer_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # No operation of today takes two buffers of one kind; one that will must not alias them.
    source, target = (
        OperandSpec(name, frozenset({I32}), ("R",), frozenset({BufferKind.STATE}), access)
        for name, access in (("source", "read"), ("target", "write"))
    )
    copy = OpSpec("state_copy", 1, (source, target), (), (), "target = source.")
    monkeypatch.setitem(OPS, "state_copy", copy)  # type: ignore[arg-type]
    other = dataclasses.replace(STATE, name="other")
    verify(program(Op("state_copy", (STATE, other), ())))
    with pytest.raises(ProgramError, match="written and named twice"):
        verify(program(Op("state_copy", (STATE, STATE), ())))


def test_a_program_is_of_bounded_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_module, "MAX_OPS", 1)
    with pytest.raises(ProgramError, match="too many"):
        verify(program(READING, STORING))


def test_an_operand_is_a_reference() -> None:
    with pytest.raises(ProgramError, match="must be a value, buffer or weight"):
        verify(program(Op("ones", ("slots",), (READ,))))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1 << 63, "fit 64 bits"),
        (-(1 << 63) - 1, "fit 64 bits"),
    ],
)
def test_attributes_fit_the_wire(value: int, message: str) -> None:
    x = Buffer("x", BufferKind.TRANSPORT, TensorType(F32, ("B", 4)))
    with pytest.raises(ProgramError, match=message):
        infer_results("split_heads", (x,), {"heads": value, "dim": 1}, {"B": B})


@pytest.mark.parametrize("name", ["\ud800", "n" * 5000])
def test_attribute_text_is_short_and_well_formed(name: str) -> None:
    with pytest.raises(ProgramError, match="well-formed text"):
        infer_results("token_rows", (SLOTS, SLOTS), {"tokens": name}, {"B": B})


# ---- the builder ---------------------------------------------------------------------------


def test_the_builder_infers_and_numbers() -> None:
    b = ProgramBuilder("p", Operation.DECODE)
    b.extent("B", ExtentKind.DYNAMIC, 4)
    b.extent("T", ExtentKind.DYNAMIC, 4)
    lengths = b.transport("lengths", I32, ("B",))
    rows, positions = b.op("token_rows", lengths, lengths, tokens="T")
    assert (rows.name, positions.name) == ("token_rows.0.rows", "token_rows.0.positions")
    assert str(rows.type) == "i32[T]"
    assert b.value("ones", lengths).name == "ones.0"
    assert b.value("ones", lengths).name == "ones.1"
    b.value("embedding", rows, b.weight("w", (3, 4)))
    assert b.build().ops[-1].attributes == {"scale": 1.0}, "defaults are written out"


def test_the_builder_refuses_two_types_of_one_name() -> None:
    b = ProgramBuilder("p", Operation.DECODE)
    b.extent("B", ExtentKind.DYNAMIC, 4)
    b.transport("x", I32, ("B",))
    assert b.transport("x", I32, ("B",)).name == "x"
    with pytest.raises(ProgramError, match="declared twice"):
        b.transport("x", F32, ("B",))
    with pytest.raises(ProgramError, match="unknown operation"):
        b.op("nonsense")


# ---- totality ------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "B", "R", "", "a b", "x" * 300])
DIMS = st.sampled_from(["B", "R", "T", "nowhere", "", 0, 1, 2, 4, 70, -1, 1 << 70])
TYPES = st.builds(TensorType, st.sampled_from(DType), st.lists(DIMS, max_size=5).map(tuple))
VALUES = st.builds(Value, NAMES, TYPES, st.sampled_from(Role))
REFS = st.one_of(
    st.none(),
    VALUES,
    st.builds(Buffer, NAMES, st.sampled_from(BufferKind), TYPES, st.sampled_from(Role)),
    st.builds(Weight, NAMES, TYPES),
)
ATTRIBUTES = st.one_of(
    st.integers(),
    st.floats(),
    st.booleans(),
    st.text(max_size=3),
    st.sampled_from(["B", "T"]),
    st.lists(st.integers(), max_size=3).map(tuple),
)
EXTENTS = st.builds(Extent, NAMES | st.just("T"), st.sampled_from(ExtentKind), st.integers(-1, 9))


@st.composite
def arbitrary_ops(draw: st.DrawFn) -> Op:
    kind = draw(st.sampled_from([*OPS, "nonsense"]))
    spec = OPS.get(kind)
    names = [a.name for a in spec.attributes] if spec else []
    attributes = {n: draw(ATTRIBUTES) for n in [*names, "other"] if draw(st.booleans())}
    count = len(spec.operands) if spec else 2
    operands = draw(st.lists(REFS, min_size=max(count - 1, 0), max_size=count + 1))
    return Op(kind, tuple(operands), tuple(draw(st.lists(VALUES, max_size=2))), attributes)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(NAMES, st.lists(EXTENTS, max_size=3), st.lists(arbitrary_ops(), max_size=3))
def test_any_program_is_verified_or_refused(
    name: str, extents: list[Extent], ops: list[Op]
) -> None:
    checked(Program(name, Operation.DECODE, tuple(extents), tuple(ops)))


def disturb(draw: st.DrawFn, op: Op) -> Op:
    """One operand, attribute or result replaced, left out or added."""
    part = draw(st.sampled_from(["operand", "attribute", "result", "kind"]))
    if part == "operand" and op.operands:
        at = draw(st.integers(0, len(op.operands) - 1))
        operands = (*op.operands[:at], draw(REFS), *op.operands[at + 1 :])
        return dataclasses.replace(op, operands=operands)
    if part == "attribute" and op.attributes:
        name = draw(st.sampled_from(sorted(op.attributes)))
        return dataclasses.replace(op, attributes={**op.attributes, name: draw(ATTRIBUTES)})
    if part == "result" and op.results:
        return dataclasses.replace(op, results=(*op.results[1:], draw(VALUES)))
    return dataclasses.replace(op, kind=draw(st.sampled_from(sorted(OPS))))


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.data())
def test_a_disturbed_program_is_verified_or_refused(data: st.DataObject) -> None:
    whole = data.draw(st.one_of(st.just(every_operation()), programs()))
    at = data.draw(st.integers(0, len(whole.ops) - 1))
    op = data.draw(st.composite(disturb)(whole.ops[at]))
    checked(dataclasses.replace(whole, ops=(*whole.ops[:at], op, *whole.ops[at + 1 :])))


def checked(candidate: Program) -> None:
    to_text(candidate)
    try:
        verify(candidate)
    except ProgramError as error:
        explained(error)


def explained(error: ProgramError) -> None:
    assert error.field
    assert str(error)
