"""Devices by name: the ones of this machine, the ones this engine knows, and catalog files."""

from pathlib import Path

from helios.compile.capabilities import CapabilityCatalog
from helios.compile.catalog_file import read_catalog
from helios.errors import ConfigurationError

KNOWN = "cpu, cpu:INSTRUCTION-SET, reference, or a catalog file"


def device_catalog(device: str, numerics: str = "") -> CapabilityCatalog:
    """What a device can run. Raises `ConfigurationError` for one that nobody knows.

    `numerics` is a numerical profile of the CPU runtime; empty means its default.
    """
    if Path(device).is_file():
        return read_catalog(Path(device).read_text())
    kind, _, isa = device.partition(":")
    if kind == "reference" and not isa and not numerics:
        from helios.runtime.reference.device import ReferenceRuntime

        return ReferenceRuntime().composition().catalog
    if kind == "cpu":
        from helios.runtime.cpu.catalog import cpu_catalog

        return cpu_catalog(isa, numerics)
    raise ConfigurationError(
        "unknown device", field="--device", value=device, remedy=f"use {KNOWN}"
    )
