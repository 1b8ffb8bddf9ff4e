"""From what a user calls a model to a core on disk: a core, a checkpoint, or a short name.

A checkpoint is prepared under the local publisher into a cache, once. The cached core's name is a
digest of everything that its bytes depend on, so a changed file, option or engine prepares anew.
"""

import glob
import hashlib
import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import helios
from helios.core.body import FORMAT_VERSION
from helios.core.keys import SigningKey
from helios.core.layout import MAGIC
from helios.core.trust import local_publisher
from helios.errors import ConfigurationError, TrustError
from helios.records import dataclass

if TYPE_CHECKING:
    from helios.ignition.options import PrepareOptions, WeightLayout


@dataclass(frozen=True, slots=True)
class ResolvedCore:
    """A core on disk, and the publisher namespace that may be accepted without asking."""

    path: Path
    acceptance: str
    prepared: bool = False  # just now


def cache_folder() -> Path:
    """Where prepared checkpoints are kept: `$HELIOS_CACHE`, or `~/.cache/helios`."""
    if named := os.environ.get("HELIOS_CACHE"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "helios"


def packaged_folder() -> Path:
    """Where packaged models that come in parts are joined."""
    return cache_folder() / "packaged"


def is_core(path: Path) -> bool:
    """Whether a file begins as a core does."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def resolve(
    model: str,
    *,
    layout: "WeightLayout" = "source",
    refresh: bool = False,
    show: bool = True,
) -> ResolvedCore:
    """The core of a model; prepares a checkpoint unless its core is in the cache already.

    A core keeps its own layout; `layout` is that of a checkpoint that is prepared here. The local
    publisher's cores are accepted by themselves, since this user made them.
    """
    namespace, key = local_publisher()
    path = Path(model)
    if is_core(path):
        return ResolvedCore(path, namespace)
    from helios.ignition.options import PrepareOptions
    from helios.ignition.recipes.packaged import PACKAGED

    options = PrepareOptions(layout=layout)
    if path.exists():
        return _cached(path, options, namespace, key, refresh, show)
    if model in PACKAGED:
        packaged = PACKAGED[model]
        source = packaged.locate(packaged_folder())
        options = replace(options, aliases=(*options.aliases, model))
        core = _cache_path(source, options, namespace)
        if refresh or not core.exists():
            from helios.cli.console import byte_progress

            with byte_progress("checking", show=show) as update:
                packaged.check(source, update)
        return _cached(source, options, namespace, key, refresh, show, name=model)
    raise ConfigurationError(
        "no such file, folder or short name",
        field="model",
        value=model,
        remedy="give a core, a GGUF file, a Hugging Face folder, or one of " + ", ".join(PACKAGED),
    )


def weight_layout(device: str, approximate: bool) -> "WeightLayout":
    """The layout that a device maps. What is to be approximated must be as the source has it."""
    return "cpu" if device == "cpu" and not approximate else "source"


def require_acceptance(namespace: str, accepted: str, local: str) -> str:
    """The acceptance to use: what the user gave, else the local publisher's own."""
    if accepted:
        return accepted
    if namespace != local:
        raise TrustError(
            "this core comes from a publisher that you have not accepted",
            field="--accept",
            value=namespace,
            remedy=f"if you trust it, add --accept {namespace}",
        )
    return local


def _cached(
    source: Path,
    options: "PrepareOptions",
    namespace: str,
    key: SigningKey,
    refresh: bool,
    show: bool,
    name: str = "",
) -> ResolvedCore:
    core = _cache_path(source, options, namespace)
    if core.exists() and not refresh:
        return ResolvedCore(core, namespace)
    from helios.cli.console import byte_progress
    from helios.ignition.export import prepare

    core.parent.mkdir(parents=True, exist_ok=True)
    with byte_progress(f"preparing {name or source.name}", show=show) as update:
        prepare(source, core, options, key=key, namespace=namespace, progress=update)
    return ResolvedCore(core, namespace, prepared=True)


def _cache_path(source: Path, options: "PrepareOptions", namespace: str) -> Path:
    facts = {
        "source": [
            (str(f.resolve()), f.stat().st_size, f.stat().st_mtime_ns) for f in _files(source)
        ],
        "options": asdict(options),
        "engine": helios.__version__,
        "format": FORMAT_VERSION,
        "publisher": namespace,
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return cache_folder() / f"{source.stem}-{digest[:16]}.core"


def _files(source: Path) -> list[Path]:
    """Every file that a checkpoint may consist of."""
    if source.is_dir():
        return sorted(
            p for pattern in ("*", "*/*.jinja") for p in source.glob(pattern) if p.is_file()
        )
    from helios.ignition.sources.split_name import SPLIT_NAME

    if split := SPLIT_NAME.fullmatch(source.name):
        return sorted(source.parent.glob(f"{glob.escape(split[1])}-*-of-{split[3]}.gguf"))
    return [source]
