"""Reading Protobuf strictly: what this schema does not know is refused, wherever it stands.

Protobuf itself keeps unknown fields and unknown enum numbers for the sake of old readers. Here
they carry meaning that an old reader would miss, so an old reader must refuse them.
"""

import math
from typing import TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from helios.errors import HeliosError

MAX_BYTES = 256 << 20
"""The largest serialised message that is parsed at all."""
MAX_ITEMS = 1 << 20
"""The most entries of any repeated field."""
MAX_TEXT = 1 << 16
"""The longest string, in characters."""

_M = TypeVar("_M", bound=Message)
_REAL = (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT)


def parse(data: bytes, kind: type[_M], field: str, error: type[HeliosError]) -> _M:
    """Parse and check a message. Raises `error` for bytes that are not exactly one."""
    if len(data) > MAX_BYTES:
        raise error("is too large", field=field, value=len(data), remedy=f"at most {MAX_BYTES}")
    try:
        message = kind.FromString(data)
    except DecodeError as failure:
        raise error(
            f"is not a serialised {kind.DESCRIPTOR.name}",
            field=field,
            value=str(failure),
            remedy="write it again",
        ) from None
    check_message(message, field, error)
    return message


def check_message(message: Message, field: str, error: type[HeliosError]) -> None:
    """Raise `error` where a message holds anything the schema does not know or bound.

    Refused are unknown fields, unknown enum numbers, numbers that are not finite, over-long
    strings and over-long lists, in the message and in all messages within it.
    """
    unknown = UnknownFieldSet(message)
    if len(unknown):
        raise error(
            f"{message.DESCRIPTOR.name} has an unknown field",
            field=field,
            value=unknown[0].field_number,
            remedy="use a release that knows it",
        )
    for descriptor, value in message.ListFields():
        where = f"{field}.{descriptor.name}"
        if not descriptor.is_repeated:
            _check_item(descriptor, value, where, error)
            continue
        if len(value) > MAX_ITEMS:
            raise error("too many entries", field=where, value=len(value), remedy="split it")
        if _needs_no_look(descriptor):
            continue
        for index, item in enumerate(value):
            _check_item(descriptor, item, f"{where}[{index}]", error)


def _needs_no_look(descriptor: FieldDescriptor) -> bool:
    return (
        descriptor.message_type is None
        and descriptor.enum_type is None
        and descriptor.type not in (*_REAL, FieldDescriptor.TYPE_STRING)
    )


def _check_item(
    descriptor: FieldDescriptor, value: object, where: str, error: type[HeliosError]
) -> None:
    if isinstance(value, Message):
        check_message(value, where, error)
    elif descriptor.enum_type is not None:
        if value not in descriptor.enum_type.values_by_number:
            raise error(
                f"unknown {descriptor.enum_type.name}",
                field=where,
                value=value,
                remedy="use a release that knows it",
            )
    elif isinstance(value, float) and not math.isfinite(value):
        raise error("must be finite", field=where, value=value, remedy="correct the number")
    elif isinstance(value, str) and len(value) > MAX_TEXT:
        raise error("is too long", field=where, value=len(value), remedy=f"at most {MAX_TEXT}")
