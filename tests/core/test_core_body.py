"""Bodies that are signed and wrong."""

from collections.abc import Callable
from pathlib import Path

import pytest
from making_cores import NAMESPACE, Parts, commit, program

from helios.contract.operation import Operation
from helios.core import body as body_module
from helios.core import frames
from helios.core.body import parse_body
from helios.core.keys import SigningKey
from helios.core.reader import authenticate, authorize
from helios.core.trust import TrustStore
from helios.errors import CoreError, HeliosError, ProgramError
from helios.program.wire import program_to_bytes
from helios.schema import core_pb2 as pb

PROGRAM, TOKENIZER, TEMPLATE, WEIGHTS = 0, 2, 3, 4


def edit(**changes: object) -> Callable[[pb.CoreBody], None]:
    """Set fields by path: `resources__0__id="x"`; None clears."""

    def apply(body: pb.CoreBody) -> None:
        for path, value in changes.items():
            *steps, last = path.split("__")
            target: object = body
            for step in steps:
                target = target[int(step)] if step.isdigit() else getattr(target, step)  # type: ignore[index]
            if value is None:
                target.ClearField(last)  # type: ignore[attr-defined]
            elif isinstance(value, list):
                getattr(target, last)[:] = value
            else:
                setattr(target, last, value)

    return apply


def too_many_resources(body: pb.CoreBody) -> None:
    body.resources.extend(pb.Resource() for _ in range(body_module.MAX_RESOURCES))


CASES: list[tuple[Callable[[pb.CoreBody], None], str]] = [
    (edit(format_version=None), r"body.format_version: unsupported payload format \(got 0"),
    (edit(format_version=1), r"body.format_version: unsupported payload format \(got 1"),
    (edit(format_version=6), r"body.format_version: .*\(got 6\); this Helios reads .* 3"),
    (edit(publisher=None), "body.publisher: is missing"),
    (edit(deployment=None), "body.deployment: is missing"),
    (edit(deployment__contract=None), "body.deployment.contract: is missing"),
    (edit(deployment__manifest=None), "body.deployment.manifest: is missing"),
    (edit(publisher__namespace="../acme"), "body.publisher.namespace: is not a publisher"),
    (edit(publisher__namespace=""), "body.publisher.namespace"),
    (too_many_resources, r"body.resources: a core has at most 16384 resources \(got 16390"),
    (edit(resources__2__id=""), r"body.resources\[2\].id: is not a resource id \(got ''"),
    (edit(resources__2__id="x" * 256), r"body.resources\[2\].id: is not a resource id"),
    (edit(resources__2__id="a\nb"), r"body.resources\[2\].id: is not a resource id"),
    (edit(resources__3__id="tokenizer"), r"resources\[3\].id: is used twice \(got 'tokenizer'"),
    (edit(resources__2__index=3), r"resources\[2\].index: must be its place, 2 \(got 3"),
    (edit(resources__2__index=None), r"resources\[2\].index"),
    (edit(resources__2__kind=0), r"resources\[2\].kind: is not a kind .* \(got 0"),
    (edit(resources__2__kind=99), r"resources\[2\].kind: is not a kind .* \(got 99"),
    (edit(resources__2__kind=-1), r"resources\[2\].kind: is not a kind .* \(got -1"),
    (edit(resources__2__stored__encoding=0), r"stored.encoding: must be RAW .*\(got 0"),
    (edit(resources__2__stored__encoding=7), r"stored.encoding: must be RAW .*\(got 7"),
    (edit(resources__2__stored__encoding=2), r"stored.encoding: must be RAW for kind TOKENIZER"),
    (edit(resources__0__stored__encoding=1), r"stored.encoding: must be ZSTD for kind PROGRAM"),
    (edit(resources__4__stored__encoding=2), r"stored.encoding: must be RAW for kind WEIGHTS"),
    (edit(resources__2__stored__nbytes=0), r"stored.nbytes: must not be zero"),
    (edit(resources__2__stored=None), r"resources\[2\].stored"),
    (edit(resources__2__decoded_nbytes=17), r"decoded_nbytes: must equal the stored length, 18"),
    (edit(resources__0__decoded_nbytes=0), r"decoded_nbytes: an executable has 1 to"),
    (edit(resources__0__decoded_nbytes=1 << 62), r"decoded_nbytes: an executable has 1 to"),
    (
        edit(resources__0__stored__nbytes=frames.MAX_FRAME_NBYTES + 1),
        r"resources\[0\].stored.nbytes: a frame has at most",
    ),
    (edit(resources__2__chunk_nbytes=0), r"chunk_nbytes: must be 4194304 \(got 0"),
    (edit(resources__2__chunk_nbytes=1), r"chunk_nbytes: must be 4194304"),
    (edit(resources__2__chunk_sha256=[]), r"chunk_sha256: 18 stored bytes have 1 chunks \(got 0"),
    (edit(resources__2__chunk_sha256=[bytes(32)] * 2), r"have 1 chunks \(got 2"),
    (edit(resources__2__chunk_sha256=[bytes(31)]), r"a SHA-256 has 32 bytes \(got 31"),
    (
        edit(resources__4__stored__nbytes=1 << 63, resources__4__decoded_nbytes=1 << 63),
        r"stored bytes have 2199023255552 chunks \(got 1",
    ),
    (edit(deployment__manifest__weights__1__name=""), r"weights\[1\].name: must not be empty"),
    (edit(deployment__manifest__weights__1__name="embed"), r"weights\[1\].name: is used twice"),
    (edit(deployment__manifest__weights__1__storage=0), r"weights\[1\].storage: .*\(got 0"),
    (edit(deployment__manifest__weights__1__storage=99), r"weights\[1\].storage: .*\(got 99"),
    (
        edit(deployment__manifest__weights__1__resource="tokenizer"),
        r"weights\[1\].resource: names no resource of kind WEIGHTS \(got 'tokenizer'",
    ),
    (edit(deployment__manifest__weights__1__resource="w"), r"weights\[1\].resource: names no"),
    (edit(deployment__manifest__weights__1__nbytes=0), r"weights\[1\].nbytes: must not be zero"),
    (
        edit(deployment__manifest__weights__1__offset=1217),
        r"weights\[1\]: reaches past the 1280 bytes of resource weights \(got 1281",
    ),
    (edit(deployment__manifest__weights__1__offset=(1 << 64) - 64), r"weights\[1\]: reaches past"),
    (edit(deployment__manifest__weights__1__nbytes=(1 << 64) - 1), r"weights\[1\]: reaches past"),
    (
        edit(deployment__manifest__programs__0__resource="weights"),
        r"manifest.programs\[0\].resource: names no resource of kind PROGRAM",
    ),
    (
        edit(deployment__contract__model__graphs__0__resources=["no"]),
        r"contract.model.graphs\[0\].resources: names no resource of kind PROGRAM",
    ),
    (
        edit(deployment__contract__model__frontend__tokenizer_resource="template"),
        r"frontend.tokenizer_resource: names no resource of kind TOKENIZER",
    ),
    (
        edit(deployment__contract__model__frontend__template_resource="no"),
        r"frontend.template_resource: names no resource of kind TEMPLATE",
    ),
]


