"""Small readers that the decoders share: selections, names, tables by name."""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import TypeVar

from helios.contract.tensor import Dim, DType, TensorType
from helios.errors import ContractError
from helios.schema import program_pb2

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/+-]*")
"""Names of programs, values, buffers, weights, views and resources."""
IDENTIFIER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/+@-]*")
"""Served identifiers and cache identities, which may begin with a digit."""
MAX_NAME = 256

_E = TypeVar("_E", bound=IntEnum)
_T = TypeVar("_T")


def refusal(field: str, message: str, value: object, remedy: str) -> ContractError:
    """The error of one rule."""
    return ContractError(message, field=field, value=value, remedy=remedy)


def select(enum: type[_E], number: int, field: str) -> _E:
    """The selected member; the unspecified zero selects nothing and is refused."""
    if number == 0:
        choices = ", ".join(m.name for m in enum)
        raise refusal(field, f"no {enum.__name__} is selected", number, f"select one of {choices}")
    return enum(number)


def check_name(text: str, field: str, pattern: re.Pattern[str] = NAME) -> str:
    """The text, if it is a plain name."""
    if len(text) > MAX_NAME or not pattern.fullmatch(text):
        raise refusal(field, "is not a plain name", text, f"match {pattern.pattern}")
    return text


def check_distinct(items: Iterable[_T], field: str, what: str) -> tuple[_T, ...]:
    """The items in order, if none comes twice."""
    found: dict[_T, None] = {}
    for item in items:
        if item in found:
            raise refusal(field, f"the {what} comes twice", item, "name it once")
        found[item] = None
    return tuple(found)


def table(items: Iterable[_T], name: Callable[[_T], str], field: str) -> Mapping[str, _T]:
    """The items by name, which must be plain and distinct."""
    found: dict[str, _T] = {}
    for item in items:
        key = check_name(name(item), f"{field}.name")
        if key in found:
            raise refusal(f"{field}.{key}", "the name comes twice", key, "rename one")
        found[key] = item
    return MappingProxyType(found)


def tensor_type(message: program_pb2.TensorType, field: str) -> TensorType:
    """A tensor type whose dimensions are positive constants or extent names."""
    dtype = select(DType, message.dtype, f"{field}.type.dtype")
    return TensorType(dtype, tuple(_dim(d, f"{field}.type.shape") for d in message.shape))


def _dim(message: program_pb2.Dimension, field: str) -> Dim:
    length = message.WhichOneof("length")
    if length == "extent":
        return check_name(message.extent, field)
    if not message.constant:
        raise refusal(field, "a dimension is empty", message.constant, "give a positive length")
    return message.constant
