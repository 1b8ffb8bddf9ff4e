"""The second half of `helios serve`: what is said of a start, and listening.

Written without `rich`, whose import would take a tenth of the time that starting takes.
"""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from helios.compile.budget import size_text
from helios.compile.report import StartupReport
from helios.core.reader import Core
from helios.server.app import build_app
from helios.server.assembly import Assembly
from helios.server.lifecycle import serve
from helios.server.settings import DRAIN_SECONDS

_LONG_NBYTES = 1 << 30


@contextmanager
def loading_progress(core: Core) -> Iterator[Callable[[str, int, int], None] | None]:
    """A progress bar where loading takes long enough to be watched."""
    if core.mapped_nbytes + core.copied_nbytes < _LONG_NBYTES or not sys.stderr.isatty():
        yield None
        return
    from helios.cli.console import byte_progress

    with byte_progress("loading weights") as update:
        yield lambda _, done, total: update(done, total)


def listen(
    assembly: Assembly, startup: StartupReport, host: str, port: int, api_key: str | None
) -> None:
    """Tell how start-up went, then serve until a signal ends it."""
    with startup.phase("application"):
        app = build_app(assembly.service, api_key=api_key)
    _say(*_told(startup))

    def ready(address: str) -> None:
        gc.freeze()
        gc.enable()
        names = ", ".join(assembly.service.model.names)
        _say(
            ("ready", f"{names} at {address}"),
            ("", f"{address}/v1/chat/completions, chat page at {address}/"),
            ("", f"Ctrl-C drains for {DRAIN_SECONDS} s"),
        )

    try:
        serve(app, host, port, ready=ready)
    finally:
        assembly.service.close()
        assembly.engine.close(0)


def _told(startup: StartupReport) -> Iterator[tuple[str, str]]:
    phases = "  ".join(f"{p.name} {p.seconds:.2f}" for p in startup.phases)
    yield "start-up", f"{startup.seconds:.2f} s  ({phases})"
    if startup.plan is None:
        return
    plan, limits = startup.plan, startup.plan.limits
    yield "device", f"{plan.device.kind} {plan.device.isa}, {plan.device.numerics}"
    yield (
        "limits",
        f"{limits.context:,} tokens of context, {limits.sequences} sequences, "
        f"{limits.pages:,} pages of {plan.page_tokens}",
    )
    sections = ", ".join(f"{s.name} {size_text(s.nbytes)}" for s in plan.sections if s.nbytes)
    yield "memory", f"{size_text(plan.total_nbytes)}: {sections}"
    yield "plan", plan.id[:16]


def _say(*lines: tuple[str, str]) -> None:
    text = "".join(f"{label:<8}  {said}\n" for label, said in lines)
    sys.stderr.write(text)
    sys.stderr.flush()
