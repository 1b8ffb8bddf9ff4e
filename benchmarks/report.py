"""Results as tables: on a terminal, and as Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.ceilings import Ceilings, ModelWork
from benchmarks.instructions import limitation
from benchmarks.results import Goal, Results, Row, goal, rows
from benchmarks.spread import Spread, number, text


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: a title, a head, and as many cells in every line."""

    title: str
    head: Sequence[str]
    lines: Sequence[Sequence[str]]


def grids(results: Results) -> list[Grid]:
    """All tables of a run."""
    found = rows(results)
    return [
        _medians("Medians (lowest to highest)", found),
        _ratios(found),
        *_shares(results, found),
    ]


def markdown(results: Results) -> str:
    """The whole report as Markdown."""
    parts = [facts_text(results.facts)]
    for grid in grids(results):
        rule = ["---", *("---:" for _ in grid.head[1:])]
        lines = [_line(grid.head), _line(rule), *map(_line, grid.lines)]
        parts.append(f"### {grid.title}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def show(results: Results, console: Console) -> None:
    """Print the tables."""
    console.print(facts_text(results.facts), highlight=False)
    for grid in grids(results):
        table = Table(title=grid.title, title_justify="left")
        for index, name in enumerate(grid.head):
            table.add_column(name, justify="right" if index else "left")
        for line in grid.lines:
            table.add_row(*line)
        console.print(table, highlight=False)


def facts_text(facts: Mapping[str, Any]) -> str:
    """On what, when and how it was measured, and whether the machine was quiet."""
    machine, limits = facts["machine"], facts["ceilings"]
    busy = max(machine["busy"], facts["busy_after"])
    state = "quiet" if busy < 0.1 else f"NOT quiet: other work took {busy:.0%} of it"
    return (
        f"{facts['date']}, {machine['processor']}, {machine['processors']} processors "
        f"({machine['instructions']}{limitation(facts)}), "
        f"{machine['memory_gb']} GB; the machine was {state}. "
        f"`{facts['command']}`, {facts['threads']} threads, {facts['repeats']} repeats, "
        f"Helios {machine['helios']}. "
        f"Limits: {limits['read_bytes'] / 1e9:.1f} GB/s read, "
        f"{limits['f32_flops'] / 1e9:.0f} GFLOP/s float32, "
        f"{limits['i8_macs'] / 1e9:.0f} G byte multiply-accumulates/s."
    )


def _medians(title: str, found: Sequence[Row]) -> Grid:
    peers = list(dict.fromkeys(peer for row in found for peer in row.peers))
    lines = [
        [
            f"{row.measured.title}, {row.measured.unit}",
            *(text(row.peers[peer]) if peer in row.peers else "–" for peer in peers),
        ]
        for row in found
    ]
    return Grid(title, ["", *peers], lines)


def _ratios(found: Sequence[Row]) -> Grid:
    lines = []
    for row in found:
        if row.to_best is None:
            continue
        wanted = goal(row.name) or Goal((), 0)
        base, best = _ratio(row.to_base), _ratio(row.to_best)
        to_base = _verdict(row.to_base, wanted.to_base)
        to_best = _verdict(row.to_best, wanted.to_best)
        lines.append([row.measured.title, base, to_base, f"{best} {row.best}", to_best])
    head = ["times better than", "llama.cpp, same file", "goal", "the best peer", "goal"]
    return Grid("Helios to its peers, repeat by repeat; above 1 it is ahead", head, lines)


def _ratio(values: Spread | None) -> str:
    return text(values) if values else "–"


def _verdict(values: Spread | None, wanted: float | None) -> str:
    if not wanted or values is None:
        return ""
    return f"{number(wanted)} {'met' if values.median >= wanted else 'not met'}"


def _shares(results: Results, found: Sequence[Row]) -> list[Grid]:
    limits = Ceilings(**results.facts["ceilings"])
    work = ModelWork(**results.facts["model_work"])
    lines = []
    for row in found:
        if row.name.startswith("pp"):
            share, limit = work.prefill_share, "byte products"
        elif row.name.startswith("tg") or row.name == "http.1":
            share, limit = work.decode_share, "memory reads"
        else:
            continue
        for peer, values in row.peers.items():
            lines.append([row.measured.title, peer, limit, f"{share(values.median, limits):.0%}"])
    if not lines:
        return []
    return [Grid("Share of the machine's limits", ["work", "peer", "limit", "share"], lines)]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
