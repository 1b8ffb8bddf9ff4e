"""Parsing the text form of a program; `text` describes it."""

import json

from helios.contract.operation import Operation
from helios.errors import ProgramError
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
from helios.program.lexer import Line

MAX_TEXT = 64 << 20
"""The longest text that is parsed, in characters."""


def parse_program(text: str) -> Program:
    """The program a text describes, not yet verified. Raises `ProgramError` naming the line."""
    if len(text) > MAX_TEXT:
        raise ProgramError("is too long", field="text", value=len(text), remedy="split it")
    parser = _Parser()
    for number, line in enumerate(text.split("\n"), start=1):
        tokens = Line(number, line)
        if not tokens.at_end():
            parser.statement(tokens)
    return parser.finish()


class _Parser:
    """A program while its lines are read."""

    def __init__(self) -> None:
        self._head: tuple[str, Operation] | None = None
        self._extents: list[Extent] = []
        self._declared: dict[str, tuple[Buffer | Weight, Line]] = {}
        self._used: set[str] = set()
        self._values: dict[str, Value] = {}
        self._ops: list[Op] = []

    def statement(self, line: Line) -> None:
        word = line.peek()
        if word == "program":
            self._program(line)
        elif self._head is None:
            raise line.error("expected 'program'", word, "begin with 'program NAME OPERATION'")
        elif word == "extent":
            self._extent(line)
        elif word == "weight":
            self._weight(line)
        elif word in _KINDS:
            self._buffer(line)
        else:
            self._op(line)
        if not line.at_end():
            raise line.error("unexpected text", line.peek(), "remove it or begin a new line")

    def finish(self) -> Program:
        if self._head is None:
            raise ProgramError(
                "no program", field="line 1", value="", remedy="begin with 'program NAME OPERATION'"
            )
        for name, (_, line) in self._declared.items():
            if name not in self._used:
                raise line.error("declared and never used", name, "remove the declaration")
        return Program(*self._head, tuple(self._extents), tuple(self._ops))

    def _program(self, line: Line) -> None:
        line.expect("program")
        if self._head is not None:
            raise line.error("a second program", line.peek(), "one program a text")
        self._head = line.take("word", "the program's name"), line.choice(Operation, str)

    def _extent(self, line: Line) -> None:
        line.expect("extent")
        name = line.take("word", "the extent's name")
        self._extents.append(Extent(name, line.choice(ExtentKind, str.lower), line.integer()))

    def _weight(self, line: Line) -> None:
        line.expect("weight")
        self._declare(Weight(line.reference("$"), _type(line)), line)

    def _buffer(self, line: Line) -> None:
        kind = line.choice(BufferKind, str.lower)
        name = line.reference("@")
        self._declare(Buffer(name, kind, _type(line), _role(line)), line)

    def _declare(self, item: Buffer | Weight, line: Line) -> None:
        key = f"{'$' if isinstance(item, Weight) else '@'}{item.name}"
        if key in self._declared:
            raise line.error("declared twice", key, "declare it once")
        self._declared[key] = item, line

    def _op(self, line: Line) -> None:
        results = self._results(line)
        kind = line.take("word", "an operation")
        line.expect("(")
        operands = tuple(line.items(")", lambda: self._operand(line)))
        attributes: dict[str, AttributeValue] = {}
        while not line.at_end():
            name = line.take("word", "an attribute's name")
            line.expect("=")
            if name in attributes:
                raise line.error("attribute given twice", name, "give it once")
            attributes[name] = _literal(line)
        self._ops.append(Op(kind, operands, results, attributes))
        self._values.update({v.name: v for v in results})

    def _results(self, line: Line) -> tuple[Value, ...]:
        if not line.peek().startswith("%"):
            return ()
        return tuple(line.items("=", lambda: Value(line.reference("%"), _type(line), _role(line))))

    def _operand(self, line: Line) -> Ref | None:
        if line.accept("_"):
            return None
        key = line.take("reference", "an operand")
        if key[0] == "%":
            if key[1:] not in self._values:
                raise line.error("no such value above", key, "define it first")
            return self._values[key[1:]]
        if key not in self._declared:
            raise line.error("not declared above", key, "declare it first")
        self._used.add(key)
        return self._declared[key][0]


_KINDS = frozenset(kind.name.lower() for kind in BufferKind)


def _type(line: Line) -> TensorType:
    dtype = line.choice(DType, str.lower)
    line.expect("[")
    return TensorType(dtype, tuple(line.items("]", lambda: _dim(line))))


def _dim(line: Line) -> int | str:
    kind, text = line.take_any()
    if kind == "word":
        return text
    if kind != "number":
        raise line.error("expected a dimension", text, "write a number or an extent's name")
    return line.to_integer(text)


def _role(line: Line) -> Role:
    return line.choice(Role, str.lower) if line.accept("role") else Role.NONE


def _literal(line: Line) -> AttributeValue:
    if line.accept("["):
        return tuple(line.items("]", line.integer))
    kind, text = line.take_any()
    if kind == "text":
        return _text(line, text)
    if kind == "number":
        return float(text) if "." in text or "e" in text else line.to_integer(text)
    if text in ("true", "false"):
        return text == "true"
    raise line.error(
        "expected a value", text, "write a number, text in quotes, true, false or a list"
    )


def _text(line: Line, quoted: str) -> str:
    try:
        return str(json.loads(quoted))
    except json.JSONDecodeError as error:
        raise line.error("malformed text", quoted, error.msg) from None
