"""Helios' rates inside the process, without a server: `python -m benchmarks.native_rates`.

The counterpart of `llama-bench`: the same tests, the same number of threads, one JSON object of
tokens per second on standard output.
"""

import argparse
import json
import time

from benchmarks.prepared import loaded_core
from helios.runtime.loader import LoadedModel
from helios.runtime.single import SingleRequest


def prefill_rate(loaded: LoadedModel, tokens: int) -> float:
    """Prompt tokens per second, the first sampled token included."""
    request = SingleRequest(loaded.model)
    prompt = [3 + i % 997 for i in range(tokens)]
    request.start(prompt)
    begin = time.perf_counter()
    request.consume(prompt)
    return tokens / (time.perf_counter() - begin)


def decode_rate(loaded: LoadedModel, tokens: int) -> float:
    """Tokens per second of one stream from an empty context on."""
    request = SingleRequest(loaded.model)
    request.start([1])
    request.consume([1])
    begin = time.perf_counter()
    for _ in range(tokens):
        request.decode()
    return tokens / (time.perf_counter() - begin)


def main() -> None:
    """Measure once."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--numerics", default="")
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--prompt", type=int, nargs="*", default=[512, 2000])
    arguments.add_argument("--generate", type=int, default=128)
    options = arguments.parse_args()
    with loaded_core(options.numerics, options.threads) as loaded:
        prefill_rate(loaded, min(options.prompt))
        rates = {f"pp{n}": prefill_rate(loaded, n) for n in options.prompt}
        rates[f"tg{options.generate}"] = decode_rate(loaded, options.generate)
    print(json.dumps(rates))


if __name__ == "__main__":
    main()
