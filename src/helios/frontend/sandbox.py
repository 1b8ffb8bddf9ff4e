"""Where chat templates run: a Jinja environment that bounds what a template can spend.

A template comes with a model and is not trusted. Jinja's immutable sandbox keeps it from Python's
internals; what is added here bounds its work. Every loop pass, call and filter counts against a
budget, and no operation may write a text or a list longer than the largest prompt allowed.
"""

import functools
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from helios.frontend import limits

MAX_WORK = 500_000

_work: ContextVar[list[int] | None] = ContextVar("template_work", default=None)

# No prompt needs them, and what they cost is not bounded by what they are given.
_REFUSED_FILTERS = ("pprint", "random", "urlize", "xmlattr", "filesizeformat")


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment that `transformers` gives to chat templates, with bounds."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols", GenerationTag],
            finalize=_finalize,
        )
        self.globals.pop("lipsum")
        for name in _REFUSED_FILTERS:
            self.filters.pop(name)
        self.filters = {name: _bounded(name, code) for name, code in self.filters.items()}
        self.filters["_tick"] = _tick
        self.filters["_joined"] = _joined

    def add_filter(self, name: str, code: Callable[..., Any]) -> None:
        """Add a filter under the same bounds."""
        self.filters[name] = _bounded(name, code)

    def compile_template(self, source: str) -> jinja2.Template:
        """Compile with every loop pass and concatenation counted."""
        tree = _Bounds().visit(self.parse(source))
        code = self.compile(tree)
        return self.template_class.from_code(self, code, self.make_globals(None))

    def call(self, context: Context, callable_: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Count a call, and refuse a text method that would grow its text beyond bounds."""
        _spend(1)
        # The sandbox wraps a text's `format`; what it wraps knows the text.
        owner = getattr(getattr(callable_, "__wrapped__", callable_), "__self__", None)
        if isinstance(owner, str):
            args = limits.check_text_method(owner, callable_.__name__, args)
        limits.check_numbers((*args, *kwargs.values()))
        return _charged(super().call(context, callable_, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Refuse an operation whose result would be too large, before it is computed."""
        limits.check_operation(operator, left, right)
        return _charged(super().call_binop(context, operator, left, right))


class GenerationTag(Extension):
    """`{% generation %}` marks what an assistant wrote, for training; here it is its body."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        """Take the body as it is, in a scope of its own."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


def run_bounded(parts: Iterable[str]) -> str:
    """Join what a render yields, within the budget; raises `SecurityError` where it is spent."""
    token = _work.set([MAX_WORK])
    texts: list[str] = []
    length = 0
    try:
        for part in parts:
            length += len(part)
            limits.require(length)
            texts.append(part)
    finally:
        _work.reset(token)
    return "".join(texts)


class _Bounds(NodeTransformer):
    """Counts every loop pass, tested or not, and joins `~` within bounds."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        tick = nodes.Filter(nodes.Const(True), "_tick", [], [], None, None, lineno=node.lineno)
        if node.test is not None:
            node.test = nodes.And(tick, node.test, lineno=node.lineno)
        node.body = [nodes.ExprStmt(tick, lineno=node.lineno), *node.body]
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        items = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(items, "_joined", [], [], None, None, lineno=node.lineno)


@jinja2.pass_context  # keeps the compiler from folding it away
def _tick(context: Context, value: bool) -> bool:
    _spend(1)
    return value


def _joined(items: list[Any]) -> str:
    limits.measure(items)
    return str(_charged("".join(map(str, items))))


def _finalize(value: Any) -> Any:
    if not isinstance(value, str):
        limits.measure(value)
    return value


def _bounded(name: str, code: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(code)
    def bounded(*args: Any, **kwargs: Any) -> Any:
        _spend(1)
        # Some filters are handed a context first; what follows is theirs to judge.
        given = args[1:] if hasattr(code, "jinja_pass_arg") else args
        limits.check_filter(name, given, kwargs)
        return _charged(code(*args, **kwargs))

    return bounded


def _spend(amount: int) -> None:
    budget = _work.get()
    if budget is None:
        return  # while compiling, constants are folded through filters
    budget[0] -= amount
    if budget[0] < 0:
        raise SecurityError("the template does more work than any prompt needs")


def _charged(value: Any) -> Any:
    """A value whose length was checked and paid for, so that copies cannot be made for free."""
    if isinstance(value, str | list | tuple):
        limits.require(len(value))
        _spend(len(value) >> 8)
    return value
