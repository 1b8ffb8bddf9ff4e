"""The command line as a script meets it: output, JSON, status, and errors with a remedy."""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from helios import _native
from helios.cli.main import main
from helios.cli.models import _cache_path, weight_layout
from helios.core.keys import SigningKey
from helios.core.trust import TrustStore
from helios.ignition.options import PrepareOptions


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Outcome]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    monkeypatch.setenv("HELIOS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HELIOS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "300")
    for console in ("out", "err"):
        monkeypatch.setattr(f"helios.cli.console.{console}.width", 300)

    def call(*words: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["helios", *map(str, words)])
        capsys.readouterr()
        status = 0
        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return call


@pytest.fixture
def trusted_core(smollm2_path: Path, smollm2_home: Path, tmp_path: Path) -> Path:
    """A copy of the prepared core, whose publisher the `run` fixture's home trusts."""
    shutil.copytree(smollm2_home, tmp_path / "home")
    return Path(shutil.copy(smollm2_path, tmp_path / "model.core"))


def test_version_and_help(run: Run) -> None:
    assert run("--version").out.startswith("helios ")
    listed = run("--help").out
    for command in ("prepare", "plan", "serve", "chat", "inspect", "verify", "keys"):
        assert command in listed


def test_keys_are_made_trusted_and_distrusted(run: Run, tmp_path: Path) -> None:
    made = run("keys", "new", tmp_path / "acme.pem", "--json").json
    assert run("keys", "trust", "acme/models", made["public_key"]).status == 0
    assert run("keys", "list", "--json").json == {"acme/models": [made["public_key"]]}
    assert run("keys", "distrust", "acme/models", made["public_key"]).status == 0
    assert run("keys", "list", "--json").json == {}
    again = run("keys", "new", tmp_path / "acme.pem")
    assert again.status == 1
    assert "acme.pem" in again.err


def test_local_publisher_stays_the_same(run: Run) -> None:
    first = run("keys", "local", "--json").json
    assert first["namespace"] == f"local/{first['key_id']}"
    assert run("keys", "local", "--json").json == first


def test_prepare_inspect_verify(run: Run, smollm2_gguf: Path, tmp_path: Path) -> None:
    core = tmp_path / "small.core"
    options = ("--context", 256, "--concurrency", 2, "--served-id", "small", "--alias", "tiny")
    written = run("prepare", smollm2_gguf, "-o", core, *options, "--json").json
    assert written["nbytes"] == core.stat().st_size
    facts = run("inspect", core, "--json").json
    assert facts["contract"]["servedId"] == "small"
    assert facts["contract"]["aliases"] == ["tiny"]
    assert facts["contract"]["contextTokens"] == 256
    assert facts["contract"]["concurrency"] == 2
    assert facts["signature"].endswith("trusted")
    tables = run("inspect", core).out
    for word in ("small", "256 tokens", "q4_1", "prefill", "apache-2.0", "trusted"):
        assert word in tables
    assert "paged_attention" in run("inspect", core, "--program", "decode").out
    checked = run("verify", core, "--json").json
    assert checked["valid"] is True
    assert checked["digest"] == facts["digest"]


def test_a_core_signed_for_a_namespace(run: Run, smollm2_gguf: Path, tmp_path: Path) -> None:
    key = tmp_path / "acme.pem"
    made = run("keys", "new", key, "--json").json
    core = tmp_path / "acme.core"
    signing = ("--key", key, "--namespace", "acme/models")
    assert run("prepare", smollm2_gguf, "-o", core, *signing).status == 0
    refused = run("verify", core)
    assert refused.status == 1
    assert "helios keys trust" in refused.err or "trust" in refused.err
    run("keys", "trust", "acme/models", made["public_key"])
    assert run("verify", core).status == 0
    unaccepted = run("serve", core)
    assert unaccepted.status == 1
    assert "--accept acme/models" in unaccepted.err
    mistaken = run("serve", core, "--accept", "acme/other")
    assert mistaken.status == 1
    assert "acme/models" in mistaken.err


def test_a_flipped_bit_is_found(run: Run, trusted_core: Path) -> None:
    assert run("verify", trusted_core).status == 0
    with trusted_core.open("r+b") as file:
        file.seek(-1000, 2)
        byte = file.read(1)[0]
        file.seek(-1000, 2)
        file.write(bytes([byte ^ 1]))
    found = run("verify", trusted_core)
    assert found.status == 1
    assert "weights" in found.err


def test_a_removed_key_is_refused(run: Run, trusted_core: Path, tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "home")
    (namespace,) = store.namespaces()
    store.remove(namespace, SigningKey.load(tmp_path / "home/keys/local.pem").public)
    assert run("verify", trusted_core).status == 1
    assert run("serve", trusted_core).status == 1


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("serve", "no-such-model"), ["no-such-model", "smollm2"]),
        (("prepare", "/nowhere.gguf", "-o", "x.core"), ["/nowhere.gguf"]),
        (("prepare", "smollm2", "-o", "x.core", "--context", "999999"), ["context", "999999"]),
        (("prepare", "smollm2", "-o", "x.core", "--cache-dtype", "f8"), ["f8", "bf16"]),
        (("prepare", "smollm2", "-o", "x.core", "--key", "k.pem"), ["--namespace"]),
        (("serve", "smollm2", "--device", "abacus"), ["abacus", "reference"]),
        (("serve", "smollm2", "--memory", "lots"), ["lots"]),
        (("serve", "smollm2", "--memory", "100MiB"), ["memory"]),
        (("serve", "smollm2", "--context", "999999", "--memory", "700MiB"), ["context"]),
        (("verify", __file__), ["core"]),
        (("inspect", __file__), ["core"]),
        (("chat", "hello", "--url", "ftp://example"), ["--url"]),
        (("chat", "hello", "--url", "http://127.0.0.1:1"), ["helios serve"]),
    ],
)
def test_bad_input_ends_with_a_clear_error(
    run: Run, words: tuple[str, ...], names: list[str]
) -> None:
    outcome = run(*words)
    assert outcome.status == 1
    assert outcome.err.startswith("error:")
    for name in names:
        assert name in outcome.err


