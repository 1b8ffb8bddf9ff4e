"""What a device can run, as data: serialisable, comparable, fingerprinted.

A catalog is enough to compile for a machine that is not here. It names operations with their
versions, the providers (kernels) that implement them with the weight layouts each accepts, and
the materializers that can turn a stored tensor into such a layout.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from helios.compile.demand import Demand
from helios.errors import CompileError


@dataclass(frozen=True, slots=True)
class DeviceDescriptor:
    """A device: its class (`cpu`, `reference`, …), instruction set and numerical profile."""

    kind: str
    isa: str
    numerics: str
    version: int = 1


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
    """Turns tensors stored as `storage` into `layout`."""

    name: str
    kind: MaterializerKind
    storage: str
    layout: str

    @property
    def exact(self) -> bool:
        """Whether every value survives unchanged."""
        return self.kind is not MaterializerKind.TRANSCODE


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """A kernel for one operation.

    `weight_layouts` lists, for each weight operand by name, the layouts it accepts; an absent
    name means the operation has no such operand. `attributes` restricts attribute values.
    Providers are tried in the catalog's order: the preferred first.
    """

    name: str
    operation: str
    version: int
    weight_layouts: Mapping[str, tuple[str, ...]]
    attributes: Mapping[str, tuple[object, ...]]
    scratch: Demand


@dataclass(frozen=True, slots=True)
class CapabilityCatalog:
    """A device and all that it can run."""

    device: DeviceDescriptor
    layouts: tuple[Layout, ...]
    providers: tuple[ProviderSpec, ...]
    materializers: tuple[MaterializerSpec, ...]

    def layout(self, name: str) -> Layout:
        """The layout of that name; `CompileError` if the device has none."""
        for layout in self.layouts:
            if layout.name == name:
                return layout
        raise CompileError("the device has no such layout", field="catalog.layouts", value=name)

    def to_json(self) -> str:
        """Canonical JSON: the same catalog gives the same text."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @classmethod
    def from_json(cls, text: str) -> "CapabilityCatalog":
        """Read a catalog back; `CompileError` names what is missing or unknown."""
        try:
            data: dict[str, Any] = json.loads(text)
            catalog = cls(
                device=DeviceDescriptor(**data["device"]),
                layouts=tuple(Layout(**entry) for entry in data["layouts"]),
                providers=tuple(_provider(entry) for entry in data["providers"]),
                materializers=tuple(_materializer(entry) for entry in data["materializers"]),
            )
        except (ValueError, TypeError, KeyError) as error:
            raise CompileError(
                f"not a capability catalog: {error}",
                field="catalog",
                remedy="write one with `helios plan --write-catalog`",
            ) from error
        if json.loads(catalog.to_json()) != data:
            raise CompileError(
                "the catalog changes when it is read back",
                field="catalog",
                remedy="write it again with `helios plan --write-catalog`",
            )
        return catalog


def _provider(entry: dict[str, Any]) -> ProviderSpec:
    return ProviderSpec(
        name=entry["name"],
        operation=entry["operation"],
        version=entry["version"],
        weight_layouts={k: tuple(v) for k, v in entry["weight_layouts"].items()},
        attributes={k: tuple(v) for k, v in entry["attributes"].items()},
        scratch=Demand.from_dict(entry["scratch"]),
    )


def _materializer(entry: dict[str, Any]) -> MaterializerSpec:
    return MaterializerSpec(
        entry["name"], MaterializerKind(entry["kind"]), entry["storage"], entry["layout"]
    )
