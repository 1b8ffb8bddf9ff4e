import copy
import pickle
from hashlib import sha256
from pathlib import Path

import pytest
from making_cores import (
    NAMESPACE,
    TOKENIZER,
    WEIGHTS,
    Parts,
    contract,
    manifest,
    program,
    read_everything,
    write_small,
)

from helios.contract.kinds import WeightStorage
from helios.contract.operation import Operation
from helios.core.body import ResourceKind
from helios.core.envelope import PAYLOAD_TYPE, seal
from helios.core.keys import SigningKey
from helios.core.reader import AuthenticatedCore, Core, authenticate, authorize, inspect
from helios.core.trust import TrustStore
from helios.errors import AcceptanceError, CoreError, SignatureError, TrustError
from helios.schema import core_pb2 as pb


def test_what_was_written_is_read(core_path: Path, trust: TrustStore, key: SigningKey) -> None:
    with authenticate(core_path, trust) as authenticated:
        assert authenticated.namespace == NAMESPACE
        assert authenticated.signer == key.public
        core = authorize(authenticated, NAMESPACE)
        assert core.contract == contract()
        assert core.manifest == manifest()
        assert core.body.provenance.source == "made by hand"
        assert core.programs() == (program(), program("prefill", Operation.PREFILL))
        assert core.resource("tokenizer") == TOKENIZER
        assert core.weights == ("embed", "norm", "tied", "rest")
        tensor = core.weight("norm")
        assert (tensor.name, tensor.storage, tensor.shape) == ("norm", WeightStorage.F32, (16,))
        assert tensor.nbytes == 64
        assert tensor.data == WEIGHTS[512:576]
        assert core.weight("tied").data == core.weight("embed").data


def test_names_that_are_not_there(core_path: Path, trust: TrustStore) -> None:
    core = authorize(authenticate(core_path, trust), NAMESPACE)
    with pytest.raises(CoreError, match="no such weight"):
        core.weight("norms")
    with pytest.raises(CoreError, match="no such resource"):
        core.resource("weight")
    with pytest.raises(CoreError, match=r"use weight\(\)"):
        core.resource("weights")


# ---- signature and acceptance ------------------------------------------------------------------


def test_two_decisions(core_path: Path, trust: TrustStore, tmp_path: Path) -> None:
    authenticated = authenticate(core_path, trust)
    with pytest.raises(AcceptanceError, match="published by acme/models"):
        authorize(authenticated, "acme")
    assert authorize(authenticated, NAMESPACE).namespace == NAMESPACE
    # Accepting changes nothing about who signed.
    with pytest.raises(SignatureError, match="none of the 0 trusted keys"):
        authenticate(core_path, TrustStore(tmp_path / "nobody"))


def test_a_wrong_key(core_path: Path, trust: TrustStore) -> None:
    write_small(core_path, SigningKey.generate())
    with pytest.raises(SignatureError, match="none of the 1 trusted keys signed"):
        authenticate(core_path, trust)


def test_a_revoked_key(core_path: Path, trust: TrustStore, key: SigningKey) -> None:
    authenticate(core_path, trust).close()
    trust.remove(NAMESPACE, key.public)
    with pytest.raises(SignatureError):
        authenticate(core_path, trust)


def test_a_key_of_another_namespace(core_path: Path, trust: TrustStore) -> None:
    other = SigningKey.generate()
    trust.add("acme", other.public)  # a namespace above lends nothing to those below
    write_small(core_path, other)
    with pytest.raises(SignatureError, match="not trusted for the namespace acme/models"):
        authenticate(core_path, trust)
    trust.add(NAMESPACE, other.public)
    assert authenticate(core_path, trust).signer == other.public


def test_any_key_of_the_namespace_will_do(core_path: Path, trust: TrustStore) -> None:
    new = SigningKey.generate()
    trust.add(NAMESPACE, SigningKey.generate().public)
    trust.add(NAMESPACE, new.public)
    write_small(core_path, new)
    assert authenticate(core_path, trust).signer == new.public


def test_one_good_signature_among_several(
    parts: Parts, core_path: Path, trust: TrustStore, key: SigningKey
) -> None:
    payload = parts.body.SerializeToString()
    parts.signatures = [
        *seal(payload, SigningKey.generate()).signatures,
        pb.Signature(key_id=key.id, signature=bytes(64)),
        *seal(payload, key).signatures,
    ]
    parts.signatures[2].key_id = "no hint at all"
    parts.write(core_path, key)
    assert authenticate(core_path, trust).signer == key.public


def test_the_signature_is_checked_before_the_payload_is_parsed(
    parts: Parts, core_path: Path, trust: TrustStore, key: SigningKey
) -> None:
    parts.payload = b"\xff this parses as nothing"
    parts.write(core_path, SigningKey.generate())
    with pytest.raises(SignatureError):
        authenticate(core_path, trust)
    parts.write(core_path, key)
    with pytest.raises(CoreError, match="body"):
        authenticate(core_path, trust)


