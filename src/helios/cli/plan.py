"""`helios plan`: what fits, to the byte, before anything is loaded."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from helios.cli.command import Argument, Option
from helios.cli.console import JsonFlag, out, print_json
from helios.cli.devices import device_catalog
from helios.cli.models import is_core, packaged_folder, weight_layout
from helios.cli.plan_tables import difference_table, print_explanation, print_plan
from helios.compile.budget import Budget, available_nbytes, budget, parse_memory
from helios.compile.canonical import plain
from helios.compile.capabilities import CapabilityCatalog
from helios.compile.compare import compare
from helios.compile.fit import Fitted, fit_model, frontier
from helios.compile.options import CompileOptions, parse_approximation
from helios.compile.paper import paper_composition
from helios.compile.request import Request
from helios.contract.prepare import prepare_contract
from helios.contract.prepared import PreparedContract
from helios.core.reader import authenticate, authorize
from helios.core.trust import TrustStore
from helios.errors import ConfigurationError
from helios.ignition.options import PrepareOptions, WeightLayout
from helios.ignition.outline import outline
from helios.ignition.recipes.packaged import PACKAGED
from helios.ignition.sources.open import open_source
from helios.program.ir import Program
from helios.records import dataclass


def plan(
    model: Annotated[str, Argument(help="Core, GGUF file, checkpoint folder or short name.")] = "",
    memory: Annotated[
        str, Option(help="Budget: bytes as 8GiB, or a fraction of what is free as 0.5.")
    ] = "",
    context: Annotated[int | None, Option(help="Tokens of context; checked.")] = None,
    concurrency: Annotated[int | None, Option(help="Requests at once; checked.")] = None,
    batch_tokens: Annotated[int | None, Option(help="Tokens of one step; checked.")] = None,
    pages: Annotated[int | None, Option(help="Cache pages; checked.")] = None,
    snapshots: Annotated[int | None, Option(help="Snapshot rows; checked.")] = None,
    device: Annotated[str, Option(help="cpu, cpu:avx512, reference, or a catalog file.")] = "cpu",
    numerics: Annotated[str, Option(help="Numerical profile of the CPU.")] = "",
    threads: Annotated[int, Option(min=0, help="Threads of the CPU; 0: all.")] = 0,
    materialize: Annotated[
        list[str] | None, Option(help="Allow an approximate layout: NAME=BOUND.")
    ] = None,
    explain: Annotated[
        bool, Option(names=("--explain",), help="Say why each provider was chosen or rejected.")
    ] = False,
    diff: Annotated[Path | None, Option(help="Compare with a plan that --json wrote.")] = None,
    write_catalog: Annotated[
        Path | None, Option(help="Write the device's catalog to this file.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Plan a model for a device: reads headers only, and allocates no device memory."""
    catalog = device_catalog(device, numerics, threads)
    if write_catalog is not None:
        memory_nbytes = catalog.memory or available_nbytes()
        write_catalog.write_text(catalog.with_memory(memory_nbytes).to_json() + "\n")
        if not model:
            return
    if not model:
        raise ConfigurationError(
            "no model is given", field="MODEL", remedy="name a core, a checkpoint or a short name"
        )
    subject = read_subject(model, weight_layout(catalog.device.kind, bool(materialize)))
    options = CompileOptions(
        approximate=dict(parse_approximation(text) for text in materialize or []),
        copied=subject.copied,
    )
    request = Request(context, concurrency, batch_tokens, pages, snapshots)
    fitted = fit_model(
        paper_composition(catalog),
        subject.contract,
        subject.programs,
        request,
        _budget(memory, catalog),
        options,
    )
    _show(fitted, explain=explain, diff=diff, as_json=as_json)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is planned for: a validated contract and its programs."""

    contract: PreparedContract
    programs: Sequence[Program]
    copied: bool = False


def read_subject(model: str, layout: WeightLayout = "source") -> Subject:
    """A core's contract and programs, or those a checkpoint would be prepared into.

    A core has its layout; `layout` is the one that serving would prepare a checkpoint in.
    """
    path = Path(model)
    if is_core(path):
        with authenticate(path, TrustStore()) as opened:
            # Planning runs nothing, so it needs no acceptance from the user.
            core = authorize(opened, opened.namespace)
            contract = prepare_contract(core.contract, core.manifest)
            return Subject(contract, core.programs(), bool(core.copied_nbytes))
    if not path.exists() and model in PACKAGED:
        path = PACKAGED[model].locate(packaged_folder())
    made = outline(open_source(path, complete=False), PrepareOptions(layout=layout))
    return Subject(made.contract, made.programs)


def _budget(memory: str, catalog: CapabilityCatalog) -> Budget:
    """Fractions are of the catalog's memory if it states any, else of what is free here."""
    amount = parse_memory(memory) if memory else None
    if not catalog.memory or isinstance(amount, int):
        return budget(amount)
    found = budget(amount, catalog.memory)
    return replace(found, origin=found.origin.replace("is available", "the catalog states"))


def _show(fitted: Fitted, *, explain: bool, diff: Path | None, as_json: bool) -> None:
    made = fitted.compiled.plan
    if diff is not None:
        found = compare(_read_plan(diff), made.to_dict())
        if as_json:
            print_json(plain(found))
        else:
            out.print(difference_table(found, diff.name), highlight=False)
    elif as_json:
        print_json(_facts(fitted))
    elif explain:
        print_explanation(made)
    else:
        print_plan(fitted)


def _facts(fitted: Fitted) -> dict[str, Any]:
    compiled = fitted.compiled
    report = compiled.memory_report
    return {
        "plan": compiled.plan.to_dict(),
        "fit": None if report is None else report.to_dict(),
        "frontier": plain(frontier(fitted.auto)),
    }


def _read_plan(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text())
        found: dict[str, Any] = data.get("plan", data)
    except (OSError, ValueError, AttributeError) as error:
        raise ConfigurationError(
            f"can't be read as a plan: {error}",
            field="--diff",
            value=str(path),
            remedy="write one with `helios plan --json`",
        ) from None
    return found
