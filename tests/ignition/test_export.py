"""From a checkpoint to a signed core and back."""

import json
from hashlib import sha256
from pathlib import Path

import gguf
import numpy as np
import pytest
from tiny_gguf import METADATA, TEMPLATE, tensors, write_gguf

from helios.contract.operation import Operation
from helios.contract.prepare import prepare_contract
from helios.core.keys import SigningKey
from helios.core.reader import authenticate, authorize
from helios.core.trust import TrustStore
from helios.errors import ConfigurationError, SourceError
from helios.ignition.export import assemble, prepare, served_name
from helios.ignition.options import PrepareOptions
from helios.ignition.preparation.tool_prompt import with_tools
from helios.ignition.preparation.tuning import catalogued
from helios.ignition.sources.open import open_source
from helios.program.agreement import check_programs
from helios.program.ir import DType

Q = gguf.GGMLQuantizationType


def test_the_same_source_and_options_give_the_same_bytes(tmp_path: Path) -> None:
    source, key = write_gguf(tmp_path / "tiny.gguf"), SigningKey.generate()
    seen: list[tuple[int, int]] = []
    for name in ("one.core", "two.core"):
        prepare(
            source,
            tmp_path / name,
            PrepareOptions(),
            key=key,
            namespace="tests/tiny",
            progress=lambda done, total: seen.append((done, total)),
        )
    assert (tmp_path / "one.core").read_bytes() == (tmp_path / "two.core").read_bytes()
    assert seen[-1][0] == seen[-1][1] > 0


@pytest.mark.parametrize("storage", [Q.F32, Q.F16, Q.BF16, Q.Q4_0, Q.Q4_1, Q.Q8_0])
def test_weights_are_stored_as_the_source_has_them(
    tmp_path: Path, storage: gguf.GGMLQuantizationType
) -> None:
    source = open_source(write_gguf(tmp_path / "tiny.gguf", storage=storage))
    deployment = assemble(source, PrepareOptions())
    resource = b"".join(deployment.weights.chunks())
    assert len(resource) == deployment.weights.nbytes
    catalog = {w.name: w for w in deployment.manifest.weights}
    assert all(w.offset % 64 == 0 for w in catalog.values())
    query = catalog["layers.1.attention.query"]
    stored = resource[query.offset : query.offset + query.nbytes]
    assert stored == bytes(source.tensors["blk.1.attn_q.weight"].data())
    assert list(query.shape) == [64, 64]
    used = {w.name for g in deployment.graphs for w in g.program.weights()}
    assert used == set(catalog)


def test_the_contract_states_what_was_asked_for(tmp_path: Path) -> None:
    source = open_source(write_gguf(tmp_path / "Tiny Llama.gguf"))
    options = PrepareOptions(
        context=100,
        concurrency=3,
        prefill_tokens=20,
        scored_tokens=10,
        page_tokens=16,
        cache_dtype="bf16",
        aliases=("tiny",),
    )
    deployment = assemble(source, options)
    contract = prepare_contract(deployment.contract, deployment.manifest)
    assert contract.served_id == "Tiny-Llama"
    assert contract.aliases == ("tiny",)
    assert contract.context_tokens == 100
    assert contract.vocabulary == contract.input_vocabulary == len(tensors()["token_embd.weight"])
    assert contract.concurrency == contract.request_slots == 3
    assert contract.cache.page_tokens == 16
    assert {b.type.dtype for b in contract.buffers.values() if b.name.startswith("cache")} == {
        DType.BF16
    }
    capacities = {g.operation: (g.rows, g.tokens, g.width) for g in contract.graphs}
    assert capacities == {
        Operation.INITIALIZE: (3, 0, 0),
        Operation.RESUME: (3, 0, 0),
        Operation.RESTORE: (3, 0, 0),
        Operation.PREFILL: (3, 20, 20),
        Operation.SCORED_PREFILL: (3, 10, 10),
        Operation.DECODE: (3, 3, 1),
        Operation.MIXED: (3, 22, 20),
    }
    table = contract.transport["page_table"]
    assert table.retained
    assert table.type.shape == ("R", 7)


def test_the_context_is_the_models_unless_less_is_asked_for(tmp_path: Path) -> None:
    source = open_source(write_gguf(tmp_path / "tiny.gguf"))
    deployment = assemble(source, PrepareOptions())
    assert deployment.contract.context_tokens == 128
    assert deployment.contract.prefill_tokens == 128


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("context", 129),
        ("context", 0),
        ("concurrency", 0),
        ("concurrency", 100_000),
        ("prefill_tokens", 129),
        ("scored_tokens", 0),
        ("page_tokens", 24),
        ("cache_dtype", "f8"),
        ("served_id", "a model"),
        ("aliases", ("",)),
    ],
)
def test_options_are_honoured_or_refused(tmp_path: Path, option: str, value: object) -> None:
    source = open_source(write_gguf(tmp_path / "tiny.gguf"))
    with pytest.raises(ConfigurationError) as caught:
        assemble(source, PrepareOptions(**{option: value}))
    assert caught.value.field == option
    assert caught.value.remedy


