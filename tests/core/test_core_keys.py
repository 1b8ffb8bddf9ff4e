import copy
import errno
import os
import pickle
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from helios.core.keys import PublicKey, SigningKey
from helios.errors import TrustError

# RFC 8032, section 7.1, test 2.
SECRET = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
PUBLIC = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
MESSAGE = bytes.fromhex("72")
SIGNATURE = bytes.fromhex(
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)


def published() -> SigningKey:
    return SigningKey(Ed25519PrivateKey.from_private_bytes(SECRET))


def test_the_published_vector() -> None:
    key = published()
    assert key.public.text == PUBLIC
    assert key.sign(MESSAGE) == SIGNATURE
    assert key.public.verifies(SIGNATURE, MESSAGE)


@pytest.mark.parametrize("position", range(0, 64, 7))
def test_any_other_signature_or_message_fails(position: int) -> None:
    changed = bytearray(SIGNATURE)
    changed[position] ^= 1
    assert not PublicKey.parse(PUBLIC).verifies(bytes(changed), MESSAGE)
    assert not PublicKey.parse(PUBLIC).verifies(SIGNATURE, MESSAGE + b"\0")
    assert not SigningKey.generate().public.verifies(SIGNATURE, MESSAGE)


def test_the_id_is_a_short_hash_of_the_raw_key() -> None:
    # sha256sum of the 32 raw bytes
    assert published().id == "39f713d0a644253f"
    assert published().public.id == published().id


@pytest.mark.parametrize("text", ["", "ab", PUBLIC[:-1], PUBLIC + "00", PUBLIC.upper(), "z" * 64])
def test_text_that_is_no_key(text: str) -> None:
    with pytest.raises(TrustError, match="public key"):
        PublicKey.parse(text)


def test_a_raw_key_of_wrong_length() -> None:
    with pytest.raises(TrustError, match="32 bytes"):
        PublicKey(bytes(31))


def test_round_trip_in_a_file_only_the_owner_may_read(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    before = os.umask(0)
    try:
        published().save(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text().startswith("-----BEGIN PRIVATE KEY-----")
    assert SigningKey.load(path).sign(MESSAGE) == SIGNATURE


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    path.write_text("precious")
    with pytest.raises(TrustError, match="exists"):
        published().save(path)
    assert path.read_text() == "precious"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610, 0o666])
def test_a_private_key_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key.pem"
    published().save(path)
    path.chmod(mode)
    with pytest.raises(TrustError, match=r"chmod 600"):
        SigningKey.load(path)


def private(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def test_a_key_is_the_same_in_every_form_of_pem(tmp_path: Path) -> None:
    published().save(tmp_path / "key.pem")
    saved = (tmp_path / "key.pem").read_bytes()
    for data in (saved, saved.rstrip(), saved.replace(b"\n", b"\r\n"), b"a note\n" + saved):
        assert SigningKey.load(private(tmp_path / "other.pem", data)).sign(MESSAGE) == SIGNATURE


def test_files_that_hold_no_ed25519_key(tmp_path: Path) -> None:
    for data in (
        b"",
        b"nonsense",
        b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        b"-----BEGIN PRIVATE KEY-----\n" + b"A" * 64 + b"\n-----END PRIVATE KEY-----\n",
    ):
        with pytest.raises(TrustError, match="PEM"):
            SigningKey.load(private(tmp_path / "bad.pem", data))
    pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    other = generate_private_key(SECP256R1()).private_bytes(*pem, serialization.NoEncryption())
    with pytest.raises(TrustError, match="Ed25519"):
        SigningKey.load(private(tmp_path / "ec.pem", other))
    locked = Ed25519PrivateKey.generate().private_bytes(
        *pem, serialization.BestAvailableEncryption(b"secret")
    )
    with pytest.raises(TrustError, match="unencrypted"):
        SigningKey.load(private(tmp_path / "locked.pem", locked))


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(TrustError, match="No such file"):
        SigningKey.load(tmp_path / "missing.pem")
    with pytest.raises(TrustError):
        SigningKey.load(tmp_path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(TrustError, match="regular"):
        SigningKey.load(tmp_path / "pipe")
    with pytest.raises(TrustError, match="can't be written"):
        published().save(tmp_path / "missing" / "key.pem")


def test_a_private_key_does_not_leak() -> None:
    key = published()
    assert SECRET.hex() not in repr(key)
    assert key.id in repr(key)
    with pytest.raises(TypeError):
        pickle.dumps(key)
    with pytest.raises(TypeError):
        copy.copy(key)


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_half_a_key_is_never_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    def fail(_: int) -> None:
        raise failure

    monkeypatch.setattr(os, "fsync", fail)
    expected = TrustError if isinstance(failure, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        published().save(tmp_path / "key.pem")
    assert list(tmp_path.iterdir()) == []
