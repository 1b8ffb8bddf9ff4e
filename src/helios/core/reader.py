"""Reading cores: authenticate, then authorise, then use.

`authenticate` reads the head and checks a signature over the exact payload bytes before it parses
them. `authorize` is the user's separate consent to the publisher. Both results are sealed: there
is no other way to make one, and nothing in one can be changed; messages they give are copies.
"""

import os
from hashlib import sha256
from types import TracebackType
from typing import Final, NoReturn, Self

from helios.contract.kinds import WeightStorage
from helios.core.body import BodyFacts, ResourceFacts, parse_body
from helios.core.chunks import Progress
from helios.core.envelope import parse_envelope, verify
from helios.core.files import CoreFolder
from helios.core.keys import PublicKey
from helios.core.layout import HEAD_NBYTES, Head, parse_head
from helios.core.locations import locate
from helios.core.store import CoreStore, PayloadStore
from helios.core.trust import TrustStore, check_acceptance
from helios.core.wire import parse
from helios.errors import CoreError, SignatureError, TrustError
from helios.program.ir import Program
from helios.program.wire import ProgramReader
from helios.records import dataclass
from helios.schema import contract_pb2, core_pb2, manifest_pb2, program_pb2

_SEAL: Final = object()


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A weight as it is stored; `shape` is logical, outermost first.

    `data` is verified and read-only, and stays valid while it is held, even past `close()`.
    """

    name: str
    storage: WeightStorage
    shape: tuple[int, ...]
    nbytes: int
    data: memoryview


@dataclass(frozen=True, slots=True)
class UnverifiedCore:
    """What a file says about itself. No signature was checked: show it, never act on it."""

    path: str
    nbytes: int
    key_ids: tuple[str, ...]
    digest: str
    body: core_pb2.CoreBody
    resources: tuple[ResourceFacts, ...]


@dataclass(frozen=True, slots=True)
class _Opened:
    """The authenticated bytes, what they say, who signed them, and the resources."""

    payload: bytes
    facts: BodyFacts
    signer: PublicKey
    store: CoreStore


class AuthenticatedCore:
    """A core that a key trusted for its namespace signed. Nobody has agreed to run it yet."""

    __slots__ = ("_opened",)
    _opened: _Opened

    def __init__(self, seal: object, opened: _Opened) -> None:
        if seal is not _SEAL:
            raise TrustError(
                f"{type(self).__name__} can't be made by hand",
                remedy="use authenticate(), then authorize()",
            )
        object.__setattr__(self, "_opened", opened)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is sealed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is sealed")

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} can't be copied or pickled; open the file again")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def namespace(self) -> str:
        """The signed publisher namespace: what an acceptance must equal."""
        return self._opened.facts.namespace

    @property
    def signer(self) -> PublicKey:
        """A key trusted for the namespace that signed the core."""
        return self._opened.signer

    @property
    def digest(self) -> str:
        """SHA-256 of the signed payload, in hex: the name of exactly this core."""
        return sha256(self._opened.payload).hexdigest()

    @property
    def body(self) -> core_pb2.CoreBody:
        """A copy of the signed body."""
        return core_pb2.CoreBody.FromString(self._opened.payload)

    @property
    def resources(self) -> tuple[ResourceFacts, ...]:
        """The signed facts of every resource, in order."""
        return tuple(self._opened.facts.resources.values())

    def audit(self, progress: Progress | None = None) -> None:
        """Check every stored byte without keeping any; `progress(bytes checked, in all)`."""
        self._opened.store.audit(progress)

    def close(self) -> None:
        """Release the files. Bytes already handed out stay valid; nothing more can be read."""
        self._opened.store.close()


class Core(AuthenticatedCore):
    """An authenticated core whose publisher was accepted: it may be used.

    It shares its files with the authenticated core it came from; closing either closes both.
    """

    __slots__ = ()

    @property
    def contract(self) -> contract_pb2.ServingContract:
        """A copy of the signed serving contract."""
        return self.body.deployment.contract

    @property
    def manifest(self) -> manifest_pb2.ExecutionManifest:
        """A copy of the signed execution manifest."""
        return self.body.deployment.manifest

    @property
    def weights(self) -> tuple[str, ...]:
        """The names of the stored tensors, in the manifest's order."""
        return tuple(self._opened.facts.weights)

    @property
    def mapped_nbytes(self) -> int:
        """Bytes of weights that are used from mapped files."""
        return self._opened.store.mapped_nbytes

    @property
    def copied_nbytes(self) -> int:
        """Bytes of weights that are used from private memory."""
        return self._opened.store.copied_nbytes

    @property
    def copy_reason(self) -> str:
        """Why weights are copied instead of mapped, or empty."""
        return self._opened.store.copy_reason

    def resource(self, name: str) -> bytes:
        """A whole resource other than weights, verified and decoded."""
        return self._opened.store.read(name)

    def programs(self) -> tuple[Program, ...]:
        """Every program of the manifest's two catalogs, serving programs first."""
        manifest = self.manifest
        reader = ProgramReader()
        entries = (*manifest.programs, *manifest.tuning)
        return tuple(reader.read(self._program(entry)) for entry in entries)

    def weight(self, name: str) -> StoredTensor:
        """A stored tensor; the chunks it lies in are checked before the first use of each."""
        facts = self._opened.facts.weights.get(name)
        if facts is None:
            raise CoreError("this core has no such weight", field="weight", value=name)
        data = self._opened.store.view(facts.resource, facts.offset, facts.nbytes)
        return StoredTensor(facts.name, facts.storage, facts.shape, facts.nbytes, data)

    def verify_all(self, progress: Progress | None = None) -> None:
        """Check every stored byte, in parallel; no weight is checked again afterwards.

        `progress(bytes checked, bytes in all)` is called from this thread.
        """
        self._opened.store.verify(progress)

    def verify_ahead(self) -> None:
        """Start checking weights in threads; whoever needs a chunk first waits for it.

        Only tiles, which are used where they lie: what is repacked would be resident twice. What
        is found wrong is told by whatever uses it. `close` ends it.
        """
        if any(weight.storage.tile_rows > 1 for weight in self._opened.facts.weights.values()):
            self._opened.store.verify_ahead()

    def _program(self, entry: manifest_pb2.ProgramDescriptor) -> program_pb2.Program:
        field = f"resource {entry.resource}"
        message = parse(program_pb2.Program, self.resource(entry.resource), field=field)
        for part in ("name", "operation"):
            if getattr(message, part) != getattr(entry, part):
                raise CoreError(
                    f"the program's {part} differs from the manifest's, {getattr(entry, part)!r}",
                    field=field,
                    value=getattr(message, part),
                    remedy="prepare the core again",
                )
        return message


