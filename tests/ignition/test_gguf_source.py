"""GGUF files: read as the `gguf` package reads them, and refused where they are not sound."""

import struct
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_gguf import METADATA, tensors, write_gguf

from helios.errors import HeliosError, SourceError
from helios.ignition.export import assemble
from helios.ignition.options import PrepareOptions
from helios.ignition.sources.gguf import GgufSource
from helios.ignition.sources.gguf_header import read_header
from helios.ignition.sources.open import open_source

T = TypeVar("T")
Q = gguf.GGMLQuantizationType


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


def test_reads_what_the_gguf_package_reads(smollm2_gguf: Path) -> None:
    source, oracle = GgufSource(smollm2_gguf), gguf.GGUFReader(smollm2_gguf)
    assert list(source.tensors) == [t.name for t in oracle.tensors]
    for tensor in oracle.tensors:
        mine = source.tensors[tensor.name]
        assert mine.shape == tuple(int(n) for n in reversed(tensor.shape))
        assert mine.storage.name == tensor.tensor_type.name
        assert mine.nbytes == tensor.n_bytes
        assert bytes(mine.data()[:512]) == tensor.data.tobytes()[:512]
    tokens = oracle.fields["tokenizer.ggml.tokens"].contents()
    assert list(source.tokenizer.tokens) == tokens
    assert list(source.tokenizer.merges) == oracle.fields["tokenizer.ggml.merges"].contents()
    assert list(source.tokenizer.types) == oracle.fields["tokenizer.ggml.token_type"].contents()
    assert source.config.integer("context_length") == 8192
    assert source.license.identifier == "apache-2.0"


def test_every_supported_storage_has_the_size_the_gguf_package_gives_it(tmp_path: Path) -> None:
    for kind in (Q.F16, Q.BF16, Q.Q4_0, Q.Q4_1, Q.Q5_0, Q.Q5_1):
        source = GgufSource(write_gguf(tmp_path / f"{kind.name}.gguf", storage=kind))
        expected = gguf.quants.quantize(tensors()["token_embd.weight"], kind)
        assert bytes(source.tensors["token_embd.weight"].data()) == expected.tobytes()


def refusal(path: Path) -> SourceError:
    with pytest.raises(SourceError) as caught:
        assemble(open_source(path), PrepareOptions())
    assert caught.value.remedy
    return caught.value


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    weights = tensors()
    del weights["blk.1.ffn_up.weight"]
    error = refusal(write_gguf(tmp_path / "x.gguf", weights=weights))
    assert error.field == "blk.1.ffn_up.weight"
    assert "lacks" in error.message


def test_a_wrong_shape_is_named_with_the_shape_wanted(tmp_path: Path) -> None:
    weights = tensors()
    weights["blk.0.attn_k.weight"] = weights["blk.0.attn_q.weight"]
    error = refusal(write_gguf(tmp_path / "x.gguf", weights=weights))
    assert error.field == "blk.0.attn_k.weight"
    assert "[32, 64]" in error.message
    assert error.value == [64, 64]


def test_a_tensor_the_recipe_does_not_use_is_refused(tmp_path: Path) -> None:
    weights = tensors()
    weights["blk.0.attn_sinks.weight"] = np.ones(4, np.float32)
    error = refusal(write_gguf(tmp_path / "x.gguf", weights=weights))
    assert error.field == "blk.0.attn_sinks.weight"


def test_an_unknown_architecture_is_refused(tmp_path: Path) -> None:
    metadata = {**METADATA, "parrot.block_count": 1}
    error = refusal(write_gguf(tmp_path / "x.gguf", metadata, architecture="parrot"))
    assert error.field == "general.architecture"
    assert error.value == "parrot"
    assert "llama" in error.remedy


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("llama.block_count", 0),
        ("llama.embedding_length", "wide"),
        ("llama.attention.head_count_kv", 3),
        ("llama.attention.layer_norm_rms_epsilon", float("nan")),
        ("llama.rope.scaling.type", "longrope"),
        ("llama.rope.dimension_count", 18),
        ("llama.rope.scaling.yarn_ext_factor", 0.5),
        ("llama.rope.freq_base", 1.0),
        ("llama.expert_count", 8),
        ("split.count", 3),
        ("tokenizer.chat_template", 7),
        ("llama.attention.value_length", 8),
        ("tokenizer.ggml.model", "bert"),
        ("tokenizer.ggml.pre", "parrot"),
        ("tokenizer.ggml.eos_token_id", 4000),
        ("tokenizer.ggml.tokens", ["a", "b"]),
        ("tokenizer.ggml.merges", ["a b c"]),
        ("tokenizer.ggml.merges", ["zz yy"]),
        ("tokenizer.chat_template", "{% for m in messages %}"),
    ],
)
def test_a_wrong_fact_is_refused(tmp_path: Path, key: str, value: object) -> None:
    metadata = {**METADATA, key: value}
    error = refusal(write_gguf(tmp_path / "x.gguf", metadata))
    assert error.field


