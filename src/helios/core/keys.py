"""Ed25519 keys: how they are made, kept and named."""

import binascii
import os
import re
import stat
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from helios.errors import TrustError
from helios.records import dataclass

KEY_NBYTES = 32
SIGNATURE_NBYTES = 64
_ID_DIGITS = 16
_PEM_LIMIT = 64 << 10
_TEXT = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A raw Ed25519 public key. Its text form is 64 lower-case hex digits."""

    raw: bytes

    def __post_init__(self) -> None:
        if len(self.raw) != KEY_NBYTES:
            raise TrustError(
                f"an Ed25519 public key has {KEY_NBYTES} bytes",
                field="public key",
                value=len(self.raw),
            )

    @classmethod
    def parse(cls, text: str) -> "PublicKey":
        """The key whose text form is given; `TrustError` for anything else."""
        if not _TEXT.fullmatch(text.strip()):
            raise TrustError(
                "is not an Ed25519 public key",
                field="public key",
                value=text,
                remedy="give the 64 hex digits that `helios keys` prints",
            )
        return cls(bytes.fromhex(text.strip()))

    @property
    def text(self) -> str:
        """The 64 hex digits that `parse` reads."""
        return self.raw.hex()

    @property
    def id(self) -> str:
        """The first 16 hex digits of the SHA-256 of the raw key: a name, never a proof."""
        return sha256(self.raw).hexdigest()[:_ID_DIGITS]

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether the private half of this key signed exactly `message`."""
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except InvalidSignature:
            return False
        return True


class SigningKey:
    """A private Ed25519 key. It never appears in text, errors, pickles or copies."""

    __slots__ = ("_private", "public")

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = PublicKey(private.public_key().public_bytes_raw())

    def __repr__(self) -> str:
        return f"SigningKey(id={self.public.id!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a signing key can't be pickled or copied; save it to a file")

    @property
    def id(self) -> str:
        """The id of the public half."""
        return self.public.id

    @classmethod
    def generate(cls) -> "SigningKey":
        """A new key from the system's random numbers."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "SigningKey":
        """The key in a PEM PKCS#8 file that nobody but its owner may read or write."""
        pem = _read_private(Path(path))
        seed = _seed(pem)
        if seed is not None:
            return cls(Ed25519PrivateKey.from_private_bytes(seed))
        from cryptography.hazmat.primitives import serialization

        try:
            private = serialization.load_pem_private_key(pem, password=None)
        except (ValueError, TypeError) as error:
            raise TrustError(
                "is not an unencrypted PEM private key", field=str(path), remedy=_MAKE_ONE
            ) from error
        if not isinstance(private, Ed25519PrivateKey):
            raise TrustError(
                "is not an Ed25519 key",
                field=str(path),
                value=type(private).__name__,
                remedy=_MAKE_ONE,
            )
        return cls(private)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the key to a new file of mode 0600; a file that exists is never replaced."""
        from cryptography.hazmat.primitives import serialization

        pem = self._private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        _write_private(Path(path), pem)

    def sign(self, message: bytes) -> bytes:
        """The 64-byte signature of `message`."""
        return self._private.sign(message)


_MAKE_ONE = "make one with `helios keys`"

# Version 0, id-Ed25519 and the head of the seed: RFC 8410, section 7.
_PKCS8 = bytes.fromhex("302e020100300506032b657004220420")
_PEM = re.compile(
    rb"-----BEGIN PRIVATE KEY-----\n([A-Za-z0-9+/]{64})\n-----END PRIVATE KEY-----\n?"
)


def _seed(pem: bytes) -> bytes | None:
    """The seed in a file as `save` writes it; None for any other form, which the library reads.

    Importing what reads all forms takes longer than anything else that keys are needed for.
    """
    found = _PEM.fullmatch(pem)
    der = binascii.a2b_base64(found[1]) if found else b""
    return der[len(_PKCS8) :] if der.startswith(_PKCS8) else None


def _read_private(path: Path) -> bytes:
    try:
        # Not blocking: opening a named pipe must not hang.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            _check_private(path, os.fstat(descriptor).st_mode)
            return os.read(descriptor, _PEM_LIMIT)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise TrustError(
            f"the private key can't be read: {error.strerror}", field=str(path), remedy=_MAKE_ONE
        ) from error


def _check_private(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise TrustError("the private key is not a regular file", field=str(path))
    if mode & 0o077:
        raise TrustError(
            "the private key may be used by others than its owner",
            field=str(path),
            value=f"{stat.S_IMODE(mode):04o}",
            remedy=f"run `chmod 600 {path}`, or replace the key if others may have read it",
        )


def _write_private(path: Path, pem: bytes) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise TrustError(
            f"the private key can't be written: {error.strerror}",
            field=str(path),
            remedy="choose a new file in a folder you may write to",
        ) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)
            file.write(pem)
            file.flush()
            os.fsync(descriptor)
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise TrustError(
                f"the private key can't be written: {error.strerror}", field=str(path)
            ) from error
        raise
