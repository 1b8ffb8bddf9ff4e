"""SmolLM2 on the CPU runtime: the right answer, and the same bits however it is driven."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from native_tools import ISAS, forced_isa

from helios.compile.options import CompileOptions
from helios.contract.operation import Operation
from helios.core.reader import Core
from helios.errors import ConfigurationError
from helios.frontend.tokenizer import Tokenizer
from helios.runtime.cpu.device import CpuRuntime
from helios.runtime.cpu.numerics import PROFILES
from helios.runtime.device import DeviceRuntime
from helios.runtime.loader import LoadOptions, load_model
from helios.runtime.reference.device import ReferenceRuntime
from tests.spine.driver import Driver, with_snapshot

QUESTION = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n<|im_start|>user\nWhat is the capital of France?<|im_end|>\n"
    "<|im_start|>assistant\n"
)


class NativeDriver(Driver):
    """The spine's driver on any runtime, without its observer."""

    def __init__(self, core: Core, runtime: DeviceRuntime, compiled: CompileOptions) -> None:
        options = LoadOptions(context=1024, concurrency=4, pages=200, snapshots=4, compile=compiled)
        loaded = load_model(core, runtime, options)
        self.loaded = loaded
        self.model = loaded.model
        self.plan = loaded.plan
        self.contract = loaded.contract
        self._sequence = 0
        self._generation = 0
        self._free_pages = list(range(self.plan.limits.pages))
        self.logits = []

    def told(self, prompt: Sequence[int], chunk: int, count: int, slot: int = 0) -> Any:
        row = self.admit(slot, prompt)
        self.prefill(row, chunk)
        self.decode([row], count)
        return row.output, row.logprobs


@contextmanager
def driving(
    core: Core,
    numerics: str,
    threads: int = 1,
    isa: str = ISAS[0],
    compiled: CompileOptions | None = None,
) -> Iterator[NativeDriver]:
    with forced_isa(isa):
        made = NativeDriver(core, CpuRuntime(threads, numerics), compiled or CompileOptions())
    with made.model:
        yield made


@pytest.fixture(scope="module")
def tokenizer(smollm2_core: Core) -> Tokenizer:
    return Tokenizer(smollm2_core.resource("tokenizer").decode())


@pytest.fixture(scope="module")
def question(tokenizer: Tokenizer) -> list[int]:
    return tokenizer.encode(QUESTION)


@pytest.fixture(scope="module")
def prompts() -> list[list[int]]:
    rng = np.random.default_rng(0)
    return [rng.integers(1000, 40000, n).tolist() for n in (150, 33, 5)]


# The first token of this answer is nearly a tie, which 8-bit activations may decide either way.
@pytest.mark.parametrize(
    ("numerics", "isa"),
    [("f32", ISAS[0]), *((n, i) for n in ("a16", "mixed") for i in ISAS if i != "baseline")],
)
def test_the_capital_of_france(
    smollm2_core: Core, tokenizer: Tokenizer, question: list[int], numerics: str, isa: str
) -> None:
    with driving(smollm2_core, numerics, isa=isa) as driver:
        row = driver.admit(0, question)
        driver.prefill(row, 256)
        driver.decode([row], 6)
    text = b"".join(tokenizer.token_bytes(t) for t in row.output).decode()
    assert text == "The capital of France is Paris."


def test_log_probabilities_are_those_of_the_reference(
    smollm2_core: Core, question: list[int]
) -> None:
    reference = NativeDriver(smollm2_core, ReferenceRuntime(), CompileOptions())
    with reference.model:
        want = reference.told(question, 256, 4)
    for numerics, tolerance in (("f32", 2e-3), ("a16", 2e-2), ("mixed", 0.2)):
        with driving(smollm2_core, numerics, 2) as driver:
            tokens, logprobs = driver.told(question, 256, 4)
        assert tokens == want[0]
        np.testing.assert_allclose(logprobs, want[1], atol=tolerance)


def test_every_profile_has_numbers_of_its_own(smollm2_core: Core, question: list[int]) -> None:
    told = []
    for numerics in PROFILES:
        with driving(smollm2_core, numerics) as driver:
            told.append(tuple(driver.told(question, 256, 4)[1]))
    assert len(set(told)) == len(PROFILES)


@pytest.mark.parametrize("numerics", ["a16", "mixed", "a8"])
def test_chunks_company_and_threads_change_no_bit(
    smollm2_core: Core, prompts: list[list[int]], numerics: str
) -> None:
    with driving(smollm2_core, numerics) as driver:
        alone = [driver.told(prompt, 256, 6) for prompt in prompts]
    for threads, chunk in ((2, 64), (3, 7)):
        with driving(smollm2_core, numerics, threads) as driver:
            rows = [driver.admit(slot, prompt) for slot, prompt in enumerate(prompts)]
            for row in rows:
                driver.prefill(row, chunk)
            driver.decode(rows, 6)
            assert [(row.output, row.logprobs) for row in rows] == alone


def test_mixed_steps_change_no_bit(smollm2_core: Core, prompts: list[list[int]]) -> None:
    with driving(smollm2_core, "a8", 2) as driver:
        alone = [driver.told(prompt, 256, 3) for prompt in prompts[:2]]
    with driving(smollm2_core, "a8", 2) as driver:
        first, second = (driver.admit(slot, prompts[slot]) for slot in range(2))
        driver.prefill(second, 256)
        while first.consumed < len(first.prompt):
            lanes = [driver.prompt_lane(first, 50), driver.decode_lane(second)]
            driver.take(Operation.MIXED, lanes, [first, second])
        driver.decode([first], 3)
        assert (first.output, first.logprobs) == alone[0]
        assert (second.output, second.logprobs) == alone[1]


@pytest.mark.parametrize("numerics", ["a8", "mixed", "f32"])
def test_fusing_changes_no_bit(smollm2_core: Core, prompts: list[list[int]], numerics: str) -> None:
    with driving(smollm2_core, numerics, 2) as driver:
        fused = driver.told(prompts[0], 64, 4)
    observed = CompileOptions(retained=("*",))
    with driving(smollm2_core, numerics, 2, compiled=observed) as driver:
        assert driver.told(prompts[0], 64, 4) == fused


def test_a_snapshot_restores_the_same_bits(smollm2_core: Core, prompts: list[list[int]]) -> None:
    prompt = prompts[0]
    with driving(smollm2_core, "a8") as driver:
        want = driver.told(prompt, 256, 3)
        row = driver.admit(1, prompt)
        lane = with_snapshot(driver.prompt_lane(row, 149), 2)
        driver.take(Operation.PREFILL, [lane], [row])
        driver.prefill(row, 256)
        driver.decode([row], 3)
        assert (row.output, row.logprobs) == want


def test_allocated_memory_stays_within_the_plan(smollm2_core: Core) -> None:
    with driving(smollm2_core, "a16", 2) as driver:
        weights = sum(w.nbytes for w in driver.plan.weights if not w.mapped)
        spent = driver.loaded.runner.allocated_nbytes
        assert spent <= weights + 64 * len(driver.plan.weights)
        assert driver.loaded.storage.allocated_nbytes + spent <= driver.plan.total_nbytes + (
            1 << 20
        )


def test_profiles_and_threads_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="profile"):
        CpuRuntime(1, "a4")
    with pytest.raises(ConfigurationError, match="between 1 and 1024"):
        CpuRuntime(0)
    with forced_isa("sse9"), pytest.raises(ConfigurationError, match="sse9"):
        CpuRuntime(1)