def test_a_missing_fact_is_named(tmp_path: Path) -> None:
    metadata = {k: v for k, v in METADATA.items() if k != "llama.context_length"}
    error = refusal(write_gguf(tmp_path / "x.gguf", metadata))
    assert error.field == "llama.context_length"


def test_unsupported_quantisation_names_tensor_and_storage(tiny: Path, tmp_path: Path) -> None:
    content = bytearray(tiny.read_bytes())
    at = content.index(b"blk.0.attn_q.weight") + len("blk.0.attn_q.weight") + 4 + 16
    assert content[at] == Q.Q8_0
    content[at] = Q.IQ2_XXS
    error = refusal(write(tmp_path, content))
    assert "blk.0.attn_q.weight" in error.field
    assert error.value == "IQ2_XXS"
    assert "Q4_1" in error.remedy


def test_declared_type_and_stored_size_must_agree(tiny: Path, tmp_path: Path) -> None:
    content = bytearray(tiny.read_bytes())
    at = content.index(b"blk.0.attn_q.weight") + len("blk.0.attn_q.weight") + 4 + 16
    content[at] = Q.Q4_0
    assert "disagree" in refusal(write(tmp_path, content)).message


def test_counts_that_lie_cost_nothing(tiny: Path, tmp_path: Path) -> None:
    content = bytearray(tiny.read_bytes())
    for at in (8, 16):
        lying = content.copy()
        lying[at : at + 8] = struct.pack("<Q", 1 << 60)
        path = write(tmp_path, lying)
        tracemalloc.start()
        assert "count" in refusal(path).message
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        tracemalloc.stop()


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGML" + bytes(64), b"GGUF" + bytes(64)])
def test_what_is_no_gguf_is_refused(tmp_path: Path, content: bytes) -> None:
    refusal(write(tmp_path, content))


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "no such" in refusal(tmp_path / "missing.gguf").message


def write(folder: Path, content: bytes | bytearray) -> Path:
    path = folder / "damaged.gguf"
    path.write_bytes(content)
    return path


@settings(max_examples=300, derandomize=True, deadline=None)
@given(data=st.data())
def test_damage_anywhere_is_refused_or_harmless(data: st.DataObject, tiny: Path) -> None:
    """Flipped and cut bytes never crash, hang, or give a tensor that the file does not hold."""
    content = bytearray(tiny.read_bytes())
    header = content.index(b"blk.1.ffn_down.weight") + 64
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.one_of(st.integers(0, header), st.integers(0, len(content) - 1)))
        content[at] = data.draw(st.integers(0, 255))
    end = data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content))))
    view = memoryview(content)[:end]
    found, error = attempt(lambda: read_header(view, "damaged"))
    for tensor in found.tensors if found else ():
        assert 0 < tensor.offset <= tensor.offset + tensor.nbytes <= end
    assert found or (isinstance(error, SourceError) and error.field and error.remedy)


def attempt(call: Callable[[], T]) -> tuple[T | None, HeliosError | None]:
    try:
        return call(), None
    except HeliosError as error:
        return None, error


@settings(max_examples=150, derandomize=True, deadline=None)
@given(data=st.data())
def test_damaged_files_are_refused_by_name(
    data: st.DataObject, tiny: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever is wrong with a file, preparing it ends in an error of the family or in a model."""
    content = bytearray(tiny.read_bytes())
    header = content.index(b"blk.1.ffn_down.weight") + 64
    at = data.draw(st.integers(0, header))
    content[at] ^= data.draw(st.integers(1, 255))
    path = write(tmp_path_factory.getbasetemp(), content)
    chunks, error = attempt(lambda: list(prepared_weights(path)))
    assert chunks or (error and error.field and str(error))


def prepared_weights(path: Path) -> Iterator[memoryview]:
    return assemble(open_source(path), PrepareOptions()).weights.chunks()
