"""How near the native kernels come to the machine's limits.

usage: python benchmarks/kernels.py [--isa NAME ...] [--threads N] [--json PATH]

Prints, for the shapes of a small model and for every layout, bytes per second against the
measured read bandwidth (one row: a decode step) and multiply-accumulates per second against the
measured peak (many rows: prefill); then attention. Weights are spread over more memory than the
caches hold, so that one row streams them.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from helios import _native

NONE = np.zeros((0, 3), dtype=np.int64)
STREAMED = 160 << 20  # bytes of weights in a decode measurement
LAYOUTS = {
    "W4G32": "Q4_1",
    "W4G32F": "Q4_K",
    "W8G32": "Q8_0",
    "W8G32M": "Q5_K",
    "W8G16": "Q6_K",
    "F16": "F16",
    "BF16": "BF16",
    "F32": "F32",
}
PROFILES = {"a8": 1, "a16": 2, "f32": 0}


def best_seconds(call: Callable[[], None], tries: int = 7) -> float:
    call()
    found = []
    for _ in range(tries):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def spread(
    executor: _native.Executor, storage: str, rows: int, columns: int, copies: int
) -> tuple[_native.Memory, list[int], int]:
    """`copies` packed matrices of random bytes with harmless scales, and their addresses."""
    layout = _native.natural_layout(storage)
    nbytes = _native.packed_bytes(layout, rows, columns)
    step = -(-nbytes // 64) * 64
    memory = _native.Memory(step * copies)
    raw = np.zeros(_native.stored_row_bytes(storage, columns) * rows, dtype=np.uint8)
    for i in range(copies):
        executor.pack(storage, layout, rows, columns, raw, memory.address + i * step)
    return memory, [memory.address + i * step for i in range(copies)], nbytes


def product(
    executor: _native.Executor,
    storage: str,
    profile: str,
    rows: int,
    columns: int,
    tokens: int,
) -> tuple[float, float]:
    """GB/s of weights and G multiply-accumulates/s of one matrix, input quantised beforehand."""
    layout = _native.natural_layout(storage)
    nbytes = _native.packed_bytes(layout, rows, columns)
    copies = max(1, STREAMED // nbytes) if tokens < 16 else 4
    memory, addresses, nbytes = spread(executor, storage, rows, columns, copies)
    x = np.random.default_rng(0).standard_normal((tokens, columns), dtype=np.float32)
    y = np.zeros((tokens, rows), dtype=np.float32)
    planes = 0 if storage in ("F32", "F16", "BF16") else PROFILES[profile]
    region: dict[str, Any] = {"region": 0, "planes": planes} if planes else {"x": x.ctypes.data}
    common = {"count": "T", "columns": columns}
    steps: list[Any] = []
    if planes:
        steps.append(("quantise", common | region | {"x": x.ctypes.data}))
    for address in addresses:
        linear = {
            "weights": [address],
            "layouts": [_native.layout_number(layout)],
            "rows": [rows],
            "biases": [0],
            "residuals": [0],
            "outs": [y.ctypes.data],
        }
        steps.append(("linear", common | region | linear))
    program = executor.load(steps, (0, tokens, 0))
    seconds = best_seconds(lambda: executor.run(program, (0, tokens, 0), NONE, NONE))
    executor.unload(program)
    del memory
    return copies * nbytes / seconds / 1e9, copies * rows * columns * tokens / seconds / 1e9


def attention(
    executor: _native.Executor, tokens: int, history: int, rows: int = 1
) -> tuple[float, float]:
    """Microseconds, and G multiply-accumulates/s, of `rows` rows with `tokens` new tokens each."""
    heads, key_heads, dim, page = 9, 3, 64, 16
    rng = np.random.default_rng(0)
    columns = -(-(history + tokens) // page)
    total = rows * tokens
    q = rng.standard_normal((total, heads, dim), dtype=np.float32)
    y = np.zeros_like(q)
    planes = rng.standard_normal((2, rows * columns, page, key_heads, dim)).astype(np.float16)
    row = np.repeat(np.arange(rows, dtype=np.int32), tokens)
    positions = np.tile(np.arange(history, history + tokens, dtype=np.int32), rows)
    slots = np.arange(rows, dtype=np.int32)
    table = rng.permutation(rows * columns).astype(np.int32).reshape(rows, columns)
    step = {
        "count": "T",
        "q": q.ctypes.data,
        "rows": row.ctypes.data,
        "positions": positions.ctypes.data,
        "slots": slots.ctypes.data,
        "page_table": table.ctypes.data,
        "keys": planes[0].ctypes.data,
        "values": planes[1].ctypes.data,
        "out": y.ctypes.data,
        "heads": heads,
        "key_heads": key_heads,
        "dim": dim,
        "table_rows": rows,
        "table_columns": columns,
        "pages": rows * columns,
        "page_tokens": page,
        "dtype": 2,
        "scale": 0.125,
        "window": 0,
        "softcap": 0.0,
    }
    extents = (rows, total, 0)
    program = executor.load([("paged_attention", step)], extents)
    seconds = best_seconds(lambda: executor.run(program, extents, NONE, NONE))
    executor.unload(program)
    seen = int((positions.astype(np.int64) + 1).sum())
    return seconds * 1e6, 2 * heads * dim * seen / seconds / 1e9


def measure(isa: str, threads: int) -> dict[str, Any]:
    os.environ["HELIOS_ISA"] = isa
    executor = _native.Executor(threads)
    told: dict[str, Any] = {"isa": isa, "threads": threads, "ceilings": executor.ceilings()}
    top = told["ceilings"]
    print(
        f"{isa}, {threads} threads: read {top['read_bytes']:.1f} GB/s, "
        f"8-bit {top['integer_macs']:.0f} and float {top['float_macs']:.0f} G MAC/s"
    )
    told["products"] = []
    for layout, storage in LAYOUTS.items():
        floats = storage in ("F32", "F16", "BF16")
        for profile in ("f32",) if floats else PROFILES:
            gbytes, _ = product(executor, storage, profile, 1536, 768, 1)
            peak = top["float_macs" if profile == "f32" else "integer_macs"]
            macs = {t: product(executor, storage, profile, 1536, 768, t)[1] for t in (8, 32, 512)}
            told["products"].append(
                {"layout": layout, "profile": profile, "decode_gbytes": gbytes, "macs": macs}
            )
            rates = ", ".join(f"{t}: {m:6.1f}" for t, m in macs.items())
            print(
                f"  {layout:7} {profile:4} one row {gbytes:5.1f} GB/s "
                f"({gbytes / top['read_bytes']:4.0%}); G MAC/s of rows {rates} "
                f"({macs[512] / peak:4.0%})"
            )
    told["attention"] = []
    for tokens, history, rows in ((256, 0, 1), (256, 1750, 1), (1, 2000, 1), (1, 200, 16)):
        micros, rate = attention(executor, tokens, history, rows)
        told["attention"].append(
            {"tokens": tokens, "history": history, "rows": rows, "us": micros, "macs": rate}
        )
        print(
            f"  attention of {rows} x {tokens} tokens after {history}: {micros:7.0f} us, "
            f"{rate:5.1f} G MAC/s ({rate / top['float_macs']:4.0%})"
        )
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description="Native kernels against the machine's limits.")
    parser.add_argument("--isa", nargs="*", default=[_native.isa()])
    parser.add_argument("--threads", type=int, default=_native.usable_processors())
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    told = [measure(isa, given.threads) for isa in given.isa]
    if given.json:
        given.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
