"""What the CPU device can run: layouts, materializers, one provider per operation and profile."""

from collections.abc import Callable, Mapping

from helios.compile.capabilities import (
    CapabilityCatalog,
    DeviceDescriptor,
    Layout,
    MaterializerKind,
    MaterializerSpec,
    ProviderSpec,
)
from helios.contract.kinds import SOURCE_STORAGES, WeightStorage
from helios.program.ops import OPS, WEIGHT
from helios.records import dataclass
from helios.runtime.cpu.numerics import profile
from helios.runtime.cpu.workspace import held, scratch
from helios.runtime.device import STAGING_NBYTES

# Sixteen output rows are interleaved; `block_nbytes` counts a row's share of a group of columns.
_LAYOUTS = (
    Layout("w4g32", block=32, block_nbytes=20, row_multiple=16),
    Layout("w4g32f", block=32, block_nbytes=24, row_multiple=16),
    Layout("w8g32", block=32, block_nbytes=34, row_multiple=16),
    Layout("w8g32m", block=32, block_nbytes=40, row_multiple=16),
    Layout("w8g16", block=32, block_nbytes=40, row_multiple=16),
    Layout("w8g16m", block=32, block_nbytes=48, row_multiple=16),
    Layout("f16", block=1, block_nbytes=2, row_multiple=16),
    Layout("bf16", block=1, block_nbytes=2, row_multiple=16),
    Layout("f32", block=1, block_nbytes=4, row_multiple=16),
)
FLAT = Layout("flat", block=1, block_nbytes=4)
"""Plain float32 in row order, as vectors are kept."""

_MATRICES = tuple(layout.name for layout in _LAYOUTS)

_NATURAL: Mapping[str, str] = {
    "f32": "f32",
    "f16": "f16",
    "bf16": "bf16",
    "q4_0": "w4g32",
    "q4_1": "w4g32",
    "q4_k": "w4g32f",
    "q8_0": "w8g32",
    "q5_0": "w8g32",
    "iq4_nl": "w8g32",
    "q5_1": "w8g32m",
    "q5_k": "w8g32m",
    "mxfp4": "w8g32m",
    "q6_k": "w8g16",
    "q3_k": "w8g16",
    "q2_k": "w8g16m",
}


TILES: Mapping[WeightStorage, str] = {
    storage: storage.name.removeprefix("TILE16_").lower()
    for storage in WeightStorage
    if storage.tile_rows > 1
}
"""Storages that are layouts of the kernels already, whatever the instruction set."""


def tiled(storage: WeightStorage) -> WeightStorage:
    """The tiles that hold a matrix of a source's storage exactly."""
    return WeightStorage[f"TILE16_{_NATURAL[storage.name.lower()].upper()}"]


@dataclass(frozen=True, slots=True)
class Repack:
    """A materializer; the work is done by the native executor."""

    spec: MaterializerSpec


def materializers() -> Mapping[str, Repack]:
    """Every materializer by name: from tiles as they lie, to the natural layout of each other
    storage, to plain vectors, and, approximately, from floating-point storage to 8-bit blocks."""
    found: list[MaterializerSpec] = []
    for storage, layout in TILES.items():
        name, kind = storage.name.lower(), MaterializerKind.IDENTITY
        found.append(MaterializerSpec(f"cpu.map-{layout}", kind, name, layout))
    for storage in SOURCE_STORAGES:
        name = storage.name.lower()
        repack = MaterializerKind.REPACK
        found.append(MaterializerSpec(f"cpu.{name}", repack, name, _NATURAL[name]))
        kind = MaterializerKind.IDENTITY if storage is WeightStorage.F32 else repack
        found.append(MaterializerSpec(f"cpu.{name}-flat", kind, name, FLAT.name))
    for name in ("f32", "f16", "bf16"):
        transcode = MaterializerKind.TRANSCODE
        found.append(
            MaterializerSpec(f"cpu.{name}-w8", transcode, name, _NATURAL["q8_0"], STAGING_NBYTES)
        )
    return {spec.name: Repack(spec) for spec in found}


def functions() -> Mapping[str, Callable[..., object]]:
    """Providers are native: the registry names them, lowering knows them."""
    return {f"cpu.{kind}": _run_natively for kind in OPS}


def _run_natively(*_operands: object) -> object:
    raise NotImplementedError("native steps are not called one by one")


def descriptor(isa: str, numerics: str) -> DeviceDescriptor:
    """The device as a plan names it."""
    profile(numerics)
    return DeviceDescriptor(kind="cpu", isa=isa, numerics=numerics)


def catalog(
    device: DeviceDescriptor, known: Mapping[str, Repack], threads: int
) -> CapabilityCatalog:
    """The catalog of the device."""
    planes = profile(device.numerics).most
    return CapabilityCatalog(
        device=device,
        layouts=(*_LAYOUTS, FLAT),
        providers=tuple(_provider(kind, threads, planes) for kind in OPS),
        materializers=tuple(m.spec for m in known.values()),
    )


def _provider(kind: str, threads: int, planes: int) -> ProviderSpec:
    weights = [o for o in OPS[kind].operands if WEIGHT in o.places]
    return ProviderSpec(
        name=f"cpu.{kind}",
        operation=kind,
        version=OPS[kind].version,
        weight_layouts={o.name: _MATRICES if len(o.shape) > 1 else (FLAT.name,) for o in weights},
        attributes={},
        scratch=scratch(kind, threads),
        held=held(kind, planes),
    )
