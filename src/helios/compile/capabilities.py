"""What a device can run, as data: serialisable, comparable, fingerprinted.

A catalog is enough to compile for a machine that is not here. It names operations with their
versions, the providers (kernels) that implement them with the weight layouts and element types
each accepts, and the materializers that can turn a stored tensor into such a layout.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from functools import cached_property

from helios.compile.canonical import digest, frozen, to_json
from helios.compile.demand import NO_DEMAND, Demand
from helios.errors import CompileError
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class DeviceDescriptor:
    """A device: its class (`cpu`, `reference`, …), instruction set and numerical profile."""

    kind: str
    isa: str
    numerics: str
    version: int = 1

    def __str__(self) -> str:
        return f"{self.kind}:{self.isa} ({self.numerics})"


@dataclass(frozen=True, slots=True)
class Layout:
    """How a weight of `columns` inputs and `rows` outputs lies in a device's memory.

    `block` columns share `block_nbytes` bytes; rows are padded to a multiple of `row_multiple`.
    """

    name: str
    block: int
    block_nbytes: int
    row_multiple: int = 1

    def nbytes(self, shape: tuple[int, ...]) -> int:
        """Bytes of a weight of that shape, outermost dimension first."""
        *outer, columns = shape
        rows = 1
        for length in outer:
            rows *= length
        rows = -(-rows // self.row_multiple) * self.row_multiple
        return rows * -(-columns // self.block) * self.block_nbytes


class MaterializerKind(StrEnum):
    """How a materializer changes a tensor: not at all, exactly, or approximately."""

    IDENTITY = "identity"
    REPACK = "repack"
    TRANSCODE = "transcode"


@dataclass(frozen=True, slots=True)
class MaterializerSpec:
    """Turns tensors stored as `storage` into `layout`.

    `staging` bytes are enough beside the stored and the materialised tensor, whatever its size:
    tensors are worked through in pieces.
    """

    name: str
    kind: MaterializerKind
    storage: str
    layout: str
    staging: int = 0

    @property
    def exact(self) -> bool:
        """Whether every value survives unchanged."""
        return self.kind is not MaterializerKind.TRANSCODE


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """A kernel for one operation.

    `weight_layouts` lists, for each weight operand by name, the layouts it accepts; an absent
    name means the operation has no such operand. `attributes` and `dtypes` restrict attribute
    values and the element types of other operands. Providers are tried in the catalog's order:
    the preferred first. `scratch` is needed while the operation runs, `held` from then to the end
    of the program (the largest of a provider's operations), `binding` as long as the model is
    loaded, once per bound operation, and `persistent` once per provider that is used.
    """

    name: str
    operation: str
    version: int
    weight_layouts: Mapping[str, tuple[str, ...]] = field(hash=False)
    attributes: Mapping[str, tuple[object, ...]] = field(hash=False)
    scratch: Demand
    binding: Demand = NO_DEMAND
    persistent: Demand = NO_DEMAND
    dtypes: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    held: Demand = NO_DEMAND

    def __post_init__(self) -> None:
        for name in ("weight_layouts", "attributes", "dtypes"):
            object.__setattr__(self, name, frozen(getattr(self, name)))


@dataclass(frozen=True)
class CapabilityCatalog:
    """A device and all that it can run.

    `memory` is the device's memory in bytes, or 0 for whatever the live machine has.
    """

    device: DeviceDescriptor
    layouts: tuple[Layout, ...]
    providers: tuple[ProviderSpec, ...]
    materializers: tuple[MaterializerSpec, ...]
    memory: int = 0

    def __post_init__(self) -> None:
        _require_distinct("layouts", (x.name for x in self.layouts))
        _require_distinct("providers", (x.name for x in self.providers))
        _require_distinct("materializers", (x.name for x in self.materializers))
        known = {layout.name for layout in self.layouts}
        for provider in self.providers:
            for accepted in provider.weight_layouts.values():
                _require_layouts(f"providers.{provider.name}", accepted, known)
        for spec in self.materializers:
            _require_layouts(f"materializers.{spec.name}", (spec.layout,), known)

    def layout(self, name: str) -> Layout:
        """The layout of that name; `CompileError` if the device has none."""
        for layout in self.layouts:
            if layout.name == name:
                return layout
        raise CompileError("the device has no such layout", field="catalog.layouts", value=name)

    def with_memory(self, memory: int) -> "CapabilityCatalog":
        """The same device with so much memory."""
        return replace(self, memory=memory)

    def to_json(self) -> str:
        """Canonical JSON: the same catalog gives the same text."""
        return to_json(self)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON."""
        return digest(self.to_json())


def _require_distinct(what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise CompileError("named twice", field=f"catalog.{what}", value=name)
        seen.add(name)


def _require_layouts(where: str, names: Iterable[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            raise CompileError(
                "the device has no such layout",
                field=f"catalog.{where}",
                value=name,
                remedy=f"known layouts: {', '.join(sorted(known))}",
            )
