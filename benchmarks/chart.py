"""Draws a run as a chart, in an environment that has matplotlib: `python -m benchmarks.chart`.

Every workload is a group of bars, one a peer: how many times better than llama.cpp on the same
file, on a logarithmic scale, so that twice as good and half as good look alike.
"""

import sys
from pathlib import Path

import matplotlib

from benchmarks.instructions import limitation
from benchmarks.results import BASE, OURS, Row, advantage, is_ours, read_results, rows

matplotlib.use("Agg")
from matplotlib import pyplot

COLOURS = {
    OURS: "#d9480f",
    "helios-a8": "#fab005",
    "helios-a16": "#ffa94d",
    "helios-f32": "#ffe8cc",
    BASE: "#495057",
    "llama.cpp-q4_0": "#868e96",
    "openvino": "#4263eb",
}
LEFT_OUT = ("resident.end",)


def draw(source: Path, output: Path) -> None:
    """Read results, write a PNG."""
    results = read_results(source)
    found = [r for r in rows(results) if BASE in r.peers and r.name not in LEFT_OUT]
    known = list(dict.fromkeys(peer for row in found for peer in row.peers if peer != BASE))
    peers = sorted(known, key=lambda peer: not is_ours(peer))
    if not peers:
        print(f"no chart: nothing was measured beside {BASE}")
        return
    height = 1.2 + len(found) * (0.16 * len(peers) + 0.18)
    figure, axes = pyplot.subplots(figsize=(9, height), layout="constrained")
    thickness = 0.85 / max(len(peers), 1)
    for peer in peers:
        _bars(axes, found, peer, peers, thickness)
    axes.axvline(1, color=COLOURS[BASE], linewidth=1)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    axes.set_yticks(range(len(found)), [row.measured.title for row in found])
    axes.invert_yaxis()
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"times better than {BASE} on the same file")
    machine = results.facts["machine"]
    axes.set_title(
        f"SmolLM2-135M-Instruct Q4_1, greedy, {results.facts['threads']} threads, "
        f"{machine['processor']}{limitation(results.facts)}",
        loc="left",
        fontsize=10,
    )
    axes.legend(frameon=False, loc="lower right", fontsize=8)
    figure.savefig(output, dpi=150)


def _bars(
    axes: "pyplot.Axes", found: list[Row], peer: str, peers: list[str], thickness: float
) -> None:
    """The bars of one peer; in a group only the peers that were measured take room."""
    places, lengths = [], []
    for index, row in enumerate(found):
        present = [p for p in peers if p in row.peers]
        ratio = advantage(row, peer)
        if ratio is not None:
            places.append(index + (present.index(peer) - (len(present) - 1) / 2) * thickness)
            lengths.append(ratio)
    widths = [length - 1 for length in lengths]
    bars = axes.barh(places, widths, thickness, left=1, color=COLOURS.get(peer), label=peer)
    axes.bar_label(bars, labels=[_label(length) for length in lengths], fontsize=6.5, padding=2)


def _label(ratio: float) -> str:
    if ratio < 1:
        return f"{ratio:.2f}"
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
