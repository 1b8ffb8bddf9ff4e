"""Protobuf and back, exactly; and nothing the schema or the verifier would not know."""

from collections.abc import Callable

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from program_examples import every_operation, programs

from helios.errors import ProgramError
from helios.program.ir import DType, Op, Program
from helios.program.wire import (
    ProgramReader,
    from_wire,
    program_from_bytes,
    program_to_bytes,
    to_wire,
)
from helios.schema import program_pb2 as pb

EVERY = every_operation()
DATA = program_to_bytes(EVERY)
UNKNOWN_FIELD = b"\xc0\x3e\x01"  # field 1000, varint 1


def test_every_operation_round_trips() -> None:
    assert from_wire(to_wire(EVERY)) == EVERY
    assert program_from_bytes(DATA) == EVERY


@settings(max_examples=60, derandomize=True, deadline=None)
@given(programs())
def test_random_programs_round_trip(program: Program) -> None:
    data = program_to_bytes(program)
    assert program_from_bytes(data) == program
    assert program_to_bytes(program_from_bytes(data)) == data


def test_a_malformed_program_is_not_written() -> None:
    with pytest.raises(ProgramError, match="unknown operation"):
        to_wire(Program("p", EVERY.operation, (), (Op("nonsense", (), ()),)))


Change = Callable[[pb.Program], object]


def first(message: pb.Program, kind: str) -> pb.Op:
    return next(op for op in message.ops if op.kind == kind)


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        (lambda m: m.ClearField("operation"), "program.operation", "no operation"),
        (lambda m: setattr(m, "operation", 99), "program.operation", "unknown Operation"),
        (lambda m: m.extents[0].ClearField("kind"), "extents[0].kind", "no kind"),
        (lambda m: setattr(m.extents[0], "kind", 99), "extents[0].kind", "unknown ExtentKind"),
        (lambda m: m.buffers[1].ClearField("kind"), "buffers[1].kind", "no kind"),
        (lambda m: setattr(m.buffers[1], "role", 99), "buffers[1].role", "unknown Role"),
        (lambda m: m.buffers[0].type.ClearField("dtype"), "buffers[0].type.dtype", "no element"),
        (lambda m: m.weights[0].type.ClearField("dtype"), "weights[0].type.dtype", "no element"),
        (lambda m: m.values[0].type.ClearField("dtype"), "values[0].type.dtype", "no element"),
        (lambda m: setattr(m.values[0].type, "dtype", 99), "values[0].type.dtype", "unknown DType"),
        (lambda m: m.values[0].type.shape.add(), "values[0].type.shape", "no length"),
        (lambda m: m.values.append(m.values[0]), "program.values", "declared twice"),
        (lambda m: m.buffers.append(m.buffers[0]), "program.buffers", "declared twice"),
        (lambda m: m.weights.append(m.weights[0]), "program.weights", "declared twice"),
        (
            lambda m: m.weights.add(name="spare", type=m.weights[0].type),
            "program.weights.spare",
            "never used",
        ),
        (
            lambda m: m.buffers.add(name="spare", kind=1, type=m.buffers[0].type),
            "program.buffers.spare",
            "never used",
        ),
        (
            lambda m: m.values.add(name="spare", type=m.values[0].type),
            "program.values.spare",
            "never used",
        ),
        (
            lambda m: setattr(m.ops[0].operands[0], "buffer", "nowhere"),
            "ops[0].operands[0]",
            "no such buffer",
        ),
        (
            lambda m: setattr(m.ops[0].operands[0], "value", "nowhere"),
            "ops[0].operands[0]",
            "no such value",
        ),
        (
            lambda m: setattr(m.ops[0].operands[0], "weight", "nowhere"),
            "ops[0].operands[0]",
            "no such weight",
        ),
        (lambda m: m.ops[0].results.append("nowhere"), "ops[0].results", "no such value"),
        (lambda m: m.ops[0].operands[0].Clear(), "ops[0]", "is missing"),
        (
            lambda m: first(m, "rms_norm").attributes.append(first(m, "rms_norm").attributes[0]),
            "attributes.epsilon",
            "given twice",
        ),
        (
            lambda m: first(m, "rms_norm").attributes[0].ClearField("real"),
            "attributes.epsilon",
            "no value",
        ),
        (
            lambda m: setattr(first(m, "rms_norm").attributes[0], "integer", 1),
            "rms_norm.epsilon",
            "must be float",
        ),
        (
            lambda m: first(m, "rms_norm").attributes[0].integers.values.append(1),
            "rms_norm.epsilon",
            "must be float",
        ),
        (
            lambda m: setattr(first(m, "rms_norm").attributes[0], "real", float("nan")),
            "attributes[0].real",
            "finite",
        ),
        (lambda m: setattr(m, "name", "a b"), "program.name", "must match"),
        (lambda m: m.ops.reverse(), "ops[0]", "before it is written"),
        (lambda m: m.MergeFromString(UNKNOWN_FIELD), "program", "unknown field"),
        (lambda m: m.ops[3].MergeFromString(UNKNOWN_FIELD), "program.ops[3]", "unknown field"),
        (
            lambda m: m.buffers[0].type.shape[0].MergeFromString(UNKNOWN_FIELD),
            "program.buffers[0].type.shape[0]",
            "unknown field",
        ),
    ],
)
def test_what_is_unknown_or_dangles_is_refused(change: Change, field: str, message: str) -> None:
    wire = pb.Program.FromString(DATA)
    change(wire)
    knowing = ProgramReader()
    knowing.read(pb.Program.FromString(DATA))
    for reader in (ProgramReader(), knowing):
        with pytest.raises(ProgramError) as caught:
            reader.read(wire)
        assert field in caught.value.field
        assert message in caught.value.message


