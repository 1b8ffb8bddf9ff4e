import json
from dataclasses import replace
from typing import Any

import pytest
from toy_models import ToyModel

from helios.compile.capabilities import CapabilityCatalog, Layout
from helios.compile.catalog_file import read_catalog
from helios.compile.composition import RuntimeComposition
from helios.compile.plan import Limits
from helios.errors import CompileError, ForeignPlanError
from helios.runtime.reference.device import ReferenceRuntime


@pytest.fixture
def catalog(composition: RuntimeComposition) -> CapabilityCatalog:
    return composition.catalog


def test_a_catalog_survives_its_json(catalog: CapabilityCatalog) -> None:
    back = read_catalog(catalog.to_json())
    assert back == catalog
    assert back.fingerprint == catalog.fingerprint
    assert read_catalog(json.dumps(json.loads(catalog.to_json()), indent=1)) == catalog


def test_the_fingerprint_tells_devices_apart(catalog: CapabilityCatalog) -> None:
    others = {
        replace(catalog, device=replace(catalog.device, isa="other")).fingerprint,
        catalog.with_memory(1 << 30).fingerprint,
        replace(catalog, providers=catalog.providers[1:]).fingerprint,
        catalog.fingerprint,
    }
    assert len(others) == 4


def test_a_layout_pads_rows_and_blocks() -> None:
    layout = Layout("w", block=32, block_nbytes=20, row_multiple=8)
    assert layout.nbytes((9, 33)) == 16 * 2 * 20
    assert layout.nbytes((2, 4, 32)) == 8 * 20
    assert Layout("f32", 1, 4).nbytes((7,)) == 28


def _edits() -> dict[str, Any]:
    def edit(path: str, value: Any) -> Any:
        def apply(data: Any) -> None:
            *parents, last = path.split(".")
            for name in parents:
                data = data[int(name) if name.isdigit() else name]
            if value is None:
                del data[last]
            else:
                data[last] = value

        return apply

    return {
        "missing field": edit("memory", None),
        "unknown field": edit("vendor", "x"),
        "wrong type": edit("memory", "8"),
        "a flag for a number": edit("memory", True),
        "negative": edit("layouts.0.block_nbytes", -4),
        "unknown kind": edit("materializers.0.kind", "magic"),
        "unknown layout": edit("materializers.0.layout", "w99"),
        "layouts of a provider": edit("providers.0.weight_layouts", {"x": "f32"}),
        "demand": edit("providers.0.scratch.terms", [{"nbytes": 1}]),
        "table": edit("providers.0.scratch.table", [[1]]),
        "no list": edit("providers", {}),
    }


@pytest.mark.parametrize("name", _edits())
def test_a_broken_catalog_is_refused(catalog: CapabilityCatalog, name: str) -> None:
    data = json.loads(catalog.to_json())
    _edits()[name](data)
    with pytest.raises(CompileError) as caught:
        read_catalog(json.dumps(data))
    assert caught.value.field.startswith("catalog")


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000])
def test_what_is_no_catalog_is_refused(text: str) -> None:
    with pytest.raises(CompileError, match="catalog"):
        read_catalog(text)


def test_names_are_distinct(catalog: CapabilityCatalog) -> None:
    with pytest.raises(CompileError, match="named twice"):
        replace(catalog, providers=(*catalog.providers, catalog.providers[0]))


def test_mappings_are_frozen(catalog: CapabilityCatalog) -> None:
    provider = next(p for p in catalog.providers if p.operation == "linear")
    with pytest.raises(TypeError):
        provider.weight_layouts["weight"] = ("w9",)  # type: ignore[index]


def test_a_catalog_of_another_device_is_refused(catalog: CapabilityCatalog) -> None:
    runtime = ReferenceRuntime()
    own = runtime.composition()
    for other in (
        replace(catalog, device=replace(catalog.device, isa="avx512")),
        replace(catalog, device=replace(catalog.device, numerics="a8")),
    ):
        with pytest.raises(ForeignPlanError, match="another device"):
            RuntimeComposition(runtime, own.registry, own.materializers, other)


def test_a_runtime_that_changed_is_noticed_before_compiling(toy: ToyModel) -> None:
    class Changing(ReferenceRuntime):
        pass

    runtime = Changing()
    own = runtime.composition()
    runtime.descriptor = replace(runtime.descriptor, numerics="a8")  # type: ignore[misc]
    with pytest.raises(ForeignPlanError, match="another device"):
        own.compile(toy.prepared, toy.captured, Limits(64, 1, 32, 2, 0))


def test_a_catalog_lists_only_what_is_registered(catalog: CapabilityCatalog) -> None:
    runtime = ReferenceRuntime()
    own = runtime.composition()
    registry = {name: f for name, f in own.registry.items() if name != "reference.add"}
    with pytest.raises(ForeignPlanError, match=r"reference\.add"):
        RuntimeComposition(runtime, registry, own.materializers, catalog)
    first = replace(catalog.materializers[0], staging=catalog.materializers[0].staging + 1)
    edited = replace(catalog, materializers=(first, *catalog.materializers[1:]))
    with pytest.raises(ForeignPlanError, match="otherwise than it is registered"):
        RuntimeComposition(runtime, own.registry, own.materializers, edited)
