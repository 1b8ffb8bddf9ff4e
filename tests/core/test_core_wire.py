import tracemalloc

import pytest

from helios.core.wire import MAX_MESSAGES, parse
from helios.errors import CoreError
from helios.schema import core_pb2 as pb


def test_a_message_is_what_protobuf_parses() -> None:
    body = pb.CoreBody(format_version=2, resources=[pb.Resource(id="a", chunk_sha256=[b"x"])])
    body.deployment.manifest.weights.add(name="w", shape=[1, 300], offset=1 << 63)
    body.deployment.contract.defaults.temperature = 0.5
    assert parse(pb.CoreBody, body.SerializeToString(), field="body") == body


def test_many_empty_messages_cost_nothing() -> None:
    # Two bytes each on the wire, some eighty once parsed.
    hostile = b"\x0a\x00" * MAX_MESSAGES
    tracemalloc.start()
    with pytest.raises(CoreError, match="more than 9999 messages"):
        parse(pb.LocationSet, hostile, field="locations", limit=9999)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 18


def test_nested_messages_are_counted_too() -> None:
    body = pb.CoreBody()
    for _ in range(5):
        body.deployment.manifest.weights.add()
    data = body.SerializeToString()
    assert parse(pb.CoreBody, data, field="body", limit=7) == body
    with pytest.raises(CoreError, match="more than 6 messages"):
        parse(pb.CoreBody, data, field="body", limit=6)


def test_unknown_fields_are_refused_where_they_could_matter() -> None:
    unknown = b"\xc0\x3e\x01"  # field 1000, varint
    for message in (pb.CoreBody(), pb.Resource(), pb.Publisher(), pb.Location()):
        with pytest.raises(CoreError, match=rf"{message.DESCRIPTOR.name}.*got 1000"):
            parse(type(message), message.SerializeToString() + unknown, field="it")
    nested = pb.CoreBody(provenance=pb.Provenance.FromString(unknown))
    assert parse(pb.CoreBody, nested.SerializeToString(), field="body") == nested
    nested = pb.CoreBody(publisher=pb.Publisher.FromString(unknown))
    with pytest.raises(CoreError, match="Publisher"):
        parse(pb.CoreBody, nested.SerializeToString(), field="body")


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",  # a tag and nothing
        b"\x0a\x05ab",  # a length past the end
        b"\x0a" + b"\xff" * 10,  # an endless length
        b"\x10" + b"\x80" * 11,  # an endless number
        b"\x11\x00",  # half a fixed64
        b"\x15\x00",  # half a fixed32
        b"\x0b",  # a group
        b"\x0f",  # no wire type at all
    ],
)
def test_bytes_that_are_no_message(data: bytes) -> None:
    with pytest.raises(CoreError):
        parse(pb.Signature if data[0] == 0x0A else pb.Provenance, data, field="it")
