"""The real Gemma 3 270M: tokens, logits and greedy text are those of transformers.

Its weights are dequantised by the `gguf` package and put into transformers' own model, which is
several times faster than letting transformers read the file.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import gguf
import numpy as np
import pytest
import torch
from coarse_products import coarse_products
from plain_host import dequantised
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from helios.compile.options import CompileOptions
from helios.core.reader import Core, authenticate, authorize
from helios.core.trust import TrustStore, local_publisher
from helios.frontend.tokenizer import Tokenizer
from helios.ignition.export import prepare
from helios.ignition.options import PrepareOptions
from helios.ignition.recipes.packaged import PACKAGED
from helios.ignition.sources.open import open_source
from helios.runtime.capture import Recorder, key_of
from helios.runtime.cpu.device import CpuRuntime
from helios.runtime.device import DeviceRuntime
from helios.runtime.loader import LoadOptions, load_model
from helios.runtime.reference.device import ReferenceRuntime
from helios.runtime.single import SingleRequest

BOS = 2
WINDOW = 512
PROMPTS = ("The capital of France is", "".join(f"{n * n}, " for n in range(2, 120)))
NEW_TOKENS = 8
# What transformers' GemmaTokenizer makes of these texts, converted from the same file.
ENCODED = {
    "The capital of France is": [818, 5279, 529, 7001, 563],
    "  def f(x):\n\n\n\treturn x  # ok": [
        138, 2063, 517, 236769, 236781, 1473, 109, 255968, 2060, 1123, 138, 236865, 7546,
    ],
    "<start_of_turn>user\nHi<end_of_turn>\n": [105, 2364, 107, 10979, 106, 107],
    "日本語 \u2581 x, naïve 🦙 \x00": [
        94951, 139, 236781, 236764, 120362, 236743, 478, 397, 404, 391, 236743, 238,
    ],
}  # fmt: skip


class Greedy(NamedTuple):
    """A prompt, the tokens that the oracle goes on with, and the logits of each."""

    prompt: list[int]
    tokens: list[int]
    logits: list[np.ndarray]


@pytest.fixture(scope="module")
def gemma3_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gemma 3 270M in Q4_K_M, joined from its packages and verified."""
    model = PACKAGED["gemma3-270m"]
    path = model.locate(tmp_path_factory.mktemp("joined"))
    model.check(path)
    return path


@pytest.fixture(scope="module")
def core(gemma3_gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Core]:
    home = tmp_path_factory.mktemp("home")
    namespace, key = local_publisher(home)
    options = PrepareOptions(context=1024, concurrency=1, cache_dtype="f32")
    path = home / "gemma3.core"
    prepare(gemma3_gguf, path, options, key=key, namespace=namespace)
    with authorize(authenticate(path, TrustStore(home)), namespace) as opened:
        yield opened


@pytest.fixture(scope="module")
def tokenizer(core: Core) -> Tokenizer:
    return Tokenizer(core.resource("tokenizer").decode())


@pytest.fixture(scope="module")
def oracle(gemma3_gguf: Path) -> Gemma3ForCausalLM:
    source = open_source(gemma3_gguf)
    facts = source.config
    config = Gemma3TextConfig(
        vocab_size=262144,
        hidden_size=facts.integer("embedding_length"),
        intermediate_size=facts.integer("feed_forward_length"),
        num_hidden_layers=facts.integer("block_count"),
        num_attention_heads=facts.integer("attention.head_count"),
        num_key_value_heads=facts.integer("attention.head_count_kv"),
        head_dim=facts.integer("attention.key_length"),
        query_pre_attn_scalar=facts.integer("attention.key_length"),
        rms_norm_eps=facts.real("attention.layer_norm_rms_epsilon"),
        sliding_window=WINDOW,
    )
    with torch.device("meta"):
        names = dict(Gemma3ForCausalLM(config).named_parameters())
    table = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GEMMA3, config.num_hidden_layers)
    state = {}
    for name in names:
        stored = table.get_name(name, try_suffixes=(".weight",))
        values = torch.from_numpy(dequantised(source.tensors[stored]))
        state[name] = values - 1 if name.endswith("norm.weight") else values
    assert len(state) == len(source.tensors)
    return Gemma3ForCausalLM.from_pretrained(
        None, config=config, state_dict=state, dtype=torch.float32
    ).eval()


@pytest.mark.parametrize("text", ENCODED)
def test_text_is_encoded_as_transformers_encodes_it(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.encode(text) == ENCODED[text]
    assert tokenizer.decode(ENCODED[text]) == text.replace("\u2581", " ")


@pytest.fixture(scope="module")
def expected(tokenizer: Tokenizer, oracle: Gemma3ForCausalLM) -> list[Greedy]:
    """The last prompt is longer than the window of the sliding layers."""
    prompts = [[BOS, *tokenizer.encode(text)] for text in PROMPTS]
    assert len(prompts[-1]) > WINDOW
    return [greedy(oracle, prompt) for prompt in prompts]


def greedy(oracle: Gemma3ForCausalLM, prompt: list[int]) -> Greedy:
    made = oracle.generate(
        torch.tensor([prompt]),
        max_new_tokens=NEW_TOKENS,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
        output_logits=True,
        return_dict_in_generate=True,
    )
    logits = [step[0].numpy() for step in made.logits]
    return Greedy(prompt, made.sequences[0, len(prompt) :].tolist(), logits)


@pytest.mark.parametrize(
    ("runtime", "prompts"),
    [(ReferenceRuntime(), 1), (CpuRuntime(numerics="f32"), len(PROMPTS))],
    ids=["reference", "cpu"],
)
def test_logits_and_greedy_text_are_those_of_transformers(
    core: Core, expected: list[Greedy], runtime: DeviceRuntime, prompts: int
) -> None:
    """The reference takes half a minute for a prompt as long as the last one."""
    options = LoadOptions(concurrency=1, compile=CompileOptions(retained=("logits",)))
    loaded = load_model(core, runtime, options)
    with loaded.model:
        for prompt, tokens, logits in expected[:prompts]:
            recorder = Recorder(loaded.compiled, loaded.storage, range(NEW_TOKENS))
            made = []
            for step in SingleRequest(loaded.model, recorder.watch).generate(prompt, NEW_TOKENS):
                recorder.end_step()
                made.append(step.token)
            assert made == tokens
            for number, wanted in enumerate(logits):
                actual = recorder.arrays[key_of(number, "logits")][0]
                assert np.abs(actual - wanted).max() / np.abs(wanted).max() < 1e-4


def test_coarse_products_are_those_that_were_measured(core: Core) -> None:
    roles = ("feed_forward.gate", "feed_forward.up")
    assert coarse_products(core) == {f"layers.{n}.{role}" for n in range(9, 18) for role in roles}
