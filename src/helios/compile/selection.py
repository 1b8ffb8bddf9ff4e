"""Choosing a provider for every operation jointly with a layout for every weight.

A weight has one layout wherever it is used, so operations that share a weight decide together.
The search tries layouts in the catalog's order of preference and backtracks, so it finds a
choice whenever one exists.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from helios.compile.capabilities import CapabilityCatalog, MaterializerSpec, ProviderSpec
from helios.compile.plan import OpPlan, Rejection
from helios.contract.prepared import WeightDescriptor
from helios.errors import UnsupportedLayoutError, UnsupportedOperationError
from helios.program.ir import Op, Program, Weight
from helios.program.ops import OPS


@dataclass(frozen=True, slots=True)
class Selection:
    """A materializer per weight, and per program a decision for each operation."""

    materializers: Mapping[str, MaterializerSpec]
    ops: Mapping[str, tuple[OpPlan, ...]]
    providers: Mapping[str, ProviderSpec]


def select(
    programs: Sequence[Program],
    weights: Mapping[str, WeightDescriptor],
    catalog: CapabilityCatalog,
    approximate: frozenset[str] = frozenset(),
) -> Selection:
    """Providers and layouts for all programs, or an error that says what is missing.

    `approximate` names the transcoding materializers that the user allowed.
    """
    uses = _weight_uses(programs)
    options = {
        name: _options(weights[name], catalog, approximate) for name in sorted(uses)
    }
    chosen: dict[str, MaterializerSpec] = {}
    for group in _connected(uses):
        _search(group, uses, options, catalog, chosen)
    layouts = {name: spec.layout for name, spec in chosen.items()}
    decided = {
        program.name: tuple(
            _decide(index, op, layouts, catalog) for index, op in enumerate(program.ops)
        )
        for program in programs
    }
    return Selection(chosen, decided, {p.name: p for p in catalog.providers})


def _weight_uses(programs: Sequence[Program]) -> dict[str, list[Op]]:
    """The distinct uses of each weight; programs repeat them, and once is enough."""
    uses: dict[str, dict[object, Op]] = {}
    for program in programs:
        for op in program.ops:
            names = tuple(o.name if isinstance(o, Weight) else None for o in op.operands)
            key = (op.kind, names, tuple(op.attributes.items()))
            for name in filter(None, names):
                uses.setdefault(name, {}).setdefault(key, op)
    return {name: list(ops.values()) for name, ops in uses.items()}


def _options(
    weight: WeightDescriptor, catalog: CapabilityCatalog, approximate: frozenset[str]
) -> list[MaterializerSpec]:
    storage = weight.storage.name.lower()
    found = [
        m
        for m in catalog.materializers
        if m.storage == storage and (m.exact or m.name in approximate)
    ]
    if not found:
        known = sorted({m.storage for m in catalog.materializers if m.exact})
        raise UnsupportedLayoutError(
            "no exact materializer reads this storage",
            field=f"weights.{weight.name}",
            value=storage,
            remedy=f"prepare the model in one of {', '.join(known)}, or allow an approximate one",
        )
    return found


def _connected(uses: Mapping[str, list[Op]]) -> list[list[str]]:
    """Weights in groups that share an operation."""
    group_of: dict[str, list[str]] = {}
    for name, ops in uses.items():
        group = group_of.setdefault(name, [name])
        for op in ops:
            for other in op.operands:
                if not isinstance(other, Weight):
                    continue
                theirs = group_of.setdefault(other.name, [other.name])
                if theirs is not group:
                    group.extend(theirs)
                    for member in theirs:
                        group_of[member] = group
    return list({id(g): g for g in group_of.values()}.values())


def _search(
    group: list[str],
    uses: Mapping[str, list[Op]],
    options: Mapping[str, list[MaterializerSpec]],
    catalog: CapabilityCatalog,
    chosen: dict[str, MaterializerSpec],
) -> None:
    layouts: dict[str, str] = {}

    def extend(place: int) -> bool:
        if place == len(group):
            return True
        name = group[place]
        for option in options[name]:
            layouts[name] = option.layout
            chosen[name] = option
            if all(_served(op, layouts, catalog) for op in uses[name]) and extend(place + 1):
                return True
        layouts.pop(name, None)
        chosen.pop(name, None)
        return False

    if not extend(0):
        _explain_failure(group, uses, options, catalog)


def _served(op: Op, layouts: Mapping[str, str], catalog: CapabilityCatalog) -> bool:
    return any(
        p.operation == op.kind and not _objection(p, op, layouts) for p in catalog.providers
    )


def _explain_failure(
    group: list[str],
    uses: Mapping[str, list[Op]],
    options: Mapping[str, list[MaterializerSpec]],
    catalog: CapabilityCatalog,
) -> None:
    for name in group:
        for op in uses[name]:
            _require_operation(op, catalog)
    offered = {name: [o.layout for o in options[name]] for name in group}
    raise UnsupportedLayoutError(
        "no choice of layouts suits every operation that uses these weights",
        field=f"weights.{group[0]}",
        value=offered,
        remedy="see `helios plan --explain` for the layouts each provider accepts",
    )


def _require_operation(op: Op, catalog: CapabilityCatalog) -> None:
    version = OPS[op.kind].version
    versions = {p.version for p in catalog.providers if p.operation == op.kind}
    if version not in versions:
        raise UnsupportedOperationError(
            "the device has no provider for this operation",
            field=op.kind,
            value=f"version {version}, device has {sorted(versions) or 'none'}",
            remedy="use a device whose catalog lists it",
        )


def _decide(
    index: int, op: Op, layouts: Mapping[str, str], catalog: CapabilityCatalog
) -> OpPlan:
    _require_operation(op, catalog)
    rejected: list[Rejection] = []
    winner: ProviderSpec | None = None
    for provider in catalog.providers:
        if provider.operation != op.kind:
            continue
        objection = _objection(provider, op, layouts)
        if winner is not None:
            objection = objection or f"{winner.name} comes first"
        if objection:
            rejected.append(Rejection(provider.name, objection))
        else:
            winner = provider
    if winner is None:
        raise UnsupportedOperationError(
            "every provider of this operation refuses it",
            field=f"{op.kind}[{index}]",
            value="; ".join(f"{r.provider}: {r.reason}" for r in rejected),
            remedy="use a device whose catalog accepts it",
        )
    accepted = [layouts[o.name] for o in op.operands if isinstance(o, Weight)]
    reason = f"accepts {', '.join(accepted)}" if accepted else "first that implements it"
    return OpPlan(index, op.kind, winner.name, reason, tuple(rejected))


def _objection(provider: ProviderSpec, op: Op, layouts: Mapping[str, str]) -> str:
    """Why a provider can't run an operation, or an empty string. Unchosen weights don't object."""
    spec = OPS[op.kind]
    if provider.version != spec.version:
        return f"implements version {provider.version}, not {spec.version}"
    for operand_spec, operand in zip(spec.operands, op.operands, strict=False):
        if not isinstance(operand, Weight) or operand.name not in layouts:
            continue
        accepted = provider.weight_layouts.get(operand_spec.name, ())
        if layouts[operand.name] not in accepted:
            return f"{operand_spec.name} is {layouts[operand.name]}, accepts {', '.join(accepted)}"
    for name, choices in provider.attributes.items():
        if op.attributes.get(name) not in choices:
            return f"{name} is {op.attributes.get(name)!r}, accepts {choices}"
    return ""
