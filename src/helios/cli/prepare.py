"""`helios prepare`: from a checkpoint to a signed core."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from rich.table import Table

from helios.cli.command import Argument, Option
from helios.cli.console import JsonFlag, byte_progress, nbytes_text, out, print_json
from helios.cli.models import packaged_folder
from helios.core.keys import SigningKey
from helios.core.trust import check_namespace, local_publisher
from helios.errors import ConfigurationError
from helios.ignition.export import prepare as prepare_core
from helios.ignition.options import CacheDType, PrepareOptions, SyntaxChoice, WeightLayout
from helios.ignition.preparation.syntax_names import (
    NONE,
    REASONING_SYNTAXES,
    TOOL_SYNTAXES,
    WRITTEN_BY,
)
from helios.ignition.recipes.packaged import PACKAGED

Context = Annotated[
    int | None, Option(help="Longest context, in tokens; default: the model's own.")
]
Concurrency = Annotated[int, Option(help="Requests that may run at once.")]
PrefillTokens = Annotated[int | None, Option(help="Prompt tokens of one step.")]
ScoredTokens = Annotated[int | None, Option(help="Scored prompt tokens of one step.")]
PageTokens = Annotated[int, Option(help="Tokens of one cache page, a power of two.")]
Layout = Annotated[
    str,
    Option(
        help="Matrices as the source stores them (source), or as the CPU's kernels read them (cpu)."
    ),
]
CacheType = Annotated[str, Option(help="Element type of the cache: f16, bf16 or f32.")]
DEFAULTS = PrepareOptions()


def _list_syntaxes() -> None:
    table = Table("option", "name", "written by", box=None)
    for option, names in (
        ("--tool-syntax", TOOL_SYNTAXES),
        ("--reasoning-syntax", REASONING_SYNTAXES),
    ):
        for name in names:
            table.add_row(option, name, WRITTEN_BY[name])
    out.print(table)


def prepare(
    source: Annotated[str, Argument(help="GGUF file, Hugging Face folder or short name.")],
    output: Annotated[Path, Option(names=("--output", "-o"), help="The core to write.")],
    context: Context = None,
    concurrency: Concurrency = DEFAULTS.concurrency,
    prefill_tokens: PrefillTokens = None,
    scored_tokens: ScoredTokens = None,
    page_tokens: PageTokens = DEFAULTS.page_tokens,
    cache_dtype: CacheType = DEFAULTS.cache_dtype,
    layout: Layout = DEFAULTS.layout,
    served_id: Annotated[str | None, Option(help="Model id that clients use.")] = None,
    alias: Annotated[list[str] | None, Option(help="Another id; may be repeated.")] = None,
    chat_template: Annotated[
        Path | None, Option(help="File of a chat template to use instead of the model's.")
    ] = None,
    tool_syntax: Annotated[
        str | None, Option(help="How the model writes tool calls; default: recognised.")
    ] = None,
    no_tool_syntax: Annotated[
        bool, Option(names=("--no-tool-syntax",), help="Prepare it without tools.")
    ] = False,
    reasoning_syntax: Annotated[
        str | None, Option(help="How the model marks reasoning; default: recognised.")
    ] = None,
    no_reasoning_syntax: Annotated[
        bool, Option(names=("--no-reasoning-syntax",), help="Take reasoning for ordinary text.")
    ] = False,
    thinking_switch: Annotated[
        list[str] | None,
        Option(help="Template variable that switches reasoning; may be repeated."),
    ] = None,
    list_syntaxes: Annotated[
        bool,
        Option(names=("--list-syntaxes",), instead=_list_syntaxes, help="Name them and exit."),
    ] = False,
    key: Annotated[Path | None, Option(help="Private key; default: the local one.")] = None,
    namespace: Annotated[str, Option(help="Publisher namespace of that key.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Prepare a checkpoint into a signed core."""
    options = PrepareOptions(
        context=context,
        concurrency=concurrency,
        prefill_tokens=prefill_tokens,
        scored_tokens=scored_tokens,
        page_tokens=page_tokens,
        cache_dtype=_cache_dtype(cache_dtype),
        served_id=served_id,
        aliases=tuple(alias or ()),
        syntaxes=SyntaxChoice(
            tools=_syntax("--tool-syntax", tool_syntax, no_tool_syntax),
            reasoning=_syntax("--reasoning-syntax", reasoning_syntax, no_reasoning_syntax),
            template=_template(chat_template),
            switches=None if thinking_switch is None else tuple(thinking_switch),
        ),
        layout=_layout(layout),
    )
    publisher, signing_key = _publisher(key, namespace)
    path = _source(source)
    start = time.perf_counter()
    with byte_progress("preparing", show=not as_json) as update:
        summary = prepare_core(
            path, output, options, key=signing_key, namespace=publisher, progress=update
        )
    seconds = time.perf_counter() - start
    if as_json:
        told = {"path": str(summary.path), "layout": options.layout, "seconds": round(seconds, 3)}
        print_json({**asdict(summary), **told})
        return
    out.print(f"[green]wrote[/green] {output}  {nbytes_text(summary.nbytes)}", highlight=False)
    out.print(
        f"      {summary.resources} resources, signed for {summary.namespace} by "
        f"{summary.key_id}, in {seconds:.1f} s",
        highlight=False,
    )


def _source(source: str) -> Path:
    if source in PACKAGED and not Path(source).exists():
        path = PACKAGED[source].locate(packaged_folder())
        PACKAGED[source].check(path)
        return path
    return Path(source)


def _publisher(key: Path | None, namespace: str) -> tuple[str, SigningKey]:
    if key is None and not namespace:
        return local_publisher()
    if key is None or not namespace:
        raise ConfigurationError(
            "a key signs for a namespace; give both",
            field="--key, --namespace",
            value=str(key or namespace),
            remedy="give both, or neither to sign as the local publisher",
        )
    return check_namespace(namespace, field="--namespace"), SigningKey.load(key)


def _template(path: Path | None) -> str | None:
    try:
        return None if path is None else path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"can't be read: {error}",
            field="--chat-template",
            value=str(path),
            remedy="give a text file",
        ) from None


def _syntax(option: str, name: str | None, none: bool) -> str | None:
    if name is not None and none:
        raise ConfigurationError(
            "excludes its opposite",
            field=option,
            value=name,
            remedy=f"give one of {option} and --no-{option[2:]}",
        )
    return NONE if none else name


def _cache_dtype(value: str) -> CacheDType:
    choices: tuple[CacheDType, ...] = ("f16", "bf16", "f32")
    for choice in choices:
        if value == choice:
            return choice
    raise ConfigurationError(
        "unknown element type", field="--cache-dtype", value=value, remedy="f16, bf16 or f32"
    )


def _layout(value: str) -> WeightLayout:
    choices: tuple[WeightLayout, ...] = ("source", "cpu")
    for choice in choices:
        if value == choice:
            return choice
    raise ConfigurationError(
        "unknown layout",
        field="--layout",
        value=value,
        remedy="source, or cpu, which is the same for every instruction set",
    )
