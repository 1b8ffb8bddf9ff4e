import pytest

from helios.core.envelope import (
    PAYLOAD_TYPE,
    parse_envelope,
    pre_authentication_encoding,
    seal,
    verify,
)
from helios.core.keys import SigningKey
from helios.errors import CoreError, HeliosError, SignatureError
from helios.schema import core_pb2 as pb


def test_the_encoding_of_the_specification() -> None:
    encoded = pre_authentication_encoding("http://example.com/HelloWorld", b"hello world")
    assert encoded == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_lengths_count_bytes_and_keep_type_and_payload_apart() -> None:
    assert pre_authentication_encoding("é", b"\xff") == b"DSSEv1 2 \xc3\xa9 1 \xff"
    assert pre_authentication_encoding("a", b"b 1 c") != pre_authentication_encoding("a 1 b", b"c")


def test_what_is_sealed_verifies_and_names_its_signer(key: SigningKey) -> None:
    envelope = parse_envelope(seal(b"\x08\x02", key).SerializeToString())
    assert envelope.payload == b"\x08\x02"
    others = [SigningKey.generate().public for _ in range(3)]
    assert verify(envelope, [*others, key.public]) == (key.public,)


def test_key_ids_are_hints(key: SigningKey) -> None:
    envelope = seal(b"payload", key)
    for hint in ("", "nonsense", SigningKey.generate().id):
        envelope.signatures[0].key_id = hint
        assert verify(envelope, [key.public]) == (key.public,)


def test_a_matching_hint_lends_no_trust(key: SigningKey) -> None:
    forged = seal(b"payload", SigningKey.generate())
    forged.signatures[0].key_id = key.id
    with pytest.raises(SignatureError, match="none of the 1 trusted keys"):
        verify(forged, [key.public])


def test_several_signatures(key: SigningKey) -> None:
    second, stranger = SigningKey.generate(), SigningKey.generate()
    envelope = seal(b"payload", stranger)
    envelope.signatures.extend(seal(b"payload", second).signatures)
    envelope.signatures.extend(seal(b"payload", key).signatures)
    assert set(verify(envelope, [key.public, second.public])) == {key.public, second.public}


def test_type_and_payload_are_both_signed(key: SigningKey) -> None:
    for changed in (
        pb.Envelope(payload_type=PAYLOAD_TYPE, payload=b"payloaD"),
        pb.Envelope(payload_type=PAYLOAD_TYPE + "2", payload=b"payload"),
    ):
        changed.signatures.extend(seal(b"payload", key).signatures)
        with pytest.raises(SignatureError):
            verify(changed, [key.public])


def test_nobody_is_trusted(key: SigningKey) -> None:
    with pytest.raises(SignatureError, match="none of the 0"):
        verify(seal(b"payload", key), [])


def envelope(**changes: object) -> bytes:
    made = seal(b"payload", SigningKey.generate())
    for name, value in changes.items():
        made.ClearField(name)  # type: ignore[arg-type]
        made.MergeFrom(pb.Envelope(**{name: value}))  # type: ignore[arg-type]
    return made.SerializeToString()


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (envelope(payload_type="text/plain"), CoreError, "payload_type: another kind"),
        (envelope(payload_type=""), CoreError, "payload_type"),
        (envelope(signatures=[]), SignatureError, "nobody has signed"),
        (
            envelope(signatures=[pb.Signature(signature=bytes(63))]),
            SignatureError,
            r"signatures\[0\].signature: an Ed25519 signature has 64 bytes \(got 63",
        ),
        (
            envelope(signatures=[pb.Signature(signature=bytes(64))] * 17),
            CoreError,
            "more than 16 messages",
        ),
        (envelope() + b"\x22\x01x", CoreError, "a field this version does not know"),
        (envelope()[:-1], CoreError, "past the end"),
        (b"", CoreError, "payload_type"),
        (b"\xff" * 40, CoreError, "ends inside a number"),
        (envelope() + b"\x0b\x0c", CoreError, "wire type"),
        (b"\x0a\x02\xff\xfe", CoreError, "does not parse"),
    ],
)
def test_malformed_envelopes(data: bytes, error: type[HeliosError], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_envelope(data)
