"""How a plan looks in a terminal."""

from collections import Counter
from collections.abc import Sequence

from rich.bar import Bar
from rich.console import Group
from rich.table import Table

from helios.cli.console import nbytes_text, out
from helios.compile.compare import Difference
from helios.compile.fit import Fitted, frontier
from helios.compile.plan import OpPlan, Plan

_BAR_WIDTH = 40


def print_plan(fitted: Fitted) -> None:
    """Identity and limits, the memory table with its bar, and what else would fit."""
    made = fitted.compiled.plan
    report = fitted.compiled.memory_report
    assert report is not None  # fitting attaches it
    limits = made.limits
    facts = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    facts.add_row("plan", made.id[:16])
    facts.add_row("device", str(made.device))
    facts.add_row("budget", f"{nbytes_text(report.budget_nbytes)}, {report.budget_origin}")
    facts.add_row(
        "limits",
        f"{limits.context:,} tokens of context, {limits.sequences} at once, "
        f"{limits.batch_tokens} tokens a step",
    )
    facts.add_row(
        "cache",
        f"{limits.pages:,} pages of {made.page_tokens} tokens, {limits.snapshots} snapshots",
    )
    facts.add_row(
        "peaks",
        f"prefill {nbytes_text(report.prefill_peak_nbytes)}, "
        f"decode {nbytes_text(report.decode_peak_nbytes)}",
    )
    out.print(
        Group(facts, "", _memory_table(made, report.budget_nbytes), "", _frontier_table(fitted)),
        highlight=False,
    )


def _memory_table(made: Plan, budget: int) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), title="memory", title_justify="left")
    table.add_column("section")
    table.add_column("size", justify="right")
    table.add_column("of the budget", justify="right")
    table.add_column("")
    spent = 0
    for section in made.sections:
        if not section.nbytes:
            continue
        bar = Bar(budget, spent, spent + section.nbytes, width=_BAR_WIDTH, color="cyan")
        spent += section.nbytes
        share = f"{section.nbytes / budget:.1%}"
        table.add_row(section.name, nbytes_text(section.nbytes), share, bar)
    total = Bar(budget, 0, spent, width=_BAR_WIDTH, color="green")
    table.add_row("total", nbytes_text(spent), f"{spent / budget:.1%}", total, style="bold")
    return table


def _frontier_table(fitted: Fitted) -> Table:
    table = Table(
        box=None, padding=(0, 2, 0, 0), title="what would fit the budget", title_justify="left"
    )
    table.add_column("context", justify="right")
    table.add_column("sequences that share pages", justify="right")
    table.add_column("all at full context", justify="right")
    for point in frontier(fitted.auto):
        table.add_row(
            f"{point.context:,}", *(str(n) if n else "-" for n in (point.shared, point.full))
        )
    return table


def print_explanation(made: Plan) -> None:
    """Every distinct decision: provider, count, reason and rejections; then the weights."""
    counts: Counter[OpPlan] = Counter(op for program in made.programs for op in program.ops)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("operation", "times", "provider", "why"):
        table.add_column(name, justify="right" if name == "times" else "left")
    for op, count in sorted(counts.items(), key=lambda item: (item[0].kind, item[0].provider)):
        table.add_row(op.kind, str(count), op.provider, op.reason)
        for rejection in op.rejected:
            table.add_row("", "", f"not {rejection.provider}", rejection.reason, style="dim")
    out.print(table, "", _weights_table(made), sep="\n", highlight=False)


def _weights_table(made: Plan) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("stored as", "becomes", "by", "weights", "size"):
        table.add_column(name, justify="right" if name in ("weights", "size") else "left")
    groups: dict[tuple[str, str, str], list[int]] = {}
    for weight in made.weights:
        how = weight.materializer + (
            ", mapped" if weight.mapped else f", within {weight.bound:g}" if weight.bound else ""
        )
        groups.setdefault((weight.storage, weight.layout, how), []).append(weight.nbytes)
    for (storage, layout, how), sizes in sorted(groups.items()):
        table.add_row(storage, layout, how, str(len(sizes)), nbytes_text(sum(sizes)))
    return table


def difference_table(differences: Sequence[Difference], other: str) -> Table:
    """What differs, side by side; bytes with their change."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("part", "what", other, "this plan", "change"):
        table.add_column(name, justify="right" if name == "change" else "left")
    for found in differences:
        sizes = found.part in ("memory", "weights")
        table.add_row(
            found.part,
            found.name,
            _cell(found.left, sizes),
            _cell(found.right, sizes),
            _change(found) if sizes else "",
        )
    if not differences:
        table.add_row("", "nothing differs", "", "", "")
    return table


def _cell(value: object, sizes: bool) -> str:
    if value is None:
        return "-"
    if sizes and isinstance(value, int):
        return nbytes_text(value)
    if isinstance(value, dict):
        return ", ".join(f"{name} ×{count}" for name, count in value.items())
    text = str(value)
    return text if len(text) <= 40 else text[:16] + "…"


def _change(found: Difference) -> str:
    before, after = (v if isinstance(v, int) else 0 for v in (found.left, found.right))
    sign = "+" if after >= before else "-"
    return sign + nbytes_text(abs(after - before))
