"""How large a value a chat template may make, checked before it is made."""

import re
from collections.abc import Mapping, Sequence, Sized
from typing import Any

from jinja2.exceptions import SecurityError
from jinja2.sandbox import MAX_RANGE

MAX_TEXT = 32 * 1024 * 1024
MAX_ITEMS = 1_000_000
MAX_NUMBER = 1 << 64
MAX_POWER = 64
MAX_INDENT = 64

_WIDE = re.compile(r"\d{6}|\*|\{[^{}]*\{")
_WIDTH_METHODS = frozenset({"ljust", "rjust", "center", "zfill", "expandtabs"})
_WIDTH_FILTERS = frozenset({"batch", "center", "slice", "truncate", "wordwrap"})


def require(length: int) -> None:
    """Refuse a text or list that is longer than any prompt."""
    if length > MAX_TEXT:
        raise SecurityError("the template makes more text than any prompt may have")


def measure(value: Any) -> None:
    """Refuse a nested value whose written form would be too long.

    A list that holds one other list many times is small until it is written out.
    """
    waiting = [value]
    length = items = 0
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            length += len(item)
        elif isinstance(item, Mapping):
            waiting.extend(item.keys())
            waiting.extend(item.values())
        elif isinstance(item, list | tuple | set | frozenset):
            waiting.extend(item)
        items += 1
        require(length)
        if items + len(waiting) > MAX_ITEMS:
            raise SecurityError("the template writes out a value with too many items")


def check_numbers(values: Sequence[Any]) -> None:
    """Refuse numbers that no prompt needs and that arithmetic could blow up."""
    for value in values:
        if isinstance(value, int) and abs(value) > MAX_NUMBER:
            raise SecurityError("the template uses a number that is too large")


def check_operation(operator: str, left: Any, right: Any) -> None:
    """Judge `+ * ** %` by what they would make."""
    if operator == "+" and isinstance(left, Sized) and isinstance(right, Sized):
        require(len(left) + len(right))
    elif operator == "*":
        check_numbers((left, right))
        for value, times in ((left, right), (right, left)):
            if isinstance(value, Sized) and isinstance(times, int):
                require(len(value) * max(times, 0))
    elif operator == "**":
        check_numbers((left,))
        if isinstance(right, int | float) and abs(right) > MAX_POWER:
            raise SecurityError(f"the template raises to a power over {MAX_POWER}")
    elif operator == "%" and isinstance(left, str):
        _check_format(left)
        measure(right)


def check_text_method(text: str, method: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Judge a call of a text's method; returns the arguments to call it with."""
    if method == "join" and args:
        items = list(args[0])
        _check_join(text, items)
        return (items, *args[1:])
    if method == "replace" and len(args) >= 2:
        _check_replace(text, str(args[0]), str(args[1]))
    elif method in {"format", "format_map"}:
        _check_format(text)
        measure(list(args))
    elif method in _WIDTH_METHODS:
        _check_widths(args[:1])
    return args


def check_filter(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Judge a filter's arguments, the filtered value first."""
    options = (*args[1:], *kwargs.values())
    if name in _WIDTH_FILTERS:
        _check_widths(options)
    elif name == "indent":
        _check_indent(str(args[0]), options)
    elif name == "format":
        _check_format(str(args[0]))
        measure(list(options))
    elif name == "replace" and len(options) >= 2:
        _check_replace(str(args[0]), str(options[0]), str(options[1]))
    elif name == "join" and isinstance(args[0], Sized):
        _check_join(str(options[0]) if options else "", list(args[0]))  # type: ignore[call-overload]
    elif name == "sum" and any(isinstance(option, list | tuple) for option in options):
        raise SecurityError("the template sums lists")
    elif name == "tojson":
        _check_widths(options, MAX_INDENT)
        measure(args[0])
    elif name == "string":
        measure(args[0])


def _check_join(separator: str, items: Sequence[Any]) -> None:
    measure(items)
    require(len(separator) * len(items))


def _check_replace(text: str, old: str, new: str) -> None:
    require(len(text) + text.count(old) * len(new))


def _check_indent(text: str, options: tuple[Any, ...]) -> None:
    lines = text.count("\n") + 1
    for option in options:
        width = len(option) if isinstance(option, str) else int(option)
        require(len(text) + lines * width)


def _check_widths(options: tuple[Any, ...], largest: int = MAX_RANGE) -> None:
    for option in options:
        if isinstance(option, int) and option > largest:
            raise SecurityError(f"the template asks for a width over {largest}")


def _check_format(text: str) -> None:
    if _WIDE.search(text):
        raise SecurityError("the template uses a format whose width is not bounded")
