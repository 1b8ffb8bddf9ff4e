"""Small cores, good and bad, for the tests of this folder."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from helios.contract.operation import Operation
from helios.core.body import ResourceKind
from helios.core.envelope import PAYLOAD_TYPE, pre_authentication_encoding
from helios.core.keys import SigningKey
from helios.core.layout import HEAD_NBYTES, MAGIC, PAGE_NBYTES, parse_head
from helios.core.reader import Core, authenticate, authorize
from helios.core.trust import TrustStore
from helios.core.writer import CoreSummary, ResourceInput, write_core
from helios.program.builder import ProgramBuilder
from helios.program.ir import DType, ExtentKind, Program
from helios.program.wire import program_to_bytes
from helios.schema import contract_pb2, core_pb2, manifest_pb2

NAMESPACE = "acme/models"
WEIGHTS = bytes(range(256)) * 5
TOKENIZER = b'{"version": "1.0"}'


def program(name: str = "decode", operation: Operation = Operation.DECODE) -> Program:
    builder = ProgramBuilder(name, operation)
    rows = builder.extent("B", ExtentKind.DYNAMIC, 2)
    tokens = builder.transport("tokens", DType.I32, (rows,))
    value = builder.value("embedding", tokens, builder.weight("embed", (8, 16)))
    value = builder.value("rms_norm", value, builder.weight("norm", (16,)), epsilon=1e-5)
    builder.op("store", value, builder.completion("out", DType.F32, (rows, 16)))
    return builder.build()


def contract() -> contract_pb2.ServingContract:
    made = contract_pb2.ServingContract(served_id="tiny", context_tokens=32)
    made.model.frontend.tokenizer_resource = "tokenizer"
    made.model.frontend.template_resource = "template"
    made.model.graphs.add(program="decode", resources=["program/decode"])
    return made


def manifest() -> manifest_pb2.ExecutionManifest:
    made = manifest_pb2.ExecutionManifest(abi=1)
    for name, operation in (("decode", Operation.DECODE), ("prefill", Operation.PREFILL)):
        made.programs.add(name=name, operation=operation.value, resource=f"program/{name}")
    for name, shape, offset, nbytes in (
        ("embed", (8, 16), 0, 512),
        ("norm", (16,), 512, 64),
        ("tied", (8, 16), 0, 512),  # shares its bytes with embed
        ("rest", (16, 11), 576, 704),
    ):
        made.weights.add(
            name=name,
            storage=manifest_pb2.WEIGHT_STORAGE_F32,
            shape=shape,
            resource="weights",
            offset=offset,
            nbytes=nbytes,
        )
    return made


def resources() -> list[ResourceInput]:
    def pieces() -> Iterator[bytes]:
        yield from (WEIGHTS[:7], WEIGHTS[7:1000], WEIGHTS[1000:])

    prefill = program("prefill", Operation.PREFILL)
    return [
        ResourceInput("program/decode", ResourceKind.PROGRAM, data=program_to_bytes(program())),
        ResourceInput("program/prefill", ResourceKind.PROGRAM, data=program_to_bytes(prefill)),
        ResourceInput("tokenizer", ResourceKind.TOKENIZER, TOKENIZER, None, None, "text/json"),
        ResourceInput("template", ResourceKind.TEMPLATE, data=b"{{ messages }}"),
        ResourceInput("weights", ResourceKind.WEIGHTS, chunks=pieces, nbytes=len(WEIGHTS)),
        ResourceInput("license", ResourceKind.LICENSE, data=b"Apache-2.0"),
    ]


def write_small(path: Path, key: SigningKey, **changes: object) -> CoreSummary:
    arguments = {
        "publisher": core_pb2.Publisher(namespace=NAMESPACE, name="Acme", license="Apache-2.0"),
        "contract": contract(),
        "manifest": manifest(),
        "resources": resources(),
        "provenance": core_pb2.Provenance(source="made by hand"),
        "key": key,
        **changes,
    }
    return write_core(path, **arguments)  # type: ignore[arg-type]


def read_everything(path: Path, trust: TrustStore) -> dict[str, object]:
    """All that a core gives; weights are checked lazily, so they must be asked for."""
    with authenticate(path, trust) as authenticated:
        core = authorize(authenticated, authenticated.namespace)
        return contents(core)


def contents(core: Core) -> dict[str, object]:
    found: dict[str, object] = {
        "contract": core.contract.SerializeToString(),
        "manifest": core.manifest.SerializeToString(),
        "programs": core.programs(),
    }
    for facts in core.resources:
        if facts.kind is not ResourceKind.WEIGHTS:
            found[facts.id] = core.resource(facts.id)
    for name in core.weights:
        tensor = core.weight(name)
        found[f"weight {name}"] = (tensor.storage, tensor.shape, bytes(tensor.data))
    core.verify_all()
    return found


@dataclass
class Parts:
    """A core taken apart, to be put together wrongly."""

    body: core_pb2.CoreBody
    stored: dict[str, bytes]
    locations: core_pb2.LocationSet
    magic: bytes = MAGIC
    version: int = 1
    payload_type: str = PAYLOAD_TYPE
    payload: bytes | None = None
    key_id: str | None = None
    signatures: list[core_pb2.Signature] | None = None
    envelope_suffix: bytes = b""
    locations_suffix: bytes = b""
    padding: bytes = b""
    trailing: bytes = b""
    lengths: tuple[int, int] | None = None

    def write(self, path: Path, key: SigningKey) -> Path:
        envelope = self._envelope(key)
        locations = self._place(len(envelope))
        lengths = self.lengths or (len(envelope), len(locations))
        head = self.magic + b"".join(n.to_bytes(4, "little") for n in (self.version, *lengths))
        data = bytearray(head + envelope + locations + self.padding)
        for entry in self.locations.locations:
            stored = self.stored[entry.resource]
            if entry.file:
                continue
            data.extend(bytes(max(0, entry.offset - len(data))))
            data[entry.offset : entry.offset + len(stored)] = stored
        path.write_bytes(bytes(data) + self.trailing)
        path.chmod(0o644)
        return path

    def _envelope(self, key: SigningKey) -> bytes:
        payload = self.payload if self.payload is not None else self.body.SerializeToString()
        signature = key.sign(pre_authentication_encoding(self.payload_type, payload))
        signatures = [core_pb2.Signature(key_id=self.key_id or key.id, signature=signature)]
        if self.signatures is not None:
            signatures = self.signatures
        envelope = core_pb2.Envelope(
            payload_type=self.payload_type, payload=payload, signatures=signatures
        )
        return envelope.SerializeToString() + self.envelope_suffix

    def _place(self, envelope_nbytes: int) -> bytes:
        """Keep the locations' distances, and start after the head."""
        own = [entry for entry in self.locations.locations if not entry.file]
        first = min((entry.offset for entry in own), default=0)
        least = HEAD_NBYTES + envelope_nbytes + self.locations.ByteSize() + len(self.padding)
        shift = -(-(least + 16) // PAGE_NBYTES) * PAGE_NBYTES - first
        for entry in own:
            entry.offset += shift
        return self.locations.SerializeToString() + self.locations_suffix


def take_apart(path: Path) -> Parts:
    data = path.read_bytes()
    head = parse_head(data[:HEAD_NBYTES], len(data))
    envelope = core_pb2.Envelope.FromString(data[HEAD_NBYTES : head.locations_offset])
    locations = core_pb2.LocationSet.FromString(data[head.locations_offset : head.end])
    stored = {e.resource: data[e.offset : e.offset + e.nbytes] for e in locations.locations}
    return Parts(core_pb2.CoreBody.FromString(envelope.payload), stored, locations)


def commit(body: core_pb2.CoreBody, stored: dict[str, bytes]) -> None:
    """Make the signed facts true of the stored bytes (each below one chunk)."""
    for resource in body.resources:
        resource.stored.nbytes = len(stored[resource.id])
        resource.chunk_sha256[:] = [sha256(stored[resource.id]).digest()]
