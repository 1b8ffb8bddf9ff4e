"""Helios beside other servers, interleaved in one run: `python -m benchmarks`.

Installs the peers on first use, measures, prints tables, and writes JSON, Markdown and a chart to
`benchmarks/results/`.
"""

import argparse
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase

from rich.console import Console

from benchmarks import install
from benchmarks.ceilings import Ceilings, ceilings, model_work
from benchmarks.corpus import Prompts, corpus_text
from benchmarks.instructions import INSTRUCTIONS, NATIVE, held_name, hold
from benchmarks.machine import busy_share, machine
from benchmarks.places import HERE, RESULTS, model_path
from benchmarks.prepared import opened_core, prepare, tokenizer_of
from benchmarks.rates import CONTENDERS, QUICK_RATE_TEST, RATE_TEST, RateTest, run_rates
from benchmarks.report import markdown, show
from benchmarks.results import Measured, Results
from benchmarks.servers import DEFAULT_PEERS, MOST_STREAMS, PEER_BY_NAME
from benchmarks.workloads import (
    FOOTPRINTS,
    QUICK_WORKLOADS,
    WORKLOADS,
    Samples,
    Workload,
    run_footprints,
    run_workloads,
)

SECTIONS = ("rates", "footprints", "servers", "micro")
MICRO = ("kernels", "scheduler_scale", "output_pipeline")

console = Console(stderr=True, highlight=False)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--peers", help=f"{', '.join(PEER_BY_NAME)}; all that can be held to --isa")
    parser.add_argument("--profiles", default="a8,f32", help="other profiles, in rates alone")
    parser.add_argument("--sections", default=",".join(SECTIONS))
    parser.add_argument("--only", default="*", help="workloads by pattern, such as 'http.*'")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--isa", choices=list(INSTRUCTIONS), default=held_name(), help="what all contenders may use"
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the suite itself")
    parser.add_argument("--name", default="", help="of the files; default: latest, or quick")
    options = parser.parse_args()
    left_out = INSTRUCTIONS[options.isa].left_out
    known = [name for name in PEER_BY_NAME if name not in left_out]
    if options.peers is None:
        options.peers = ",".join(name for name in DEFAULT_PEERS if name not in left_out)
    options.peers = _chosen(parser, options.peers, known)
    options.sections = _chosen(parser, options.sections, SECTIONS)
    options.profiles = [name for name in options.profiles.split(",") if name]
    kind = "quick" if options.quick else "latest"
    options.name = options.name or (kind if options.isa == NATIVE else f"{kind}-{options.isa}")
    return options


def main() -> None:
    """Run what was asked for."""
    options = parse()
    hold(options.isa)
    facts = {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "command": shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]),
        "threads": options.threads,
        "repeats": options.repeats,
        "isa": options.isa,
        "machine": asdict(machine()),
        "model_work": asdict(model_work(model_path())),
    }
    before = ceilings(options.threads)
    samples = Samples()
    prepare(MOST_STREAMS)
    with opened_core() as core:
        prompts = Prompts(tokenizer_of(core).encode(corpus_text()))
    test = QUICK_RATE_TEST if options.quick else RATE_TEST
    workloads = [
        workload
        for workload in (QUICK_WORKLOADS if options.quick else WORKLOADS)
        if fnmatchcase(workload.name, options.only)
    ]
    peers = [PEER_BY_NAME[name] for name in options.peers]
    common = (options.threads, options.repeats, samples, console.print)
    try:
        if "rates" in options.sections:
            run_rates(_contenders(options), test, *common)
        if "footprints" in options.sections:
            run_footprints(peers, prompts, 4 if options.quick else 16, *common)
        if "servers" in options.sections:
            run_workloads(peers, workloads, prompts, *common)
    finally:  # a run that is stopped half-way still shows what it has
        facts["busy_after"] = round(busy_share(3.0), 3)
        facts["ceilings"] = asdict(_higher(before, ceilings(options.threads)))
        finish(Results(facts, _measured(test, workloads), samples.values), options.name)
    if "micro" in options.sections:
        run_micro(options.name)


def finish(results: Results, name: str) -> None:
    """Print and write everything that a run found."""
    RESULTS.mkdir(exist_ok=True)
    source = RESULTS / f"{name}.json"
    results.write(source)
    (RESULTS / f"{name}.md").write_text(markdown(results))
    # Wide enough for the tables where the output goes to a file.
    show(results, Console(width=max(console.width, 140)))
    draw = [str(install.chart()), "-m", "benchmarks.chart", str(source)]
    subprocess.run([*draw, str(RESULTS / f"{name}.png")], check=True, cwd=HERE.parent)
    console.print(f"wrote {source} and the same as .md and .png")


def run_micro(name: str) -> None:
    """The micro-benchmarks that are there, their output printed and kept."""
    output = RESULTS / f"{name}-micro.txt"
    found = [module for module in MICRO if (HERE / f"{module}.py").exists()]
    with output.open("w") as file:
        for module in found:
            console.print(f"running {module}")
            command = [sys.executable, "-m", f"benchmarks.{module}"]
            done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True)
            file.write(f"# {module}\n{done.stdout}\n")
            print(done.stdout)
            if done.returncode:
                console.print(f"[red]{module} failed[/red]\n{done.stderr[-2000:]}")


def _contenders(options: argparse.Namespace) -> Sequence[str]:
    profiles = [f"helios-{name}" for name in options.profiles]
    return [name for name in (*options.peers, *profiles) if name in CONTENDERS]


def _measured(test: RateTest, workloads: Sequence[Workload]) -> dict[str, Measured]:
    """Everything a run may have measured, in the order in which it is shown."""
    rates = {name: Measured(_rate_title(name), "tokens/s", True) for name in test.names}
    asked = {w.name: Measured(w.title, w.unit, w.more) for w in workloads}
    return {**rates, **asked, **FOOTPRINTS}


def _rate_title(name: str) -> str:
    kind, count = name[:2], int(name[2:])
    return f"{'prefill' if kind == 'pp' else 'decode'} of {count:,} tokens without HTTP"


def _higher(a: Ceilings, b: Ceilings) -> Ceilings:
    """The higher of each limit: a limit is what was possible at all."""
    first, second = asdict(a), asdict(b)
    return Ceilings(**{name: max(first[name], second[name]) for name in first})


def _chosen(parser: argparse.ArgumentParser, text: str, known: Sequence[str]) -> list[str]:
    names = [name for name in text.split(",") if name]
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"{', '.join(unknown)}: choose from {', '.join(known)}")
    return names


if __name__ == "__main__":
    main()