@pytest.mark.parametrize(("change", "message"), CASES)
def test_each_wrong_fact_has_its_own_error(
    parts: Parts, change: Callable[[pb.CoreBody], None], message: str
) -> None:
    parse_body(parts.body.SerializeToString())
    change(parts.body)
    with pytest.raises(HeliosError, match=message):
        parse_body(parts.body.SerializeToString())


def test_the_same_refusals_meet_a_signed_core(
    parts: Parts, core_path: Path, key: SigningKey, trust: TrustStore
) -> None:
    edit(resources__2__kind=99)(parts.body)
    parts.write(core_path, key)
    with pytest.raises(CoreError, match="is not a kind"):
        authenticate(core_path, trust)


def test_facts(parts: Parts) -> None:
    _, facts = parse_body(parts.body.SerializeToString())
    assert facts.namespace == NAMESPACE
    assert list(facts.resources) == [r.id for r in parts.body.resources]
    assert facts.resources["tokenizer"].media_type == "text/json"
    assert facts.weights["norm"].offset == 512
    assert facts.weights["tied"].offset == facts.weights["embed"].offset


@pytest.mark.parametrize("payload", [b"", b"\xff", b"\x0a\x05abc", bytes(100)])
def test_payloads_that_are_no_body(
    parts: Parts, core_path: Path, key: SigningKey, trust: TrustStore, payload: bytes
) -> None:
    parts.payload = payload
    if not payload:
        parts.envelope_suffix = b"\x12\x00"  # an empty payload, stated
    parts.write(core_path, key)
    with pytest.raises(CoreError):
        authenticate(core_path, trust)


# ---- programs ----------------------------------------------------------------------------------


def replace_program(parts: Parts, frame: bytes, decoded_nbytes: int) -> None:
    parts.stored["program/decode"] = frame
    parts.body.resources[PROGRAM].decoded_nbytes = decoded_nbytes
    commit(parts.body, parts.stored)
    for entry in parts.locations.locations:
        entry.nbytes = len(parts.stored[entry.resource])


OTHER = program_to_bytes(program("other"))
WRONG_OPERATION = program_to_bytes(program("decode", Operation.MIXED))
GOOD = program_to_bytes(program())


@pytest.mark.parametrize(
    ("frame", "nbytes", "error", "message"),
    [
        (frames.encode(GOOD, field=""), len(GOOD) - 1, CoreError, "content size"),
        (frames.encode(GOOD, field="") + b"x", len(GOOD), CoreError, "not one whole zstd frame"),
        (frames.encode(GOOD, field="")[:-1], len(GOOD), CoreError, "not one whole zstd frame"),
        (GOOD, len(GOOD), CoreError, "does not start with a zstd frame"),
        (frames.encode(OTHER, field=""), len(OTHER), CoreError, "name differs .*'decode'"),
        (
            frames.encode(WRONG_OPERATION, field=""),
            len(WRONG_OPERATION),
            CoreError,
            "operation differs",
        ),
        (frames.encode(b"\xff" * 9, field=""), 9, CoreError, "program/decode"),
        (
            frames.encode(GOOD + b"\xc0\x3e\x01", field=""),
            len(GOOD) + 3,
            ProgramError,
            "unknown field",
        ),
    ],
)
def test_signed_programs_that_are_wrong(
    parts: Parts,
    core_path: Path,
    key: SigningKey,
    trust: TrustStore,
    frame: bytes,
    nbytes: int,
    error: type[HeliosError],
    message: str,
) -> None:
    replace_program(parts, frame, nbytes)
    parts.write(core_path, key)
    with (
        authorize(authenticate(core_path, trust), NAMESPACE) as core,
        pytest.raises(error, match=message),
    ):
        core.programs()
