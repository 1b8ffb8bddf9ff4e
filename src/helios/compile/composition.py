"""Metadata-only compilation, then initialisation of exactly what was compiled.

A composition ties together a live runtime, the operations it registered, its materializers and
its catalog. A compiled model can be had only from `RuntimeComposition.compile` and is loaded only
by the composition that made it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from helios.compile.capabilities import CapabilityCatalog, DeviceDescriptor, MaterializerSpec
from helios.compile.compiler import CompileOptions, compile_plan
from helios.compile.demand import Workload
from helios.compile.plan import Limits, Plan
from helios.contract.prepared import PreparedContract
from helios.errors import ForeignPlanError, StalePlanError
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
        if runtime.descriptor != catalog.device:
            raise ForeignPlanError(
                "the catalog describes another device than the live runtime",
                field="catalog.device",
                value=catalog.device,
                remedy=f"use the catalog of {runtime.descriptor}",
            )
        _require_registered("providers", {p.name for p in catalog.providers}, set(registry))
        _require_registered(
            "materializers", {m.name for m in catalog.materializers}, set(materializers)
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
        plan = compile_plan(contract, programs, self.catalog, limits, options)
        return CompiledModel(_SEAL, self, contract, tuple(programs), plan, options)


_SEAL = object()


class CompiledModel:
    """A plan with what it was made from; made by `RuntimeComposition.compile` alone."""

    def __init__(
        self,
        seal: object,
        composition: RuntimeComposition,
        contract: PreparedContract,
        programs: tuple[Program, ...],
        plan: Plan,
        options: CompileOptions | None,
    ) -> None:
        if seal is not _SEAL:
            raise ForeignPlanError(
                "a compiled model comes from RuntimeComposition.compile alone", field="plan"
            )
        self._composition = composition
        self._contract = contract
        self._programs = programs
        self._plan = plan
        self._options = options

    @property
    def contract(self) -> PreparedContract:
        """The validated contract."""
        return self._contract

    @property
    def programs(self) -> tuple[Program, ...]:
        """The captured programs."""
        return self._programs

    @property
    def plan(self) -> Plan:
        """The frozen plan."""
        return self._plan

    def require_composition(self, composition: RuntimeComposition) -> None:
        """Raise `ForeignPlanError` unless that composition made this plan."""
        if composition is not self._composition:
            raise ForeignPlanError(
                "a plan can be bound only by the composition that compiled it",
                field="plan",
                value=self._plan.id[:16],
                remedy="compile again with this composition",
            )

    def verify_text(self, text: str) -> None:
        """Raise `StalePlanError` unless the text is this plan: rebuilt and compared, not trusted."""
        rebuilt = compile_plan(
            self._contract,
            self._programs,
            self._composition.catalog,
            self._plan.limits,
            self._options,
        )
        if rebuilt.to_json() != text:
            raise StalePlanError(
                "the plan differs from what compiling again gives",
                field="plan",
                remedy="plan again with this engine, device and core",
            )

    def peak_nbytes(self, workload: Workload) -> int:
        """Bytes that the workload needs under this plan, without allocating anything.

        Weights, transport and arenas are as planned; pages and state rows count as many as the
        workload names.
        """
        plan = self._plan
        pages = workload.sequences * -(-workload.context // plan.page_tokens)
        fixed = plan.total_nbytes - (
            plan.page_nbytes * plan.limits.pages
            + plan.sequence_nbytes * plan.limits.sequences
            + plan.snapshot_nbytes * plan.limits.snapshots
        )
        return fixed + plan.page_nbytes * pages + plan.sequence_nbytes * workload.sequences


def _require_registered(what: str, listed: set[str], registered: set[str]) -> None:
    missing = sorted(listed - registered)
    if missing:
        raise ForeignPlanError(
            f"the catalog lists {what} that the runtime did not register",
            field=f"catalog.{what}",
            value=missing,
            remedy="use the runtime's own catalog",
        )
