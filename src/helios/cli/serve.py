"""`helios serve`: a model over OpenAI-compatible HTTP.

The core's bytes are read and checked by threads while the rest of the server is imported and the
model is compiled.
"""

import gc
import os
from pathlib import Path
from typing import Annotated

from helios.cli.command import Argument, Option
from helios.cli.models import require_acceptance, resolve, weight_layout
from helios.compile.report import StartupReport
from helios.core.reader import authenticate, authorize
from helios.core.trust import TrustStore
from helios.server.settings import DEFAULT_HOST, DEFAULT_PORT, Limits

Memory = Annotated[
    str, Option(help="Memory budget: bytes, 2GiB, or a fraction such as 0.5; default: auto.")
]


def serve(
    model: Annotated[str, Argument(help="Core, GGUF file, folder, or short name.")],
    host: Annotated[str, Option(help="Address to listen on.")] = DEFAULT_HOST,
    port: Annotated[int, Option(help="Port to listen on; 0 takes a free one.")] = DEFAULT_PORT,
    device: Annotated[str, Option(help="Device runtime: cpu or reference.")] = "cpu",
    memory: Memory = "",
    context: Annotated[int | None, Option(help="Tokens of context; checked.")] = None,
    concurrency: Annotated[int | None, Option(help="Requests at once; checked.")] = None,
    batch_tokens: Annotated[int | None, Option(help="Tokens of one step; checked.")] = None,
    pages: Annotated[int | None, Option(help="Cache pages; checked.")] = None,
    numerics: Annotated[str, Option(help="Numerical profile: a8, mixed, a16, f32.")] = "",
    threads: Annotated[int, Option(min=0, help="Threads of the CPU; 0: all.")] = 0,
    materialize: Annotated[
        list[str] | None, Option(help="Allow an approximate layout: NAME=BOUND.")
    ] = None,
    step_tokens: Annotated[
        int, Option(help="Most tokens of a step that decodes, for latency; 0: no bound.")
    ] = 0,
    prefix_cache: Annotated[bool, Option(help="Reuse the history of equal prefixes.")] = True,
    accept: Annotated[str, Option(help="Publisher namespace that you accept.")] = "",
    queue: Annotated[int, Option(help="Requests that may wait.")] = Limits().queue_capacity,
    api_key: Annotated[
        str, Option(env="HELIOS_API_KEY", help="Ask clients for this bearer key.")
    ] = "",
    sse_keep_alive: Annotated[
        float, Option(min=0, help="Seconds before a silent stream gets a comment; 0: never.")
    ] = Limits().sse_keep_alive,
    no_tuning: Annotated[
        bool,
        Option(names=("--no-tuning",), help="Keep neutral choices; saves a moment at start-up."),
    ] = False,
    refresh: Annotated[bool, Option(help="Prepare a checkpoint again.")] = False,
    report: Annotated[Path | None, Option(help="Write the start-up report here.")] = None,
) -> None:
    """Serve a model. A checkpoint is prepared first, once, under the local publisher."""
    gc.disable()  # until requests come: what is made before them stays
    if device == "cpu":
        # It multiplies natively: what NumPy brings for that would only start threads of its own.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    startup = StartupReport()
    try:
        with startup.phase("prepare"):
            layout = weight_layout(device, bool(materialize))
            resolved = resolve(model, layout=layout, refresh=refresh)
        with startup.phase("trust"):
            opened = authenticate(resolved.path, TrustStore())
            core = authorize(
                opened, require_acceptance(opened.namespace, accept, resolved.acceptance)
            )
        core.verify_ahead()
        with startup.phase("import"):
            from helios.cli.devices import device_runtime
            from helios.cli.serving import listen, loading_progress
            from helios.compile.budget import parse_memory
            from helios.compile.options import CompileOptions, parse_approximation
            from helios.runtime.loader import LoadOptions
            from helios.runtime.tuning import TUNING_SECONDS
            from helios.scheduler.policy import SchedulerPolicy
            from helios.server.assembly import assemble
        options = LoadOptions(
            memory=parse_memory(memory) if memory else None,
            context=context,
            concurrency=concurrency,
            batch_tokens=batch_tokens,
            pages=pages,
            tuning_seconds=0.0 if no_tuning else TUNING_SECONDS,
            compile=CompileOptions(
                approximate=dict(parse_approximation(text) for text in materialize or [])
            ),
        )
        with core, loading_progress(core) as progress:
            assembly = assemble(
                core,
                device_runtime(device, numerics, threads),
                options,
                Limits(queue_capacity=queue, sse_keep_alive=sse_keep_alive),
                progress,
                startup,
                SchedulerPolicy(step_tokens=step_tokens, prefix_cache=prefix_cache),
            )
    finally:
        if report is not None:
            startup.write(report)
    listen(assembly, startup, host, port, api_key or None)
