"""Reading a capability catalog back from its JSON. What it does not know, it refuses."""

import json
from collections.abc import Mapping
from typing import Any

from helios.compile.capabilities import (
    CapabilityCatalog,
    DeviceDescriptor,
    Layout,
    MaterializerKind,
    MaterializerSpec,
    ProviderSpec,
)
from helios.compile.demand import Capped, Demand, Term
from helios.errors import CompileError

_REMEDY = "write it again with `helios plan --write-catalog`"
_TEXT, _WHOLE, _LIST, _TABLE = str, int, list, dict

_CATALOG = {
    "device": _TABLE,
    "layouts": _LIST,
    "providers": _LIST,
    "materializers": _LIST,
    "memory": _WHOLE,
}
_DEVICE = {"kind": _TEXT, "isa": _TEXT, "numerics": _TEXT, "version": _WHOLE}
_LAYOUT = {"name": _TEXT, "block": _WHOLE, "block_nbytes": _WHOLE, "row_multiple": _WHOLE}
_MATERIALIZER = {
    "name": _TEXT,
    "kind": _TEXT,
    "storage": _TEXT,
    "layout": _TEXT,
    "staging": _WHOLE,
}
_PROVIDER = {
    "name": _TEXT,
    "operation": _TEXT,
    "version": _WHOLE,
    "weight_layouts": _TABLE,
    "attributes": _TABLE,
    "dtypes": _TABLE,
    "scratch": _TABLE,
    "held": _TABLE,
    "binding": _TABLE,
    "persistent": _TABLE,
}
_DEMAND = {
    "fixed": _WHOLE,
    "per_sequence": _WHOLE,
    "per_token": _WHOLE,
    "per_page": _WHOLE,
    "per_context": _WHOLE,
    "table": _LIST,
    "terms": _LIST,
    "capped": _LIST,
}
_TERM = {"nbytes": _WHOLE, "dims": _LIST, "per": _WHOLE, "most": _WHOLE}
_CAPPED = {"axis": _TEXT, "nbytes": _WHOLE, "most": _WHOLE}


def read_catalog(text: str) -> CapabilityCatalog:
    """The catalog in a JSON text; `CompileError` names the part that is missing or unknown."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refusal("catalog", f"is no JSON: {error}", None) from None
    entry = _shaped(data, _CATALOG, "catalog")
    return CapabilityCatalog(
        device=DeviceDescriptor(**_shaped(entry["device"], _DEVICE, "catalog.device")),
        layouts=tuple(
            Layout(**_shaped(layout, _LAYOUT, "catalog.layouts")) for layout in entry["layouts"]
        ),
        providers=tuple(_provider(provider) for provider in entry["providers"]),
        materializers=tuple(_materializer(spec) for spec in entry["materializers"]),
        memory=entry["memory"],
    )


def _shaped(data: Any, shape: Mapping[str, type], where: str) -> dict[str, Any]:
    """The data as a dictionary of exactly these fields, numbers not negative."""
    if not isinstance(data, dict):
        raise _refusal(where, "must be an object", data)
    for name in sorted(data.keys() ^ shape.keys()):
        raise _refusal(f"{where}.{name}", "is unknown" if name in data else "is missing", None)
    for name, kind in shape.items():
        if type(data[name]) is not kind or (kind is _WHOLE and data[name] < 0):
            raise _refusal(f"{where}.{name}", f"must be {kind.__name__}", data[name])
    return data


def _provider(data: Any) -> ProviderSpec:
    entry = _shaped(data, _PROVIDER, "catalog.providers")
    where = f"catalog.providers.{entry['name']}"
    return ProviderSpec(
        name=entry["name"],
        operation=entry["operation"],
        version=entry["version"],
        weight_layouts=_choices(entry["weight_layouts"], f"{where}.weight_layouts"),
        attributes=_choices(entry["attributes"], f"{where}.attributes"),
        dtypes=_choices(entry["dtypes"], f"{where}.dtypes"),
        scratch=_demand(entry["scratch"], f"{where}.scratch"),
        held=_demand(entry["held"], f"{where}.held"),
        binding=_demand(entry["binding"], f"{where}.binding"),
        persistent=_demand(entry["persistent"], f"{where}.persistent"),
    )


def _choices(data: dict[str, Any], where: str) -> dict[str, tuple[Any, ...]]:
    for name, choices in data.items():
        if not isinstance(choices, list):
            raise _refusal(f"{where}.{name}", "must be list", choices)
    return {name: tuple(choices) for name, choices in data.items()}


def _demand(data: dict[str, Any], where: str) -> Demand:
    entry = _shaped(data, _DEMAND, where)
    terms = [_shaped(term, _TERM, f"{where}.terms") for term in entry["terms"]]
    capped = [_shaped(part, _CAPPED, f"{where}.capped") for part in entry["capped"]]
    pairs = [tuple(pair) if isinstance(pair, list) else () for pair in entry["table"]]
    if any(len(pair) != 2 or any(type(n) is not int for n in pair) for pair in pairs):
        raise _refusal(f"{where}.table", "must be pairs of numbers", entry["table"])
    return Demand(
        fixed=entry["fixed"],
        per_sequence=entry["per_sequence"],
        per_token=entry["per_token"],
        per_page=entry["per_page"],
        per_context=entry["per_context"],
        table=tuple((tokens, nbytes) for tokens, nbytes in pairs),
        terms=tuple(Term(**{**term, "dims": tuple(term["dims"])}) for term in terms),
        capped=tuple(Capped(**part) for part in capped),
    )


def _materializer(data: Any) -> MaterializerSpec:
    entry = _shaped(data, _MATERIALIZER, "catalog.materializers")
    if entry["kind"] not in set(MaterializerKind):
        raise _refusal(f"catalog.materializers.{entry['name']}.kind", "is unknown", entry["kind"])
    return MaterializerSpec(**{**entry, "kind": MaterializerKind(entry["kind"])})


def _refusal(field: str, message: str, value: object) -> CompileError:
    return CompileError(message, field=field, value=value, remedy=_REMEDY)
