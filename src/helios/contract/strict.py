"""Reading Protobuf strictly: what this schema does not know is refused, wherever it stands.

Protobuf itself keeps unknown fields and unknown enum numbers for the sake of old readers. Here
they carry meaning that an old reader would miss, so an old reader must refuse them.
"""

import math
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from helios.errors import HeliosError

MAX_BYTES = 256 << 20
"""The largest serialised message that is parsed at all."""
MAX_ITEMS = 1 << 20
"""The most entries of a repeated field."""
MAX_TEXT = 1 << 16
"""The longest string that is no name, in characters."""

_M = TypeVar("_M", bound=Message)
_REAL = (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT)


def parse(data: bytes, kind: type[_M], field: str, error: type[HeliosError]) -> _M:
    """The message in some bytes, not yet checked. Raises `error` for bytes that are not one."""
    if len(data) > MAX_BYTES:
        raise error("is too large", field=field, value=len(data), remedy=f"at most {MAX_BYTES}")
    try:
        return kind.FromString(data)
    except DecodeError as failure:
        raise error(
            f"is not a serialised {kind.DESCRIPTOR.name}",
            field=field,
            value=str(failure),
            remedy="write it again",
        ) from None


Seen = dict[str, set[bytes]]
"""The serialised entries of a message's repeated fields that were found good, by field."""


def check_message(
    message: Message, field: str, error: type[HeliosError], seen: Seen | None = None
) -> None:
    """Raise `error` where a message, or one within it, holds what the schema does not know.

    Refused are unknown fields, unknown enum numbers, numbers that are not finite, and over-long
    lists of anything that has to be looked at one by one. Messages of one kind that repeat each
    other's entries are looked at faster if they share `seen`.
    """
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    if known.ByteSize() != message.ByteSize():
        _check_fields(message, field, error)
    fault = _fault(message, _looks(message.DESCRIPTOR), seen)
    if fault is not None:
        where = f"{field}.{fault.where}"
        raise error(fault.message, field=where, value=fault.value, remedy=fault.remedy)


def check_texts(message: Message, field: str, error: type[HeliosError]) -> None:
    """Raise `error` where a message, or one within it, holds an over-long string."""
    for where, value in _items(message, field):
        if isinstance(value, Message):
            check_texts(value, where, error)
        elif isinstance(value, str) and len(value) > MAX_TEXT:
            raise error("is too long", field=where, value=len(value), remedy=f"at most {MAX_TEXT}")


def _check_fields(message: Message, field: str, error: type[HeliosError]) -> None:
    unknown = UnknownFieldSet(message)
    if len(unknown):
        raise error(
            f"{message.DESCRIPTOR.name} has an unknown field",
            field=field,
            value=unknown[0].field_number,
            remedy="use a release that knows it",
        )
    for where, value in _items(message, field):
        if isinstance(value, Message):
            _check_fields(value, where, error)


def _items(message: Message, field: str) -> Iterator[tuple[str, object]]:
    """Every set value directly in a message, with where it stands."""
    for descriptor, value in message.ListFields():
        where = f"{field}.{descriptor.name}"
        if descriptor.is_repeated:
            for index, item in enumerate(value):
                yield f"{where}[{index}]", item
        else:
            yield where, value


class _Look(NamedTuple):
    """A field that has to be looked at: for what is within it, as an enum, or as a real number."""

    name: str
    repeated: bool
    within: Descriptor | None
    numbers: frozenset[int]
    enum: str


class _Fault(NamedTuple):
    """Something that is refused: where it stands in a message, what is wrong and what would do."""

    where: str
    message: str
    value: object
    remedy: str


@cache
def _looks(descriptor: Descriptor) -> tuple[_Look, ...]:
    """The fields of a message type to look at. Most types have none, which makes this fast."""
    found = []
    for field in descriptor.fields:
        within = field.message_type
        if within is not None and not _looks(within):
            within = None
        if within is not None or field.enum_type is not None or field.type in _REAL:
            numbers = frozenset(field.enum_type.values_by_number) if field.enum_type else ()
            enum = field.enum_type.name if field.enum_type else ""
            found.append(_Look(field.name, field.is_repeated, within, frozenset(numbers), enum))
    return tuple(found)


def _fault(message: Message, looks: tuple[_Look, ...], seen: Seen | None = None) -> _Fault | None:
    """The first fault in a message. Names of places are made once there is one: most are good."""
    for look in looks:
        name = look.name
        if look.repeated:
            items = getattr(message, name)
            if len(items) > MAX_ITEMS:
                return _Fault(name, "too many entries", len(items), "split it")
        elif look.within is None or message.HasField(name):
            items = (getattr(message, name),)
        else:
            continue
        within = None if look.within is None else _looks(look.within)
        known = None if seen is None or within is None else seen.setdefault(name, set())
        for index, item in enumerate(items):
            if known is not None:
                data = item.SerializeToString()
                if data in known:
                    continue
                known.add(data)  # nothing is asked of it again if it is bad
            fault = _value_fault(look, item) if within is None else _fault(item, within)
            if fault is not None:
                where = f"{name}[{index}]" if look.repeated else name
                return fault._replace(where=f"{where}.{fault.where}" if fault.where else where)
    return None


def _value_fault(look: _Look, value: float) -> _Fault | None:
    if look.numbers:
        if value not in look.numbers:
            return _Fault("", f"unknown {look.enum}", value, "use a release that knows it")
    elif not math.isfinite(value):
        return _Fault("", "must be finite", value, "correct the number")
    return None
