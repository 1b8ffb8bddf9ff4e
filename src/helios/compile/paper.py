"""Compiling for a device that is not here: from its catalog alone.

Nothing can be loaded by such a composition, since no runtime has it.
"""

from collections.abc import Callable

from helios.compile.capabilities import CapabilityCatalog, DeviceDescriptor, MaterializerSpec
from helios.compile.composition import RuntimeComposition
from helios.errors import ForeignPlanError
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class _AbsentDevice:
    descriptor: DeviceDescriptor


@dataclass(frozen=True, slots=True)
class _AbsentMaterializer:
    spec: MaterializerSpec


def paper_composition(catalog: CapabilityCatalog) -> RuntimeComposition:
    """A composition that compiles for the catalog's device and can do nothing else."""
    return RuntimeComposition(
        _AbsentDevice(catalog.device),
        {provider.name: _absent(provider.name) for provider in catalog.providers},
        {spec.name: _AbsentMaterializer(spec) for spec in catalog.materializers},
        catalog,
    )


def _absent(name: str) -> Callable[..., object]:
    def refuse(*_: object) -> object:
        raise ForeignPlanError(
            "this device is known by its catalog alone", field="providers", value=name
        )

    return refuse
