"""`helios run`: a few greedy steps of one request, with chosen values kept for inspection."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from helios.cli.command import Argument, Option
from helios.cli.console import JsonFlag, byte_progress, out, print_json
from helios.cli.devices import device_runtime
from helios.cli.models import require_acceptance, resolve, weight_layout
from helios.compile.budget import parse_memory
from helios.compile.options import CompileOptions
from helios.core.reader import authenticate, authorize
from helios.core.trust import TrustStore
from helios.errors import ConfigurationError
from helios.frontend.model import Frontend, load_frontend
from helios.runtime.capture import Recorder, parse_steps
from helios.runtime.dump import write_dump
from helios.runtime.loader import LoadOptions, load_model
from helios.runtime.single import SingleRequest


def run(
    model: Annotated[str, Argument(help="Core, GGUF file, folder, or short name.")],
    prompt: Annotated[str, Option(help="Text, taken as it is.")] = "",
    tokens: Annotated[str, Option(help="A prompt of token ids instead: 1,2,3.")] = "",
    force: Annotated[str, Option(help="Consume these token ids instead of the sampled ones.")] = "",
    count: Annotated[int, Option(min=1, help="Steps: the prompt, then one token each.")] = 8,
    capture: Annotated[
        list[str] | None,
        Option(help="Values to keep, as 'layers.*.attention'; may be repeated."),
    ] = None,
    steps: Annotated[str, Option(help="Steps to keep values of: FIRST:LAST.")] = "",
    output: Annotated[
        Path | None, Option(names=("--output", "-o"), help="Write kept values to this file.")
    ] = None,
    chunk: Annotated[int, Option(min=0, help="Prompt tokens of one submission.")] = 0,
    device: Annotated[str, Option(help="Device runtime: cpu or reference.")] = "cpu",
    numerics: Annotated[str, Option(help="Numerical profile of the CPU.")] = "",
    threads: Annotated[int, Option(min=0, help="Threads of the CPU; 0: all.")] = 0,
    memory: Annotated[str, Option(help="Memory budget: bytes or a fraction.")] = "",
    accept: Annotated[str, Option(help="Publisher namespace that you accept.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Run one request greedily, outside any server, and keep chosen intermediate values.

    Two runs are compared by `helios diff-runs`.
    """
    wanted = parse_steps(steps)
    patterns = tuple(capture or ())
    if bool(patterns) != (output is not None):
        raise ConfigurationError(
            "kept values need a file, and a file needs values",
            field="--capture, --output",
            remedy="give both, or neither",
        )
    layout = weight_layout(device, approximate=False)
    resolved = resolve(model, layout=layout, show=not as_json)
    opened = authenticate(resolved.path, TrustStore())
    core = authorize(opened, require_acceptance(opened.namespace, accept, resolved.acceptance))
    options = LoadOptions(
        memory=parse_memory(memory) if memory else None,
        concurrency=1,
        compile=CompileOptions(retained=patterns),
    )
    with core, byte_progress("loading weights", show=not as_json) as update:
        tokenizer = core.resource(core.contract.model.frontend.tokenizer_resource).decode()
        loaded = load_model(
            core,
            device_runtime(device, numerics, threads),
            options,
            lambda _, done, total: update(done, total),
        )
    with loaded.model:
        frontend = load_frontend(loaded.contract.frontend, tokenizer, None)
        asked = _prompt(frontend, prompt, tokens, loaded.plan.limits.context)
        recorder = Recorder(loaded.compiled, loaded.storage, wanted)
        request = SingleRequest(loaded.model, recorder.watch)
        sampled = []
        for step in request.generate(asked, count, _ids("--force", force), chunk):
            recorder.end_step()
            sampled.append(step.token)
    if output is not None:
        told = {"prompt": json.dumps(list(asked)), "sampled": json.dumps(sampled)}
        write_dump(output, recorder.dump(told))
    _show(frontend, asked, sampled, recorder, output, as_json)


def _prompt(frontend: Frontend, text: str, ids: str, context: int) -> Sequence[int]:
    if bool(text) == bool(ids):
        raise ConfigurationError(
            "give a prompt once", field="--prompt, --tokens", remedy="give one of the two"
        )
    return _ids("--tokens", ids) if ids else frontend.text_prompt(text, context).tokens


def _ids(option: str, text: str) -> list[int]:
    try:
        found = [int(word) for word in text.split(",")] if text else []
    except ValueError:
        found = [-1]
    if any(token < 0 for token in found):
        raise ConfigurationError(
            "are no token ids", field=option, value=text, remedy="write them as 1,2,3"
        )
    return found


def _show(
    frontend: Frontend,
    prompt: Sequence[int],
    sampled: Sequence[int],
    recorder: Recorder,
    output: Path | None,
    as_json: bool,
) -> None:
    text = frontend.tokenizer.decode(sampled, at_start=False)
    if as_json:
        print_json(
            {
                "plan": recorder.compiled.plan.id,
                "prompt": list(prompt),
                "tokens": list(sampled),
                "text": text,
                "captured": {key: list(a.shape) for key, a in sorted(recorder.arrays.items())},
            }
        )
        return
    out.print(text, markup=False, highlight=False)
    if output is not None:
        out.print(f"[green]wrote[/green] {len(recorder.arrays)} values to {output}")
