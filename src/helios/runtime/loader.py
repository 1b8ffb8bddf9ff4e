"""From a trusted core to a model that runs: compile, check that it fits, then allocate."""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Protocol

from helios.compile.budget import budget
from helios.compile.composition import CompiledModel
from helios.compile.fit import fit_model
from helios.compile.options import CompileOptions
from helios.compile.plan import Plan
from helios.compile.report import StartupReport
from helios.compile.request import Request
from helios.contract.prepare import prepare_contract
from helios.contract.prepared import PreparedContract
from helios.program.agreement import check_programs
from helios.program.ir import Program
from helios.records import dataclass
from helios.runtime.device import DeviceRuntime, StepRunner, WeightSource
from helios.runtime.model import Model
from helios.runtime.release import ReleasingSource
from helios.runtime.storage import Storage
from helios.runtime.tuning import TUNING_SECONDS, fill_tuned
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

    @property
    def copied_nbytes(self) -> int:
        """Bytes of weights that are used from private memory instead of a mapped file."""

    def programs(self) -> Sequence[Program]:
        """All captured programs."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What a user may ask for. None leaves a choice to Auto; what is given is never reduced.

    `memory` is bytes, or a fraction of the memory available now. `tuning_seconds` bounds what
    tuning programs may try; with 0 every choice is neutral.
    """

    memory: int | float | None = None
    context: int | None = None
    concurrency: int | None = None
    batch_tokens: int | None = None
    pages: int | None = None
    snapshots: int | None = None
    tuning_seconds: float = TUNING_SECONDS
    compile: CompileOptions = field(default_factory=CompileOptions)

    @property
    def request(self) -> Request:
        """The explicit limits."""
        return Request(
            context=self.context,
            sequences=self.concurrency,
            batch_tokens=self.batch_tokens,
            pages=self.pages,
            snapshots=self.snapshots,
        )


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model ready to run, what it was made from, and how it came about."""

    model: Model
    compiled: CompiledModel
    runner: StepRunner
    storage: Storage
    report: StartupReport

    @property
    def contract(self) -> PreparedContract:
        """The validated contract."""
        return self.compiled.contract

    @property
    def plan(self) -> Plan:
        """The plan that was loaded."""
        return self.compiled.plan


def load_model(
    core: LoadableCore,
    runtime: DeviceRuntime,
    options: LoadOptions | None = None,
    progress: Progress | None = None,
    report: StartupReport | None = None,
) -> LoadedModel:
    """Compile, check that it fits, allocate, materialise weights, bind, tune.

    Raises a `HeliosError` of the phase that failed; nothing is allocated before the plan is known
    to fit. A `report` that is passed in tells, after an error too, how far start-up came.
    """
    options = options or LoadOptions()
    report = report or StartupReport()
    compiled = compile_core(core, runtime, options, report)
    with report.phase("allocate"):
        storage = Storage(compiled.plan)
    with report.phase("weights"), ReleasingSource(core, compiled.plan) as weights:
        runner = runtime.load(compiled, storage, weights, _for_phase(progress, "weights"))
    report.errors = runner.errors
    with report.phase("tune"):
        report.tuning = fill_tuned(compiled, storage, runner, options.tuning_seconds)
    report.committed_nbytes = storage.allocated_nbytes + runner.allocated_nbytes
    with report.phase("start"):
        model = Model(compiled, storage, runner, report.tuning.choices)
    return LoadedModel(model, compiled, runner, storage, report)


def compile_core(
    core: LoadableCore, runtime: DeviceRuntime, options: LoadOptions, report: StartupReport
) -> CompiledModel:
    """The compiled model of a core within its memory budget; nothing is allocated."""
    with report.phase("contract"):
        contract = prepare_contract(core.contract, core.manifest)
        programs = tuple(core.programs())
        check_programs(contract, {program.name: program for program in programs})
    with report.phase("plan"):
        copied = replace(options.compile, copied=bool(core.copied_nbytes))
        compiled = fit_model(
            runtime.composition(),
            contract,
            programs,
            options.request,
            budget(options.memory),
            copied,
        ).compiled
        report.plan, report.memory = compiled.plan, compiled.memory_report
    return compiled


def _for_phase(progress: Progress | None, phase: str) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    report = progress
    return lambda done, total: report(phase, done, total)
