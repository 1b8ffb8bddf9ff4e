"""The model as Helios serves it here: prepared into a core of its own, under a trust of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.places import PEERS
from helios.compile.options import CompileOptions
from helios.contract.prepare import prepare_contract
from helios.core.reader import Core, authenticate, authorize
from helios.core.trust import TrustStore
from helios.frontend.model import Frontend, load_frontend
from helios.frontend.tokenizer import Tokenizer
from helios.runtime.cpu.device import CpuRuntime
from helios.runtime.cpu.numerics import DEFAULT_NUMERICS
from helios.runtime.loader import LoadedModel, LoadOptions, load_model

HELIOS = (sys.executable, "-c", "from helios.cli.main import main; main()")
HOME = PEERS / "helios" / "home"
CORE = PEERS / "helios" / "smollm2.core"
ENVIRONMENT = {
    "HELIOS_HOME": str(HOME),
    "HELIOS_CACHE": str(PEERS / "helios" / "cache"),
    "PYTHONDONTWRITEBYTECODE": "",  # an installed server does not compile itself at every start
}


def prepare(concurrency: int) -> None:
    """Write `CORE` anew, in the CPU's layout and for as many streams at once."""
    CORE.parent.mkdir(parents=True, exist_ok=True)
    command = [*HELIOS, "prepare", "smollm2", "--output", str(CORE), "--alias", "smollm2"]
    subprocess.run(
        [*command, "--layout", "cpu", "--concurrency", str(concurrency), "--json"],
        check=True,
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.DEVNULL,
    )


def serve_command(port: int, threads: int) -> list[str]:
    """How `CORE` is served."""
    command = [*HELIOS, "serve", str(CORE), "--port", str(port), "--threads", str(threads)]
    return [*command, "--memory", "1GiB"]


@contextmanager
def opened_core() -> Iterator[Core]:
    """`CORE`, authenticated and accepted."""
    opened = authenticate(CORE, TrustStore(HOME))
    with authorize(opened, opened.namespace) as core:
        yield core


def frontend_of(core: Core) -> Frontend:
    """The core's tokenizer, template and end tokens together."""
    syntax = prepare_contract(core.contract, core.manifest).frontend
    template = core.resource(syntax.template_resource).decode()
    return load_frontend(syntax, core.resource(syntax.tokenizer_resource).decode(), template)


def tokenizer_of(core: Core) -> Tokenizer:
    """The core's own tokenizer."""
    return Tokenizer(core.resource(core.contract.model.frontend.tokenizer_resource).decode())


@contextmanager
def loaded_core(numerics: str, threads: int, retained: Sequence[str] = ()) -> Iterator[LoadedModel]:
    """`CORE` on the CPU runtime, with room for a request of 4,096 tokens.

    An empty profile is the default one.
    """
    options = LoadOptions(
        memory=1 << 30, context=4096, compile=CompileOptions(retained=tuple(retained))
    )
    with opened_core() as core:
        loaded = load_model(core, CpuRuntime(threads, numerics or DEFAULT_NUMERICS), options)
    with loaded.model:
        yield loaded
