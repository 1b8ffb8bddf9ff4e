"""The text form of a program: one statement a line, to be read and compared by people.

    program decode-b8 DECODE

    extent B dynamic 8
    transport @slots i32[B]
    state @pending i32[R]
    weight $output.weight f32[49152, 576]

    %token i32[B] role sampled_token = state_read(@pending, @slots)
    %hidden f32[T, 576] = embedding(%token, $output.weight) scale=1.0

Values are written `%name`, buffers `@name` and weights `$name`; `_` is an operand left out. What
follows `#` is a comment. Storage is declared before it is used, and only if it is used.
`from_text(to_text(p)) == p` for every well-formed program.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from helios.program.ir import AttributeValue, Buffer, Op, Program, Role, TensorType, Value, Weight
from helios.program.parser import parse_program
from helios.program.verify import verify


def to_text(program: Program) -> str:
    """A program as text. Accepts any program, so that a malformed one can be looked at."""
    return to_texts((program,))[0]


def to_texts(programs: Sequence[Program]) -> list[str]:
    """Programs as texts; operations that they share are written once."""
    known: dict[int, str] = {}
    return ["".join([f"{line}\n" for line in _lines(p, known)]) for p in programs]


def from_text(text: str) -> Program:
    """The verified program a text describes.

    Raises `ProgramError` naming the line that does not parse, or the operation that breaks a rule.
    """
    program = parse_program(text)
    verify(program)
    return program


def _lines(program: Program, known: dict[int, str]) -> Iterator[str]:
    yield f"program {program.name} {program.operation.name}"
    yield ""
    for extent in program.extents:
        yield f"extent {extent.name} {extent.kind.name.lower()} {extent.capacity}"
    if program.extents:
        yield ""
    told = cache(str)  # a program has few types
    for buffer in program.buffers():
        yield f"{buffer.kind.name.lower()} {_declared(buffer, told)}"
    for weight in program.weights():
        yield f"weight ${weight.name} {told(weight.type)}"
    yield ""
    for op in program.ops:
        if id(op) not in known:
            known[id(op)] = _op(op, told)
        yield known[id(op)]


def _declared(item: Value | Buffer, told: Callable[[TensorType], str]) -> str:
    role = f" role {item.role.name.lower()}" if item.role is not Role.NONE else ""
    return f"{_SIGILS[type(item)]}{item.name} {told(item.type)}{role}"


def _op(op: Op, told: Callable[[TensorType], str]) -> str:
    results = ", ".join([_declared(r, told) for r in op.results])
    operands = ", ".join(["_" if o is None else f"{_SIGILS[type(o)]}{o.name}" for o in op.operands])
    attributes = "".join([f" {name}={_literal(v)}" for name, v in op.attributes.items()])
    called = f"{op.kind}({operands}){attributes}"
    return f"{results} = {called}" if results else called


_SIGILS = {Value: "%", Buffer: "@", Weight: "$"}


def _literal(value: AttributeValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, tuple):
        return f"[{', '.join(str(v) for v in value)}]"
    return repr(value)
