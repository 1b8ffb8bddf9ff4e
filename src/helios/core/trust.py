"""Who may publish what: namespaces, the keys trusted for each, and the local publisher.

Trust is two decisions that never stand in for one another. A *signature* shows that a key
trusted for the publisher's namespace signed the core. An *acceptance*, which must equal that
namespace to the letter, says that the user wants to run what this publisher made, on its terms.
"""

import fcntl
import json
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from helios.core.keys import PublicKey, SigningKey
from helios.errors import AcceptanceError, TrustError

_WORD = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_NAMESPACE = re.compile(rf"{_WORD}(?:/{_WORD})*")
_NAMESPACE_LIMIT = 200
_FILE_LIMIT = 4 << 20
_VERSION = 1


def helios_home() -> Path:
    """Where keys and trust live: `$HELIOS_HOME`, or `~/.config/helios`."""
    named = os.environ.get("HELIOS_HOME")
    return Path(named) if named else Path.home() / ".config" / "helios"


def check_namespace(namespace: str, *, field: str = "namespace") -> str:
    """`namespace` itself, if it is words of `A-Z a-z 0-9 . _ -` joined by slashes."""
    if len(namespace) > _NAMESPACE_LIMIT or not _NAMESPACE.fullmatch(namespace):
        raise TrustError(
            "is not a publisher namespace",
            field=field,
            value=namespace,
            remedy="use words of letters, digits, dots, dashes and underscores, joined by "
            f"slashes, at most {_NAMESPACE_LIMIT} characters: acme/models",
        )
    return namespace


def check_acceptance(namespace: str, acceptance: str) -> None:
    """Refuse unless `acceptance` equals the signed `namespace` exactly."""
    if acceptance != namespace:
        raise AcceptanceError(
            f"this core is published by {namespace}, which has not been accepted",
            field="acceptance",
            value=acceptance,
            remedy=f"accept exactly {namespace!r} if you agree to run what it publishes, "
            "on its licence",
        )


class TrustStore:
    """A folder that says which public keys may sign for which namespace.

    `trust.json` holds `{"version": 1, "namespaces": {NAMESPACE: [KEY, …]}}`. It is read anew by
    every call, so a key that was removed is refused at once, and it is refused as a whole when
    others may write to it.
    """

    def __init__(self, home: str | os.PathLike[str] | None = None) -> None:
        self.home = Path(home) if home is not None else helios_home()
        self._path = self.home / "trust.json"

    def entries(self) -> Mapping[str, tuple[PublicKey, ...]]:
        """Every namespace with its keys, as of now."""
        return {
            check_namespace(namespace, field=str(self._path)): tuple(
                PublicKey.parse(text) for text in keys
            )
            for namespace, keys in _read(self._path).items()
        }

    def namespaces(self) -> tuple[str, ...]:
        """The namespaces that have at least one key, in order."""
        return tuple(sorted(self.entries()))

    def keys(self, namespace: str) -> tuple[PublicKey, ...]:
        """The keys trusted for `namespace`; none if it is unknown."""
        return self.entries().get(namespace, ())

    def add(self, namespace: str, key: PublicKey) -> None:
        """Trust `key` for `namespace`; adding twice changes nothing."""
        check_namespace(namespace)
        with self.locked():
            entries = dict(self.entries())
            known = entries.get(namespace, ())
            if key not in known:
                self._replace({**entries, namespace: (*known, key)})

    def remove(self, namespace: str, key: PublicKey) -> None:
        """Trust `key` for `namespace` no longer; `TrustError` if it was not trusted."""
        with self.locked():
            entries = dict(self.entries())
            known = entries.get(namespace, ())
            if key not in known:
                raise TrustError(
                    f"is not trusted for {namespace}",
                    field="public key",
                    value=key.text,
                    remedy="list the trusted keys with `helios keys`",
                )
            entries[namespace] = tuple(k for k in known if k != key)
            self._replace({name: keys for name, keys in entries.items() if keys})

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock, creating the folder (mode 0700) first. Not reentrant."""
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(self.home / ".lock", "ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise TrustError(
                f"the trust folder can't be written: {error.strerror}",
                field=str(self.home),
                remedy="set HELIOS_HOME to a folder of your own",
            ) from error

    def _replace(self, entries: Mapping[str, tuple[PublicKey, ...]]) -> None:
        text = {name: [key.text for key in keys] for name, keys in sorted(entries.items())}
        document = json.dumps({"version": _VERSION, "namespaces": text}, indent=2) + "\n"
        descriptor, scratch = tempfile.mkstemp(dir=self.home, prefix=".trust-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(document)
                file.flush()
                os.fsync(descriptor)
            os.replace(scratch, self._path)
        except BaseException:
            os.unlink(scratch)
            raise


def local_publisher(home: str | os.PathLike[str] | None = None) -> tuple[str, SigningKey]:
    """The namespace `local/KEYID` and the key under which this user prepares cores.

    Made on first use and trusted then. A user who removes the key from the trust store later
    has revoked it: it is still returned, and what it signs is refused.
    """
    store = TrustStore(home)
    path = store.home / "keys" / "local.pem"
    if not path.exists():
        _create_local(store, path)
    key = SigningKey.load(path)
    return _local_namespace(key), key


def _create_local(store: TrustStore, path: Path) -> None:
    key = SigningKey.generate()
    # Trusted before it exists: were it the other way round, an interruption in between would
    # leave a key that is never trusted.
    store.add(_local_namespace(key), key.public)
    with store.locked():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if not path.exists():
            key.save(path)
            return
    store.remove(_local_namespace(key), key.public)  # another process was first


def _local_namespace(key: SigningKey) -> str:
    return f"local/{key.id}"


def _read(path: Path) -> dict[str, list[str]]:
    try:
        with open(path, "rb") as file:
            facts = os.fstat(file.fileno())
            _check_owner(path, facts)
            data = file.read(min(facts.st_size, _FILE_LIMIT))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise TrustError(f"can't be read: {error.strerror}", field=str(path)) from error
    try:
        return _entries(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise TrustError(
            f"is not a trust store: {error}",
            field=str(path),
            remedy="move it away and trust the publishers again with `helios keys`",
        ) from error


def _entries(document: Any) -> dict[str, list[str]]:
    if not isinstance(document, dict) or set(document) != {"version", "namespaces"}:
        raise ValueError("it must hold exactly `version` and `namespaces`")
    if document["version"] != _VERSION:
        raise ValueError(f"version {document['version']!r} is not {_VERSION}")
    namespaces = document["namespaces"]
    if not isinstance(namespaces, dict):
        raise ValueError("`namespaces` must be an object")
    for keys in namespaces.values():
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise ValueError("each namespace must have a list of keys")
    return namespaces


def _check_owner(path: Path, facts: os.stat_result) -> None:
    if facts.st_mode & 0o022 or facts.st_uid not in (os.geteuid(), 0):
        raise TrustError(
            "others may change whom you trust",
            field=str(path),
            value=f"owner {facts.st_uid}, mode {stat.S_IMODE(facts.st_mode):04o}",
            remedy=f"check its contents, then run `chmod 600 {path}` as its owner",
        )