@settings(max_examples=40, derandomize=True, deadline=None)
@given(st.lists(programs(), max_size=4))
def test_programs_read_together_are_those_read_alone(many: list[Program]) -> None:
    reader = ProgramReader()
    for program in (EVERY, *many, EVERY, *many):
        assert reader.read(to_wire(program)) == program


def test_what_programs_have_in_common_is_one_object() -> None:
    reader, other = ProgramReader(), pb.Program.FromString(DATA)
    other.name = "other"
    first_read, second = reader.read(pb.Program.FromString(DATA)), reader.read(other)
    assert all(a is b for a, b in zip(first_read.ops, second.ops, strict=True))


def test_an_operation_means_what_its_own_program_declares() -> None:
    """The same words, of which one stands for something else."""
    reader = ProgramReader()
    reader.read(pb.Program.FromString(DATA))
    other = pb.Program.FromString(DATA)
    changed = next(v for v in other.values if not v.role)
    changed.role = pb.ROLE_POSITIONS
    assert reader.read(other) == from_wire(other)
    assert reader.read(other) != EVERY


def test_bytes_that_are_no_program_are_refused() -> None:
    with pytest.raises(ProgramError, match="not a serialised Program"):
        program_from_bytes(DATA[:-1])


def test_numbers_are_the_wire_s() -> None:
    wire = to_wire(EVERY)
    assert {b.kind for b in wire.buffers} == {1, 2, 3, 4}
    assert DType(wire.values[0].type.dtype) is EVERY.values()[0].type.dtype


@settings(max_examples=400, derandomize=True, deadline=None)
@given(data=st.data())
def test_disturbed_bytes_give_a_program_or_a_program_error(data: st.DataObject) -> None:
    changed = bytearray(DATA)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed)))
        changed[at : at + data.draw(st.integers(0, 6))] = data.draw(st.binary(max_size=6))
    try:
        program = program_from_bytes(bytes(changed))
    except ProgramError as error:
        explained(error)
        program = None
    assert _read_after(EVERY, bytes(changed)) == program


def explained(error: ProgramError) -> None:
    assert error.field
    assert str(error)


def _read_after(known: Program, data: bytes) -> Program | None:
    """What a reader that knows a program makes of bytes; None for an error."""
    reader = ProgramReader()
    reader.read(to_wire(known))
    try:
        return reader.read(pb.Program.FromString(data))
    except (ProgramError, DecodeError):
        return None