def test_two_cores_share_prefixes_only_where_the_cache_is_the_same(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf")

    def identity(**options: object) -> str:
        return assemble(open_source(path), PrepareOptions(**options)).contract.cache_identity

    assert identity() == identity(concurrency=2, context=64)
    assert identity() != identity(cache_dtype="f32")
    assert identity() != identity(page_tokens=16)


def test_the_template_shows_envelope_and_end(tmp_path: Path) -> None:
    metadata = {**METADATA, "tokenizer.ggml.eos_token_id": 1}
    source = open_source(write_gguf(tmp_path / "tiny.gguf", metadata))
    frontend = assemble(source, PrepareOptions()).contract.model.frontend
    assert frontend.assistant.open == "<|start|>assistant\n"
    assert list(frontend.assistant.close) == ["<|end|>"]
    assert list(frontend.eos_tokens) == [1, 0]  # the declared one, and what closes a message
    assert {t.name: t.text for t in frontend.template_tokens} == {
        "bos_token": "<|start|>",
        "eos_token": "<|start|>",
    }


@pytest.mark.parametrize("template", [None, "{{ raise_exception('no') }}", "always the same"])
def test_an_envelope_that_does_not_show_is_left_out(tmp_path: Path, template: str | None) -> None:
    metadata = {k: v for k, v in METADATA.items() if v is not TEMPLATE}
    if template:
        metadata["tokenizer.chat_template"] = template
    source = open_source(write_gguf(tmp_path / "tiny.gguf", metadata))
    frontend = assemble(source, PrepareOptions()).contract.model.frontend
    assert not frontend.HasField("assistant")
    assert frontend.template_resource == ("template" if template else "")


def test_what_was_prepared_can_be_read_back_from_the_core(tmp_path: Path) -> None:
    source, key = write_gguf(tmp_path / "tiny.gguf"), SigningKey.generate()
    output = tmp_path / "tiny.core"
    prepare(source, output, PrepareOptions(), key=key, namespace="tests/tiny")
    expected = assemble(open_source(source), PrepareOptions())
    trust = TrustStore(tmp_path / "home")
    trust.add("tests/tiny", key.public)
    with authorize(authenticate(output, trust), "tests/tiny") as core:
        core.verify_all()
        contract = prepare_contract(core.contract, core.manifest)
        programs = {program.name: program for program in core.programs()}
        check_programs(contract, programs)
        prepared = catalogued(expected.graphs, expected.tuning)
        assert programs == {program.name: program for _, program in prepared}
        for name, place in expected.weights.places.items():
            assert bytes(core.weight(name).data) == bytes(place.tensor.data())
        assert core.resource("template").decode() == with_tools(TEMPLATE)
        assert json.loads(core.resource("tokenizer"))["model"]["type"] == "BPE"
        assert core.resource("license") == b"Licence: apache-2.0\n"
        assert core.body.provenance.source == "tiny.gguf"
        assert core.body.provenance.source_sha256 == sha256(source.read_bytes()).digest()


INFINITE_F16, NAN_F32 = b"\x00\x7c", b"\x00\x00\xc0\x7f"


@pytest.mark.parametrize(
    ("storage", "name", "block", "offset", "value"),
    [
        (Q.F32, "blk.0.ffn_up.weight", 4, 0, NAN_F32),
        (Q.F32, "blk.0.attn_norm.weight", 4, 0, NAN_F32),
        (Q.F16, "blk.0.ffn_up.weight", 2, 0, INFINITE_F16),
        (Q.BF16, "blk.0.ffn_up.weight", 2, 0, b"\x80\xff"),
        (Q.Q8_0, "blk.1.ffn_down.weight", 34, 0, INFINITE_F16),
        (Q.Q4_0, "blk.1.ffn_down.weight", 18, 0, INFINITE_F16),
        (Q.Q4_1, "blk.1.ffn_down.weight", 20, 2, INFINITE_F16),
        (Q.Q5_0, "blk.1.ffn_down.weight", 22, 0, INFINITE_F16),
        (Q.Q5_1, "blk.1.ffn_down.weight", 24, 2, INFINITE_F16),
    ],
)
def test_numbers_that_are_not_finite_are_refused_by_name(
    tmp_path: Path,
    storage: gguf.GGMLQuantizationType,
    name: str,
    block: int,
    offset: int,
    value: bytes,
) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", storage=storage)
    reader = gguf.GGUFReader(path)
    at = next(t.data_offset for t in reader.tensors if t.name == name) + 5 * block + offset
    content = bytearray(path.read_bytes())
    content[at : at + len(value)] = value
    path.write_bytes(content)
    with pytest.raises(SourceError) as caught:
        prepare(
            path,
            tmp_path / "x.core",
            PrepareOptions(),
            key=SigningKey.generate(),
            namespace="tests/tiny",
        )
    assert caught.value.field == name
    assert "1 values" in caught.value.message
    assert not (tmp_path / "x.core").exists()


def test_names_become_identifiers() -> None:
    assert served_name(Path("/x/SmolLM2-135M-Instruct.Q4_1.gguf")) == "SmolLM2-135M-Instruct.Q4_1"
    assert served_name(Path("/x/my model (1)")) == "my-model-1-"
    assert served_name(Path("/x/日本")) == "model"


def test_llama3_divisors_of_a_gguf_file_enter_the_frequencies(tmp_path: Path) -> None:
    factors = np.linspace(1, 4, 8).astype(np.float32)
    weights = {**tensors(), "rope_freqs.weight": factors}
    deployment = assemble(
        open_source(write_gguf(tmp_path / "tiny.gguf", weights=weights)), PrepareOptions()
    )
    frequencies = deployment.weights.places["rope.frequencies"].tensor
    stored = np.frombuffer(frequencies.data(), np.float32)
    expected = 10000.0 ** (-np.arange(0, 16, 2) / 16) / factors
    assert stored == pytest.approx(expected, rel=1e-6)
