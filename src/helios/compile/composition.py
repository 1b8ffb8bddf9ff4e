"""Metadata-only compilation, then initialisation of exactly what was compiled.

A composition ties together a live runtime, the operations it registered, its materializers and
its catalog. A compiled model can be had only from `RuntimeComposition.compile` and is loaded only
by the composition that made it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NoReturn, Protocol

from helios.compile.capabilities import CapabilityCatalog, DeviceDescriptor, MaterializerSpec
from helios.compile.compiler import Compilation, analyse, plan_at
from helios.compile.demand import Workload
from helios.compile.memory import MemoryModel
from helios.compile.options import CompileOptions
from helios.compile.plan import Limits, Plan
from helios.compile.readback import Written, require_equal
from helios.compile.report import MemoryReport
from helios.contract.prepared import PreparedContract
from helios.errors import FitError, ForeignPlanError, HeliosError, StalePlanError
from helios.program.ir import Program


class HasDescriptor(Protocol):
    """The part of a device runtime that compilation needs."""

    @property
    def descriptor(self) -> DeviceDescriptor:
        """What the live device is."""


class Materializer(Protocol):
    """A registered implementation of a `MaterializerSpec`."""

    @property
    def spec(self) -> MaterializerSpec:
        """What it turns into what."""


class RuntimeComposition:
    """A runtime with everything that is needed to compile for it.

    Raises `ForeignPlanError` where the catalog describes another device than the runtime is, or
    lists a provider or materializer that is not registered.
    """

    def __init__(
        self,
        runtime: HasDescriptor,
        registry: Mapping[str, Callable[..., object]],
        materializers: Mapping[str, Materializer],
        catalog: CapabilityCatalog,
    ) -> None:
        _require_device(runtime, catalog)
        _require_registered("providers", {p.name for p in catalog.providers}, set(registry))
        specs = {name: materializer.spec for name, materializer in materializers.items()}
        _require_registered("materializers", {m.name for m in catalog.materializers}, set(specs))
        for spec in catalog.materializers:
            if specs[spec.name] != spec:
                raise ForeignPlanError(
                    "the catalog describes a materializer otherwise than it is registered",
                    field=f"catalog.materializers.{spec.name}",
                    value=spec,
                    remedy="use the runtime's own catalog",
                )
        self.runtime = runtime
        self.registry = registry
        self.materializers = materializers
        self.catalog = catalog

    def compile(
        self,
        contract: PreparedContract,
        programs: Sequence[Program],
        limits: Limits,
        options: CompileOptions | None = None,
    ) -> "CompiledModel":
        """Compile a prepared model; no weights are read and no device memory is touched."""
        _require_device(self.runtime, self.catalog)
        compilation = analyse(contract, programs, self.catalog, options)
        return CompiledModel(_SEAL, self, contract, compilation, limits)

    def read_back(
        self, text: str, contract: PreparedContract, programs: Sequence[Program]
    ) -> "CompiledModel":
        """The model that a plan's JSON describes: compiled again and compared, never trusted.

        Raises `ForeignPlanError` for a plan of another device, `StalePlanError` for one that
        differs in anything from what compiling gives now.
        """
        written = Written.parse(text)
        written.require_device(self.catalog)
        limits, options = written.limits(), written.options()
        try:
            compiled = self.compile(contract, programs, limits, options)
        except HeliosError as error:
            raise StalePlanError(
                f"what the plan asks for can't be compiled: {error}",
                field="plan",
                remedy="plan again with this engine, device and core",
            ) from error
        require_equal(written.data, compiled.plan.to_dict())
        return compiled


_SEAL = object()


class CompiledModel:
    """A plan with what it was made from; made by `RuntimeComposition` alone."""

    def __init__(
        self,
        seal: object,
        composition: RuntimeComposition,
        contract: PreparedContract,
        compilation: Compilation,
        limits: Limits,
    ) -> None:
        if seal is not _SEAL:
            raise ForeignPlanError(
                "a compiled model comes from RuntimeComposition.compile alone", field="plan"
            )
        self._composition = composition
        self._contract = contract
        self._compilation = compilation
        self._limits = limits
        self._memory_report: MemoryReport | None = None

    def __reduce__(self) -> NoReturn:
        raise ForeignPlanError(
            "a compiled model is sealed", field="plan", remedy="send the plan's JSON and read it"
        )

    @property
    def contract(self) -> PreparedContract:
        """The validated contract."""
        return self._contract

    @property
    def programs(self) -> tuple[Program, ...]:
        """The captured programs."""
        return self._compilation.programs

    @cached_property
    def plan(self) -> Plan:
        """The frozen plan."""
        return plan_at(self._compilation, self._limits)

    def at(self, limits: Limits) -> "CompiledModel":
        """The same model compiled at other limits; what does not depend on them is kept."""
        return CompiledModel(_SEAL, self._composition, self._contract, self._compilation, limits)

    @property
    def memory(self) -> MemoryModel:
        """The memory of the model at any limits."""
        return self._compilation.memory

    @property
    def memory_report(self) -> MemoryReport | None:
        """How the limits were chosen, if they were chosen for a budget."""
        return self._memory_report

    def attach(self, report: MemoryReport) -> None:
        """Attach a report. Raises `StalePlanError` unless it is true of this very plan."""
        limits = self.plan.limits
        prefill = Workload.prefill(limits.context, limits.batch_tokens)
        decode = Workload.decode(limits.context, limits.sequences)
        for name, told, true in (
            ("selected", report.selected, limits),
            ("total", report.total_nbytes, self.plan.total_nbytes),
            ("prefill peak", report.prefill_peak_nbytes, self.peak_nbytes(prefill)),
            ("decode peak", report.decode_peak_nbytes, self.peak_nbytes(decode)),
        ):
            if told != true:
                raise StalePlanError(
                    f"the memory report differs from the retained plan, which has {true}",
                    field=f"report.{name}",
                    value=told,
                    remedy="fit the model to its budget again",
                )
        if self.plan.total_nbytes > report.budget_nbytes:
            raise FitError(
                "the retained plan exceeds its budget",
                field="report.budget",
                value=report.budget_nbytes,
                remedy=f"it needs {self.plan.total_nbytes} bytes",
            )
        self._memory_report = report

    def require_composition(self, composition: RuntimeComposition) -> None:
        """Raise `ForeignPlanError` unless that composition made this plan."""
        if composition is not self._composition:
            raise ForeignPlanError(
                "a plan can be bound only by the composition that compiled it",
                field="plan",
                value=self.plan.id[:16],
                remedy="compile again with this composition",
            )

    def peak_nbytes(self, workload: Workload) -> int:
        """Bytes that a workload needs, without allocating anything."""
        return self.memory.peak_nbytes(workload)


def _require_device(runtime: HasDescriptor, catalog: CapabilityCatalog) -> None:
    if runtime.descriptor != catalog.device:
        raise ForeignPlanError(
            "the catalog describes another device than the live runtime",
            field="catalog.device",
            value=str(catalog.device),
            remedy=f"use the catalog of {runtime.descriptor}",
        )


def _require_registered(what: str, listed: set[str], registered: set[str]) -> None:
    missing = sorted(listed - registered)
    if missing:
        raise ForeignPlanError(
            f"the catalog lists {what} that the runtime did not register",
            field=f"catalog.{what}",
            value=missing,
            remedy="use the runtime's own catalog",
        )
