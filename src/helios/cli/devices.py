"""Devices by name: those of this machine, those this engine knows, and catalog files."""

import os
from pathlib import Path

from helios.compile.capabilities import CapabilityCatalog
from helios.compile.catalog_file import read_catalog
from helios.errors import ConfigurationError
from helios.runtime.device import DeviceRuntime

INSTRUCTION_SETS = ("baseline", "avx2", "avxvnni", "avx512", "avx512vnni", "avx512bf16", "neon")


def device_catalog(device: str, numerics: str = "", threads: int = 0) -> CapabilityCatalog:
    """What a device can run: `cpu`, `cpu:avx512`, `reference`, or a catalog file.

    `numerics` and `threads` configure a CPU; empty and 0 mean the runtime's defaults. Nothing is
    allocated. Raises `ConfigurationError` for a device that nobody knows.
    """
    if Path(device).is_file():
        return read_catalog(Path(device).read_text(errors="replace"))
    kind, _, isa = device.partition(":")
    if kind == "reference" and not isa:
        from helios.runtime.reference.device import ReferenceRuntime

        return ReferenceRuntime().composition().catalog
    if kind == "cpu" and isa in ("", *INSTRUCTION_SETS):
        return _cpu_catalog(isa, numerics, threads)
    raise ConfigurationError(
        "unknown device",
        field="--device",
        value=device,
        remedy=f"use cpu, cpu: and one of {', '.join(INSTRUCTION_SETS)}, reference, or a catalog "
        "file that `helios plan --write-catalog` wrote",
    )


def device_runtime(device: str, numerics: str = "", threads: int = 0) -> DeviceRuntime:
    """The runtime of a device of this machine: `cpu` or `reference`.

    Raises `ConfigurationError` for a device that is not here, or that takes no such setting.
    """
    if device == "cpu":
        from helios.runtime.cpu.device import CpuRuntime
        from helios.runtime.cpu.numerics import DEFAULT_NUMERICS

        return CpuRuntime(threads or None, numerics or DEFAULT_NUMERICS)
    if device != "reference":
        raise ConfigurationError(
            "is not a device of this machine",
            field="--device",
            value=device,
            remedy="use cpu or reference",
        )
    if numerics or threads:
        raise ConfigurationError(
            "the reference device computes in float32 and takes neither profile nor threads",
            field="--numerics, --threads",
            value=numerics or threads,
            remedy="leave them out, or use --device cpu",
        )
    from helios.runtime.reference.device import ReferenceRuntime

    return ReferenceRuntime()


def _cpu_catalog(isa: str, numerics: str, threads: int) -> CapabilityCatalog:
    from helios.runtime.cpu.catalog import catalog, descriptor, materializers
    from helios.runtime.cpu.device import CpuRuntime
    from helios.runtime.cpu.numerics import DEFAULT_NUMERICS

    numerics = numerics or DEFAULT_NUMERICS
    if not isa:
        return CpuRuntime(threads or None, numerics).composition().catalog
    count = threads or len(os.sched_getaffinity(0))
    return catalog(descriptor(isa, numerics), materializers(), count)
