"""Walking and disturbing Protobuf messages by reflection."""

from collections.abc import Callable, Iterator

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message


def messages(message: Message) -> Iterator[Message]:
    """The message and every message within it."""
    yield message
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for item in value if descriptor.is_repeated else [value]:
                yield from messages(item)


def assignments(
    message: Message, wanted: Callable[[FieldDescriptor], bool]
) -> Iterator[tuple[FieldDescriptor, Callable[[object], None]]]:
    """Every set field that is wanted, with a way to give it another value."""
    for inner in messages(message):
        for descriptor, value in inner.ListFields():
            if not wanted(descriptor):
                continue
            if descriptor.is_repeated:
                yield descriptor, lambda new, value=value: value.__setitem__(0, new)
            else:
                yield (
                    descriptor,
                    lambda new, inner=inner, name=descriptor.name: setattr(inner, name, new),
                )


def set_fields(message: Message) -> set[str]:
    """Full names of all fields that are set somewhere in a message."""
    return {d.full_name for inner in messages(message) for d, _ in inner.ListFields()}


def declared_fields(message: Message) -> set[str]:
    """Full names of all fields that could be set in a message of this type."""
    found: set[str] = set()
    pending, seen = [message.DESCRIPTOR], set()
    while pending:
        descriptor = pending.pop()
        if descriptor.full_name in seen:
            continue
        seen.add(descriptor.full_name)
        for field in descriptor.fields:
            found.add(field.full_name)
            if field.message_type is not None:
                pending.append(field.message_type)
    return found
