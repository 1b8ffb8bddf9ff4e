"""Loads a core, serves every slot to its full context, and says what that took in memory.

Run in a process of its own: `memory_probe.py CORE HOME MEMORY CONTEXT CONCURRENCY`, where MEMORY
0 asks for the smallest plan.
"""

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from helios.contract.submission import Sampling
from helios.core.reader import Core, authenticate, authorize
from helios.core.trust import TrustStore
from helios.engine.engine import Engine
from helios.engine.messages import Event, Failed, Finished, Generate
from helios.errors import FitError
from helios.frontend.model import load_frontend
from helios.runtime.cpu.device import CpuRuntime
from helios.runtime.loader import LoadOptions, load_model

_NEW_TOKENS = 40


def main(path: str, home: str, memory: int, context: int | None, concurrency: int | None) -> None:
    opened = authenticate(path, TrustStore(home))
    core = authorize(opened, opened.namespace)
    runtime = CpuRuntime(threads=2)
    if not memory:
        memory = _minimum(core, runtime)
    loaded = load_model(core, runtime, LoadOptions(memory, context, concurrency))
    words = core.resource("tokenizer").decode()
    frontend = load_frontend(loaded.contract.frontend, words, None)
    engine = Engine(loaded.model, queue_capacity=64)
    limits = loaded.plan.limits
    text = frontend.tokenizer.encode("The quick brown fox jumps over the lazy dog. " * 2000)
    length = limits.context - _NEW_TOKENS
    finished = [
        _request(engine, number, tuple(text[number : number + length]))
        for number in range(limits.sequences)
    ]
    reasons = [wait() for wait in finished]
    engine.close(5.0)
    print(
        json.dumps(
            {
                "planned": loaded.plan.total_nbytes,
                "budget": memory,
                "peak": _high_water_nbytes(),
                "limits": [limits.context, limits.sequences, limits.pages],
                "reasons": reasons,
            }
        )
    )


def _minimum(core: Core, runtime: CpuRuntime) -> int:
    try:
        load_model(core, runtime, LoadOptions(memory=1))
    except FitError as error:
        return int(error.remedy.split("--memory ")[1].split()[0])
    raise AssertionError("one byte was enough")


def _request(engine: Engine, number: int, prompt: tuple[int, ...]) -> Callable[[], str]:
    done = threading.Event()
    found: list[Event] = []

    def sink(events: list[Event]) -> None:
        found.extend(event for event in events if isinstance(event, Finished | Failed))
        if found:
            done.set()

    engine.submit(Generate(number, prompt, _NEW_TOKENS, Sampling(temperature=0.0)), sink)

    def wait() -> str:
        assert done.wait(100)
        event = found[0]
        assert isinstance(event, Finished), event
        return f"{event.reason}: {event.prompt_tokens} + {event.output_tokens}"

    return wait


def _high_water_nbytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no high-water mark")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *(int(n) or None for n in sys.argv[3:6]))  # type: ignore[arg-type]
