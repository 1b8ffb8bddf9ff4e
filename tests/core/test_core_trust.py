import errno
import json
import os
import stat
from pathlib import Path

import pytest

from helios.core.keys import SigningKey
from helios.core.trust import (
    TrustStore,
    check_acceptance,
    check_namespace,
    helios_home,
    local_publisher,
)
from helios.errors import AcceptanceError, TrustError

A, B = SigningKey.generate().public, SigningKey.generate().public


def test_keys_are_added_to_and_removed_from_a_namespace(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "home")
    assert store.namespaces() == ()
    assert store.keys("acme") == ()
    store.add("acme", A)
    store.add("acme", B)
    store.add("acme", A)
    store.add("beta/models", A)
    again = TrustStore(tmp_path / "home")
    assert again.namespaces() == ("acme", "beta/models")
    assert again.keys("acme") == (A, B)
    again.remove("acme", A)
    assert store.keys("acme") == (B,)
    assert store.keys("beta/models") == (A,)
    again.remove("beta/models", A)
    assert store.namespaces() == ("acme",)


def test_removing_what_is_not_trusted(tmp_path: Path) -> None:
    store = TrustStore(tmp_path)
    store.add("acme", A)
    for namespace, key in (("acme", B), ("other", A)):
        with pytest.raises(TrustError, match="is not trusted for"):
            store.remove(namespace, key)
    assert store.keys("acme") == (A,)


def test_the_folder_and_file_are_private(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "deep" / "home")
    store.add("acme", A)
    assert stat.S_IMODE(store.home.stat().st_mode) == 0o700
    assert stat.S_IMODE((store.home / "trust.json").stat().st_mode) == 0o600
    assert sorted(p.name for p in store.home.iterdir()) == [".lock", "trust.json"]


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_store_that_others_may_change_is_refused(tmp_path: Path, mode: int) -> None:
    store = TrustStore(tmp_path)
    store.add("acme", A)
    (tmp_path / "trust.json").chmod(mode)
    with pytest.raises(TrustError, match="others may change"):
        store.keys("acme")


GOOD = {"version": 1, "namespaces": {"acme": [A.text]}}


@pytest.mark.parametrize(
    "document",
    [
        "",
        "[]",
        "{",
        "\x00",
        "[" * 100_000,
        json.dumps({**GOOD, "version": 2}),
        json.dumps({**GOOD, "more": 1}),
        json.dumps({"namespaces": {}}),
        json.dumps({**GOOD, "namespaces": []}),
        json.dumps({**GOOD, "namespaces": {"acme": A.text}}),
        json.dumps({**GOOD, "namespaces": {"acme": [1]}}),
        json.dumps({**GOOD, "namespaces": {"acme": ["ab"]}}),
        json.dumps({**GOOD, "namespaces": {"../acme": [A.text]}}),
    ],
)
def test_malformed_stores_are_refused_as_a_whole(tmp_path: Path, document: str) -> None:
    path = tmp_path / "trust.json"
    path.write_text(document)
    path.chmod(0o600)
    with pytest.raises(TrustError):
        TrustStore(tmp_path).entries()
    with pytest.raises(TrustError):
        TrustStore(tmp_path).add("beta", B)
    assert path.read_text() == document


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrustError, match="HELIOS_HOME"):
        TrustStore(tmp_path / "file" / "home").add("acme", A)


@pytest.mark.parametrize("name", ["acme", "Acme/Models-2.1", "local/0123456789abcdef", "a/b_c/d"])
def test_namespaces(name: str) -> None:
    assert check_namespace(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "/acme", "acme/", "a//b", ".", "../a", "a/..", "a b", "a\n", "-a", "a-", "é", "a" * 201],
)
def test_what_is_no_namespace(name: str) -> None:
    with pytest.raises(TrustError, match="not a publisher namespace"):
        check_namespace(name)


@pytest.mark.parametrize(
    "acceptance", ["", "acme", "acme/model", "acme/models ", "Acme/models", "acme/models/x", "*"]
)
def test_an_acceptance_must_be_equal(acceptance: str) -> None:
    check_acceptance("acme/models", "acme/models")
    with pytest.raises(AcceptanceError, match="accept exactly 'acme/models'"):
        check_acceptance("acme/models", acceptance)


def test_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HELIOS_HOME", str(tmp_path / "elsewhere"))
    assert helios_home() == tmp_path / "elsewhere"
    assert TrustStore().home == tmp_path / "elsewhere"
    monkeypatch.delenv("HELIOS_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert helios_home() == tmp_path / ".config" / "helios"


def test_the_local_publisher_is_made_once_and_trusted(tmp_path: Path) -> None:
    home = tmp_path / "home"
    namespace, key = local_publisher(home)
    assert namespace == f"local/{key.id}"
    assert TrustStore(home).keys(namespace) == (key.public,)
    again, same = local_publisher(home)
    assert (again, same.public) == (namespace, key.public)
    assert stat.S_IMODE((home / "keys" / "local.pem").stat().st_mode) == 0o600
    other, _ = local_publisher(tmp_path / "other")
    assert other != namespace


def test_a_revoked_local_publisher_stays_revoked(tmp_path: Path) -> None:
    namespace, key = local_publisher(tmp_path)
    TrustStore(tmp_path).remove(namespace, key.public)
    assert local_publisher(tmp_path)[0] == namespace
    assert TrustStore(tmp_path).keys(namespace) == ()


def test_a_local_key_that_appears_meanwhile_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = SigningKey.generate()
    add = TrustStore.add

    def slow_add(store: TrustStore, namespace: str, key: object) -> None:
        add(store, namespace, key)  # type: ignore[arg-type]
        os.makedirs(tmp_path / "keys", exist_ok=True)
        first.save(tmp_path / "keys" / "local.pem")  # another process

    monkeypatch.setattr(TrustStore, "add", slow_add)
    namespace, key = local_publisher(tmp_path)
    assert key.public == first.public
    assert namespace == f"local/{first.id}"
    assert TrustStore(tmp_path).namespaces() == ()  # ours was taken back


def test_a_failed_change_leaves_the_store_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = TrustStore(tmp_path)
    store.add("acme", A)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(TrustError, match="No space left"):
            store.add("acme", B)
    assert store.keys("acme") == (A,)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".lock", "trust.json"]


def test_a_store_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "trust.json").mkdir(mode=0o700)
    with pytest.raises(TrustError, match="can't be read"):
        TrustStore(tmp_path).entries()