def test_another_payload_type_is_refused_though_signed(
    parts: Parts, core_path: Path, trust: TrustStore, key: SigningKey
) -> None:
    parts.payload_type = PAYLOAD_TYPE.replace("core-body", "trust-root")
    parts.write(core_path, key)
    with pytest.raises(CoreError, match=r"envelope.payload_type: another kind"):
        authenticate(core_path, trust)


def test_the_signed_bytes_are_used_as_they_are(
    parts: Parts, core_path: Path, trust: TrustStore, key: SigningKey
) -> None:
    # Fields out of order and a field given twice: no serialiser writes this.
    plain = parts.body.SerializeToString()
    parts.payload = pb.CoreBody(format_version=7).SerializeToString() + plain[2:] + plain[:2]
    parts.write(core_path, key)
    core = authenticate(core_path, trust)
    assert core.body == parts.body
    assert core.digest == sha256(parts.payload).hexdigest()


# ---- sealed ------------------------------------------------------------------------------------


def test_cores_are_not_made_by_hand(core_path: Path, trust: TrustStore) -> None:
    core = authorize(authenticate(core_path, trust), NAMESPACE)
    for kind in (AuthenticatedCore, Core):
        with pytest.raises(TrustError, match=r"use authenticate\(\), then authorize\(\)"):
            kind(object(), core._opened)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            attempt(core)
    with pytest.raises(AttributeError):
        core.contract = contract()  # type: ignore[misc]
    with pytest.raises(AttributeError):
        core._opened = core._opened
    with pytest.raises(AttributeError):
        del core._opened


def test_messages_are_copies(core_path: Path, trust: TrustStore) -> None:
    authenticated = authenticate(core_path, trust)
    authenticated.body.publisher.namespace = "evil"
    with pytest.raises(AcceptanceError):
        authorize(authenticated, "evil")
    core = authorize(authenticated, NAMESPACE)
    core.contract.served_id = "evil"
    core.manifest.weights[0].offset = 512
    assert core.contract == contract()
    assert core.weight("embed").data == WEIGHTS[:512]


def test_authenticated_is_not_authorised(core_path: Path, trust: TrustStore) -> None:
    authenticated = authenticate(core_path, trust)
    for use in ("weight", "resource", "programs", "contract", "manifest", "verify_all"):
        assert not hasattr(authenticated, use)


# ---- whole-file checks -------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["audit", "verify_all"])
@pytest.mark.parametrize("mode", [0o644, 0o666])
def test_checking_everything(core_path: Path, trust: TrustStore, method: str, mode: int) -> None:
    core_path.chmod(mode)
    core = authorize(authenticate(core_path, trust), NAMESPACE)
    steps: list[tuple[int, int]] = []
    getattr(core, method)(lambda done, total: steps.append((done, total)))
    total = sum(facts.stored_nbytes for facts in core.resources)
    assert steps[-1] == (total, total)
    assert steps == sorted(steps)
    core.close()
    with pytest.raises(CoreError, match="closed"):
        getattr(core, method)()


@pytest.mark.parametrize("method", ["audit", "verify_all"])
def test_damage_anywhere_is_found(
    parts: Parts, core_path: Path, trust: TrustStore, key: SigningKey, method: str
) -> None:
    for name, stored in dict(parts.stored).items():
        parts.stored[name] = stored[:-1] + bytes([stored[-1] ^ 1])
        parts.write(core_path, key)
        core = authorize(authenticate(core_path, trust), NAMESPACE)
        with pytest.raises(CoreError, match=f"resource {name}: chunk 0"):
            getattr(core, method)()
        core.close()
        parts.stored[name] = stored


# ---- without trust -----------------------------------------------------------------------------


def test_inspect_needs_no_trust_and_gives_none(core_path: Path, key: SigningKey) -> None:
    found = inspect(core_path)
    assert type(found).__name__ == "UnverifiedCore"
    assert not isinstance(found, AuthenticatedCore)
    assert found.nbytes == core_path.stat().st_size
    assert found.key_ids == (key.id,)
    assert found.body.deployment.contract == contract()
    assert [r.kind for r in found.resources].count(ResourceKind.PROGRAM) == 2


def test_inspect_refuses_what_is_malformed(tmp_path: Path, parts: Parts, key: SigningKey) -> None:
    (tmp_path / "text").write_text("hello")
    with pytest.raises(CoreError, match="not a core"):
        inspect(tmp_path / "text")
    parts.body.format_version = 6
    parts.write(tmp_path / "six.core", key)
    with pytest.raises(CoreError, match="unsupported payload format"):
        inspect(tmp_path / "six.core")


def test_everything_is_read_the_same_twice(core_path: Path, trust: TrustStore) -> None:
    assert read_everything(core_path, trust) == read_everything(core_path, trust)
