"""How close the numbers are to float32's: `python -m benchmarks.quality`.

Every numerical profile of the CPU runtime, and llama.cpp, predict each next token of the same
ordinary English text; their distributions are compared with those of `transformers` in float32 on
the same checkpoint. Then the answers to eleven ordinary questions are compared.
"""

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.answers import CANARY, QUESTIONS, llama_answer, native_answer, parting
from benchmarks.corpus import corpus_text, windows
from benchmarks.divergence import Divergence, Summary
from benchmarks.logits import LOGITS, LogitSource, Native, Reference, llama_cpp
from benchmarks.machine import machine
from benchmarks.places import RESULTS, model_path
from benchmarks.prepared import frontend_of, loaded_core, opened_core, prepare, tokenizer_of
from benchmarks.servers import MOST_STREAMS, PEER_BY_NAME, Server, Shape
from helios.frontend.prompt import ChatInput
from helios.runtime.cpu.numerics import DEFAULT_NUMERICS

ANSWER_TOKENS = 96
BAR_DIVERGENCE, BAR_TOP1 = 2e-3, 0.985

console = Console(highlight=False)


@contextmanager
def sources(options: argparse.Namespace, vocabulary: int) -> Iterator[dict[str, LogitSource]]:
    """Everything that is compared with the reference, by name."""
    with ExitStack() as stack:
        found: dict[str, LogitSource] = {
            name: Native(stack.enter_context(loaded_core(name, options.threads, (LOGITS,))))
            for name in options.profiles
        }
        if options.llama:
            peer = llama_cpp(model_path(), vocabulary, options.threads, options.window)
            found["llama.cpp"] = stack.enter_context(peer)
        yield found


def text_quality(options: argparse.Namespace, reference: LogitSource) -> dict[str, Summary]:
    """The divergence of every source over the text."""
    with opened_core() as core:
        words = tokenizer_of(core)
    parts = windows(words.encode(corpus_text()), options.tokens, options.window)
    found: dict[str, Divergence] = {}
    with sources(options, words.vocabulary) as compared:
        for number, part in enumerate(parts, 1):
            expected = reference(part)
            for name, source in compared.items():
                found.setdefault(name, Divergence()).add(expected, source(part), part[1:])
            console.print(f"window {number} of {len(parts)}", end="\r")
    return {name: divergence.summary() for name, divergence in found.items()}


def product_difference(options: argparse.Namespace) -> Mapping[str, float]:
    """Per profile, the largest difference between the log-probabilities that the product's plan
    and the plan with retained logits report for one window."""
    with opened_core() as core:
        window = tokenizer_of(core).encode(corpus_text())[: options.window]
    return {name: _plan_difference(name, options.threads, window) for name in options.profiles}


def _plan_difference(numerics: str, threads: int, window: Sequence[int]) -> float:
    scores = []
    for retained in ((), (LOGITS,)):
        with loaded_core(numerics, threads, retained) as loaded:
            source = Native(loaded)
            source(window)
            scores.append(np.array(source.scores))
    return float(np.abs(scores[0] - scores[1]).max())


def answer_quality(options: argparse.Namespace, reference: LogitSource) -> dict[str, Any]:
    """Each profile's canary, and where its answers part from llama.cpp's."""
    with opened_core() as core:
        frontend = frontend_of(core)
    prompts = {
        question: frontend.chat_prompt(
            ChatInput([{"role": "user", "content": question}]), 2048
        ).tokens
        for question in (CANARY, *QUESTIONS)
    }
    theirs = _llama_answers(prompts, options) if options.llama else {}
    found: dict[str, Any] = {}
    if theirs:
        found["llama.cpp"] = {"canary": frontend.tokenizer.decode(theirs[CANARY])}
    for name in options.profiles:
        with loaded_core(name, options.threads) as loaded:
            ours = {
                question: native_answer(loaded, prompt, frontend.eos, options.answer_tokens)
                for question, prompt in prompts.items()
            }
        partings = [
            parting(question, prompts[question], ours[question], theirs[question], reference)
            for question in QUESTIONS
            if question in theirs
        ]
        found[name] = {
            "canary": frontend.tokenizer.decode(ours[CANARY]),
            "partings": [asdict(p) for p in partings],
        }
        console.print(f"answers of {name}")
    return found


def _llama_answers(
    prompts: Mapping[str, Sequence[int]], options: argparse.Namespace
) -> dict[str, list[int]]:
    server = Server(PEER_BY_NAME["llama.cpp"], options.threads, Shape(1, 2048))
    try:
        return {
            question: llama_answer(server, prompt, options.answer_tokens)
            for question, prompt in prompts.items()
        }
    finally:
        server.close()


def show(found: Mapping[str, Any]) -> None:
    """Print everything."""
    title = "next-token distributions against float32"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for name in ("", "mean KL", "median", "99%", "largest", "top-1", "ppl.", "bar"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for name, s in found["text"].items():
        met = s["mean"] <= BAR_DIVERGENCE and s["top1"] >= BAR_TOP1
        figures = [f"{s[k]:.1e}" for k in ("mean", "median", "p99", "largest")]
        table.add_row(
            *(name, *figures, f"{s['top1']:.2%}", f"{s['perplexity']:.2f}"),
            "met" if met else "missed",
        )
    console.print(table)
    for name, difference in found["product_difference"].items():
        console.print(f"{name}: the product's plan scores differ by at most {difference:.2g}")
    for name, answers in found["answers"].items():
        console.print(f"{name}: {CANARY} {answers['canary']!r}", markup=False)
        for p in answers.get("partings", ()):
            where = f"{p['equal_tokens']} tokens equal"
            gap = "" if p["gap"] is None else f", then a gap of {p['gap']:+.3f}"
            console.print(f"  {p['question']} {where}{gap}", markup=False)


def main() -> None:
    """Measure, print and write `results/quality.json`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--profiles", default="a8,mixed,a16,f32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--answer-tokens", type=int, default=ANSWER_TOKENS)
    parser.add_argument("--no-llama", dest="llama", action="store_false")
    parser.add_argument("--name", default="quality", help="of the file")
    options = parser.parse_args()
    options.profiles = options.profiles.split(",")
    prepare(MOST_STREAMS)
    reference = Reference(model_path(), options.threads)
    found = {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "machine": asdict(machine()),
        "default": DEFAULT_NUMERICS,
        "text": {name: asdict(s) for name, s in text_quality(options, reference).items()},
        "product_difference": product_difference(options),
        "answers": answer_quality(options, reference),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{options.name}.json"
    path.write_text(json.dumps(found, indent=1) + "\n")
    show(found)
    console.print(f"wrote {path}")


if __name__ == "__main__":
    main()
