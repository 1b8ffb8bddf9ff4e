"""The integrity check: every page, slot and snapshot row is accounted for, exactly once."""

from collections import Counter
from collections.abc import Collection, Iterable

from helios.scheduler.job import Job
from helios.scheduler.residency import Residency


def residency_problems(residency: Residency, seated: Collection[Job]) -> list[str]:
    """What is wrong about pages: leaked, owned twice, or counted wrongly."""
    problems = []
    owners: Counter[int] = Counter()
    nodes = list(residency.tree.nodes())
    owners.update(node.page for node in nodes)
    for job in seated:
        for index, page in enumerate(job.pages):
            if index + 1 >= len(job.path) or job.path[index + 1].page != page:
                owners[page] += 1
    for page in range(residency.pool.total):
        count = owners[page] + residency.pool.is_free(page)
        if count != 1:
            problems.append(f"page {page} has {count} owners")
    references = Counter(node for job in seated for node in job.path)
    for node in [*nodes, *residency.tree.roots()]:
        if node.references != references[node]:
            problems.append(f"node of page {node.page} counts {node.references} references")
    if residency.tree.unreferenced != sum(not node.references for node in nodes):
        problems.append("unreferenced pages are miscounted")
    if residency.tree.pages != len(nodes):
        problems.append("cached pages are miscounted")
    return problems


def row_problems(
    residency: Residency, in_flight: Iterable[int], seated: Collection[Job]
) -> list[str]:
    """What is wrong about snapshot rows."""
    rows = residency.rows
    holders = Counter(tail.row for tail in rows.tails())
    holders.update(in_flight)
    problems = [f"row {row} has {count} holders" for row, count in holders.items() if count > 1]
    if rows.free + holders.total() != rows.total:
        problems.append(f"{rows.total - rows.free - holders.total()} snapshot rows are lost")
    pins = Counter(job.tail for job in seated if job.tail is not None)
    for tail in rows.tails():
        if tail.pins != pins[tail]:
            problems.append(f"row {tail.row} counts {tail.pins} readers")
        if tail not in tail.node.tails:
            problems.append(f"row {tail.row} hangs nowhere")
    return problems


def slot_problems(slots: int, free: list[int], seated: Collection[Job]) -> list[str]:
    """What is wrong about slots."""
    holders = Counter(free)
    holders.update(job.slot for job in seated)
    if holders != Counter(range(slots)):
        return [f"slots are held by {dict(holders)}"]
    return []
