"""Whole numbers in schemas that double precision can't hold, in which llguidance computes."""

import math
from decimal import Decimal

_EXACT = 1 << 53
_MOST = (1 << 63) - 1024  # the highest double among 64-bit integers
_UPPER = ("maximum", "exclusiveMaximum")
_LOWER = ("minimum", "exclusiveMinimum")


def within_doubles(schema: dict[str, object]) -> dict[str, object]:
    """Bounds moved inwards to the next double, and into 64 bits: what they allow is allowed."""
    moved = {key: _moved(schema[key], up=False) for key in _UPPER if key in schema}
    moved |= {key: _moved(schema[key], up=True) for key in _LOWER if key in schema}
    return schema | moved


def inexact_field(schema: dict[str, object]) -> str:
    """The keyword whose numbers would not be written exactly, or ''."""
    for key in ("const", "enum", "multipleOf"):
        if key in schema and not _writable(schema[key]):
            return key
    return ""


def _moved(bound: object, *, up: bool) -> object:
    if not isinstance(bound, int) or isinstance(bound, bool) or abs(bound) <= _EXACT:
        return bound
    bound = max(bound, -_MOST) if up else min(bound, _MOST)
    if abs(bound) > _MOST:
        return bound  # refused with the rest of the schema
    near = float(bound)
    if int(near) < bound and up:
        near = math.nextafter(near, math.inf)
    elif int(near) > bound and not up:
        near = math.nextafter(near, -math.inf)
    return int(near)


def _writable(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_writable, value.values()))
    if isinstance(value, list):
        return all(map(_writable, value))
    if not isinstance(value, int) or abs(value) <= _EXACT:
        return True
    try:
        return int(Decimal(repr(float(value)))) == value
    except OverflowError:
        return False
