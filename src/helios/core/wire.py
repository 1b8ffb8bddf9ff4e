"""Protobuf bytes are walked before they are parsed.

A parser allocates one object per embedded message, and an empty one costs an attacker two bytes.
The walk counts messages first, so that a small file can't ask for much memory, and refuses what
the parser would take without a word: unknown fields of the core's own messages, and groups. Bytes
too few to hold too many messages need no count, and where the reader of a message refuses unknown
fields itself, that is all there is to refuse.
"""

from typing import TypeVar, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from helios.errors import CoreError
from helios.schema import core_pb2 as pb

# A core of a thousand layers with 128 separate experts each still fits.
MAX_MESSAGES = 1 << 18

_LEAST_NBYTES = 2  # of an embedded message: its tag and its length

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_REMEDY = "the core is damaged; prepare or copy it again"

MessageT = TypeVar("MessageT", bound=Message)


def parse(kind: type[MessageT], data: bytes, *, field: str, limit: int = MAX_MESSAGES) -> MessageT:
    """The message in `data`, which must embed at most `limit` others.

    Unknown fields are refused in the messages of `core.proto`; the contract and the manifest
    have rules of their own, and nothing is decided by provenance. `field` names the message in
    errors.
    """
    descriptor = cast(Descriptor, kind.DESCRIPTOR)
    if _is_strict(descriptor) or len(data) > limit * _LEAST_NBYTES:
        _Walk(field, limit).message(memoryview(data), descriptor)
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise CoreError(
            f"does not parse as {kind.DESCRIPTOR.name}: {error}", field=field, remedy=_REMEDY
        ) from error


class _Walk:
    """One pass over a message and the messages within it."""

    def __init__(self, field: str, limit: int) -> None:
        self._field = field
        self._limit = limit
        self._count = 0

    def message(self, data: memoryview, descriptor: Descriptor) -> None:
        strict = _is_strict(descriptor)
        at = 0
        while at < len(data):
            tag, at = self._varint(data, at)
            known = descriptor.fields_by_number.get(tag >> 3)
            if known is None and strict:
                raise CoreError(
                    f"{descriptor.name} has a field this version does not know",
                    field=self._field,
                    value=tag >> 3,
                    remedy="read the core with a newer Helios, or prepare it again",
                )
            at = self._value(data, at, tag & 7, known)

    def _value(self, data: memoryview, at: int, kind: int, known: FieldDescriptor | None) -> int:
        """Pass one field's value and return where the next field starts."""
        if kind == _VARINT:
            return self._varint(data, at)[1]
        if kind == _BYTES:
            length, at = self._varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise CoreError("uses an unknown wire type", field=self._field, value=kind)
        if length > len(data) - at:
            raise CoreError(
                "a field reaches past the end of its message",
                field=self._field,
                value=length,
                remedy=_REMEDY,
            )
        if kind == _BYTES and known is not None and known.message_type is not None:
            self._enter(data[at : at + length], known.message_type)
        return at + length

    def _enter(self, data: memoryview, descriptor: Descriptor) -> None:
        # The schema has no recursive message, so its own depth bounds this recursion.
        self._count += 1
        if self._count > self._limit:
            raise CoreError(
                f"embeds more than {self._limit} messages", field=self._field, remedy=_REMEDY
            )
        self.message(data, descriptor)

    def _varint(self, data: memoryview, at: int) -> tuple[int, int]:
        value = 0
        for shift in range(0, 70, 7):
            if at >= len(data):
                break
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
        raise CoreError("ends inside a number", field=self._field, remedy=_REMEDY)


def _is_strict(descriptor: Descriptor) -> bool:
    own = descriptor.file.name == pb.DESCRIPTOR.name
    return own and descriptor.name != pb.Provenance.DESCRIPTOR.name