def test_a_failed_start_writes_its_report(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    assert run("serve", "smollm2", "--memory", "100MiB", "--report", path).status == 1
    failure = json.loads(path.read_text())["failure"]
    assert failure["remedy"]
    assert failure["phase"] == "plan"


def test_prepare_stores_tiles_if_it_is_asked_to(
    run: Run, smollm2_gguf: Path, tmp_path: Path
) -> None:
    core = tmp_path / "tiled.core"
    written = run("prepare", smollm2_gguf, "-o", core, "--layout", "cpu", "--json").json
    assert written["layout"] == "cpu"
    facts = run("inspect", core, "--json").json
    assert facts["layout"] == "cpu"
    stored = {weight["storage"] for weight in facts["manifest"]["weights"]}
    assert stored == {f"WEIGHT_STORAGE_{n}" for n in ("TILE16_W4G32", "TILE16_W8G32", "F32")}
    assert "tile16_w4g32" in run("inspect", core).out
    assert run("verify", core, "--json").json["valid"] is True
    plan = run("plan", core, "--memory", "1GiB", "--json").json["plan"]
    assert all(weight["mapped"] for weight in plan["weights"])
    refused = run("serve", core, "--device", "reference")
    assert refused.status == 1
    assert "--layout source" in refused.err


def test_an_unknown_layout_is_refused_by_name(run: Run, tmp_path: Path) -> None:
    refused = run("prepare", "smollm2", "-o", tmp_path / "x.core", "--layout", "gpu")
    assert refused.status == 1
    assert "--layout" in refused.err
    assert "cpu" in refused.err


def test_a_checkpoint_is_served_in_the_layout_of_its_device() -> None:
    assert weight_layout("cpu", approximate=False) == "cpu"
    assert weight_layout("cpu", approximate=True) == "source"
    assert weight_layout("reference", approximate=False) == "source"


def test_prepare_lists_the_syntaxes_it_knows_by_name(run: Run) -> None:
    listed = run("prepare", "--list-syntaxes")
    assert listed.status == 0
    assert "json-tags" in listed.out
    assert "bracket-think" in listed.out


def test_prepare_takes_a_syntax_or_its_opposite(run: Run, tmp_path: Path) -> None:
    words = ("prepare", "smollm2", "-o", tmp_path / "x.core", "--tool-syntax", "json-tags")
    both = run(*words, "--no-tool-syntax")
    assert both.status == 1
    assert "--no-tool-syntax" in both.err
    unknown = run("prepare", "smollm2", "-o", tmp_path / "x.core", "--reasoning-syntax", "loud")
    assert unknown.status == 1
    assert "bracket-think" in unknown.err


def test_prepare_takes_a_chat_template_from_a_file(run: Run, tmp_path: Path) -> None:
    words = ("prepare", "smollm2", "-o", tmp_path / "x.core", "--chat-template")
    missing = run(*words, tmp_path / "none.jinja")
    assert missing.status == 1
    assert "--chat-template" in missing.err
    (tmp_path / "broken.jinja").write_text("{% for m in messages %}")
    broken = run(*words, tmp_path / "broken.jinja")
    assert broken.status == 1
    assert "template" in broken.err


def test_a_cached_core_is_that_of_every_file_of_its_checkpoint(tmp_path: Path) -> None:
    def cached(source: Path) -> Path:
        return _cache_path(source, PrepareOptions(), "tests")

    first, second = (tmp_path / f"big[q4]-0000{n}-of-00002.gguf" for n in (1, 2))
    for path in (first, second):
        path.write_bytes(b"GGUF")
    before = cached(first)
    assert cached(first) == before
    second.write_bytes(b"GGUF.")
    assert cached(first) != before
    folder = tmp_path / "folder" / "additional_chat_templates"
    folder.mkdir(parents=True)
    before = cached(folder.parent)
    (folder / "tool_use.jinja").write_text("new")
    assert cached(folder.parent) != before


def test_doctor_says_what_there_is(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "one.core").write_bytes(bytes(2048))
    found = run("doctor", "--json")
    assert found.status == 0
    findings = {one["subject"]: one for one in found.json["findings"]}
    assert findings["instructions"]["found"].startswith(_native.isa())
    assert findings["processors"]["found"].startswith(str(_native.usable_processors()))
    assert findings["prepared"]["found"] == "1 core, 2.0 KiB"
    assert "limits" not in findings
    assert "not made yet" in run("doctor").out


def test_doctor_names_what_is_wrong(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HELIOS_ISA", "sparc")
    (tmp_path / "home").write_text("not a folder")
    found = run("doctor", "--json")
    assert found.status == 1
    bad = {one["subject"]: one for one in found.json["findings"] if one["state"] == "bad"}
    assert "sparc" in bad["instructions"]["found"]
    assert _native.build_info()["isas"][0] in bad["instructions"]["found"]
    assert "HELIOS_ISA" in bad["instructions"]["remedy"]
    assert "HELIOS_HOME" in bad["keys"]["remedy"]


def test_doctor_measures_when_asked(run: Run) -> None:
    findings = run("doctor", "--measure", "--json").json["findings"]
    assert "GB/s read" in next(one["found"] for one in findings if one["subject"] == "limits")
