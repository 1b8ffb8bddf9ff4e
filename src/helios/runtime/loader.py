"""From a trusted core to a model that runs: compile, check that it fits, then allocate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from helios.compile.budget import Budget, budget
from helios.compile.composition import CompiledModel
from helios.compile.options import CompileOptions
from helios.compile.plan import Limits, Plan
from helios.compile.report import StartupReport
from helios.contract.prepare import prepare_contract
from helios.contract.prepared import PreparedContract
from helios.errors import FitError
from helios.program.agreement import check_programs
from helios.program.ir import Program
from helios.runtime.device import DeviceRuntime, WeightSource
from helios.runtime.model import Model
from helios.runtime.storage import Storage
from helios.schema import contract_pb2, manifest_pb2

Progress = Callable[[str, int, int], None]  # phase, bytes done, bytes in all


class LoadableCore(WeightSource, Protocol):
    """The part of a core that loading needs."""

    @property
    def contract(self) -> contract_pb2.ServingContract:
        """The signed serving contract."""

    @property
    def manifest(self) -> manifest_pb2.ExecutionManifest:
        """The signed execution manifest."""

    def programs(self) -> Sequence[Program]:
        """All captured programs."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What a user may ask for. None leaves a choice to Auto; what is given is never reduced.

    `memory` is bytes, or a fraction of the memory available now.
    """

    memory: int | float | None = None
    context: int | None = None
    concurrency: int | None = None
    batch_tokens: int | None = None
    pages: int | None = None
    snapshots: int | None = None
    compile: CompileOptions = field(default_factory=CompileOptions)


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model ready to run, the plan it runs by, and how it came about."""

    model: Model
    contract: PreparedContract
    plan: Plan
    report: StartupReport


def load_model(
    core: LoadableCore,
    runtime: DeviceRuntime,
    options: LoadOptions | None = None,
    progress: Progress | None = None,
    report: StartupReport | None = None,
) -> LoadedModel:
    """Compile, check that it fits, allocate, materialise weights, bind.

    Raises a `HeliosError` of the phase that failed; nothing is allocated before the plan is known
    to fit. A `report` that is passed in tells, after an error too, how far start-up came.
    """
    options = options or LoadOptions()
    report = report or StartupReport()
    with report.phase("contract"):
        contract = prepare_contract(core.contract, core.manifest)
        programs = tuple(core.programs())
        check_programs(contract, {p.name: p for p in programs})
    with report.phase("compile"):
        allowed = budget(options.memory)
        compiled = _compile(contract, programs, runtime, options)
        report.plan, report.budget_nbytes = compiled.plan, allowed.nbytes
        _require_fit(compiled.plan, allowed)
    with report.phase("allocate"):
        storage = Storage(compiled.plan)
    with report.phase("weights"):
        runner = runtime.load(compiled, storage, core, _for_phase(progress, "weights"))
    with report.phase("start"):
        model = Model(compiled, storage, runner)
    return LoadedModel(model, contract, compiled.plan, report)


def _compile(
    contract: PreparedContract,
    programs: tuple[Program, ...],
    runtime: DeviceRuntime,
    options: LoadOptions,
) -> CompiledModel:
    limits = Limits(
        context=options.context or contract.context_tokens,
        sequences=options.concurrency or contract.concurrency,
        batch_tokens=options.batch_tokens or max(g.tokens for g in contract.graphs),
        pages=options.pages or contract.prepared_pages,
        snapshots=contract.prepared_snapshots if options.snapshots is None else options.snapshots,
    )
    return runtime.composition().compile(contract, programs, limits, options.compile)


def _require_fit(plan: Plan, allowed: Budget) -> None:
    if plan.total_nbytes > allowed.nbytes:
        raise FitError(
            f"the plan needs {plan.total_nbytes} bytes",
            field="memory",
            value=allowed.nbytes,
            remedy="give more memory, or less context, concurrency or pages",
        )


def _for_phase(progress: Progress | None, phase: str) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    report = progress
    return lambda done, total: report(phase, done, total)
