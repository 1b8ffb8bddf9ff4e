"""The signed envelope: DSSE's pre-authentication encoding under a payload type of our own.

What is signed, stored and later parsed is one byte string; it is never serialised again. The
encoding binds the payload's type and length to its bytes, so that no other kind of document
signed by the same key passes for a core.

Specification: https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
"""

from collections.abc import Iterable

from helios.core.keys import SIGNATURE_NBYTES, PublicKey, SigningKey
from helios.core.wire import parse
from helios.errors import CoreError, SignatureError
from helios.schema import core_pb2 as pb

PAYLOAD_TYPE = "application/vnd.helios.core-body+protobuf"
MAX_SIGNATURES = 16


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """The bytes that are signed: `DSSEv1 SP len(type) SP type SP len(payload) SP payload`."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def seal(payload: bytes, key: SigningKey) -> pb.Envelope:
    """An envelope around exactly these payload bytes, signed with `key`."""
    return _envelope(payload, key, key.sign(pre_authentication_encoding(PAYLOAD_TYPE, payload)))


def sealed_nbytes(payload: bytes, key: SigningKey) -> int:
    """Bytes of the envelope that `seal` would make. Signs nothing: a draft is not a core."""
    return _envelope(payload, key, bytes(SIGNATURE_NBYTES)).ByteSize()


def _envelope(payload: bytes, key: SigningKey, signature: bytes) -> pb.Envelope:
    return pb.Envelope(
        payload_type=PAYLOAD_TYPE,
        payload=payload,
        signatures=[pb.Signature(key_id=key.id, signature=signature)],
    )


def parse_envelope(data: bytes) -> pb.Envelope:
    """The envelope in `data`, of our payload type and with 1 to 16 signatures.

    Nothing in it is authenticated yet, and its payload is not looked at.
    """
    envelope = parse(pb.Envelope, data, field="envelope", limit=MAX_SIGNATURES)
    if envelope.payload_type != PAYLOAD_TYPE:
        raise CoreError(
            "another kind of document is signed here",
            field="envelope.payload_type",
            value=envelope.payload_type,
            remedy=f"a core has the type {PAYLOAD_TYPE}",
        )
    if not envelope.signatures:
        raise SignatureError(
            "nobody has signed this core",
            field="envelope.signatures",
            remedy="ask its publisher for a signed one",
        )
    for index, entry in enumerate(envelope.signatures):
        if len(entry.signature) != SIGNATURE_NBYTES:
            raise SignatureError(
                f"an Ed25519 signature has {SIGNATURE_NBYTES} bytes",
                field=f"envelope.signatures[{index}].signature",
                value=len(entry.signature),
                remedy="the core is damaged; prepare or copy it again",
            )
    return envelope


def verify(envelope: pb.Envelope, keys: Iterable[PublicKey]) -> tuple[PublicKey, ...]:
    """Those of `keys` that signed the envelope's payload; `SignatureError` when none did.

    Key ids only decide what is tried first. A wrong or missing one hides no valid signature
    and lends no trust to an invalid one.
    """
    candidates = set(keys)
    message = pre_authentication_encoding(envelope.payload_type, envelope.payload)
    signers = tuple(key for key in candidates if _signed(key, envelope.signatures, message))
    if not signers:
        raise SignatureError(
            f"none of the {len(candidates)} trusted keys signed this core",
            field="envelope.signatures",
            value=", ".join(entry.key_id for entry in envelope.signatures),
            remedy="if you trust its publisher, add the publisher's public key with `helios keys`; "
            "otherwise do not use the core",
        )
    return signers


def _signed(key: PublicKey, signatures: Iterable[pb.Signature], message: bytes) -> bool:
    hinted_first = sorted(signatures, key=lambda entry: entry.key_id != key.id)
    return any(key.verifies(entry.signature, message) for entry in hinted_first)