def authenticate(path: str | os.PathLike[str], trust: TrustStore) -> AuthenticatedCore:
    """The core at `path`, if a key that `trust` holds for its namespace signed it.

    `SignatureError` if not; `CoreError` if the file is not a well-formed core. Reads the head
    alone: resources are checked when they are used.
    """
    folder = CoreFolder(path)
    try:
        head, envelope = _read_envelope(folder)
        trusted = trust.entries()
        signers = verify(envelope, (key for keys in trusted.values() for key in keys))
        _, facts = parse_body(envelope.payload)
        signer = _entitled(signers, trusted.get(facts.namespace, ()), facts.namespace)
        locations = folder.core.read(head.locations_offset, head.locations_nbytes)
        placed = locate(locations, facts.resources, folder, head.end)
        folder.settle()
        store = PayloadStore(folder, placed)
        return AuthenticatedCore(_SEAL, _Opened(envelope.payload, facts, signer, store))
    except BaseException:
        folder.close()
        raise


def authorize(core: AuthenticatedCore, acceptance: str) -> Core:
    """The core for use, if `acceptance` is exactly its publisher namespace."""
    check_acceptance(core.namespace, acceptance)
    return Core(_SEAL, core._opened)


def inspect(path: str | os.PathLike[str]) -> UnverifiedCore:
    """What the file at `path` claims, without any trust: metadata to look at and nothing else."""
    folder = CoreFolder(path)
    try:
        _, envelope = _read_envelope(folder)
        body, facts = parse_body(envelope.payload)
        return UnverifiedCore(
            path=os.fspath(path),
            nbytes=folder.core.nbytes,
            key_ids=tuple(entry.key_id for entry in envelope.signatures),
            digest=sha256(envelope.payload).hexdigest(),
            body=body,
            resources=tuple(facts.resources.values()),
        )
    finally:
        folder.close()


def _read_envelope(folder: CoreFolder) -> tuple[Head, core_pb2.Envelope]:
    file = folder.core
    head = parse_head(file.read(0, min(HEAD_NBYTES, file.nbytes)), file.nbytes)
    return head, parse_envelope(file.read(HEAD_NBYTES, head.envelope_nbytes))


def _entitled(
    signers: tuple[PublicKey, ...], trusted: tuple[PublicKey, ...], namespace: str
) -> PublicKey:
    for key in signers:
        if key in trusted:
            return key
    raise SignatureError(
        f"signed by a key that is not trusted for the namespace {namespace}",
        field="envelope.signatures",
        value=", ".join(key.id for key in signers),
        remedy="do not use this core unless its publisher confirms the key for this namespace",
    )
