"""Choosing a provider for every operation jointly with a layout for every weight.

A weight has one layout wherever it is used, so operations that share a weight decide together.
The search tries materializers in order of preference, those that the user asked for first and
then the exact ones in the catalog's order, and backtracks, so it finds a choice whenever one
exists.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from helios.compile.capabilities import CapabilityCatalog, MaterializerSpec, ProviderSpec
from helios.compile.plan import OpPlan, Rejection
from helios.contract.prepared import WeightDescriptor
from helios.errors import ConfigurationError, UnsupportedLayoutError, UnsupportedOperationError
from helios.program.ir import Op, Program, Weight
from helios.program.ops import OPS
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class Selection:
    """A materializer per weight, and per program a decision for each operation."""

    materializers: Mapping[str, MaterializerSpec]
    ops: tuple[tuple[OpPlan, ...], ...]
    bounds: Mapping[str, float]  # of weights that are approximate


def select(
    programs: Sequence[Program],
    weights: Mapping[str, WeightDescriptor],
    catalog: CapabilityCatalog,
    approximate: Mapping[str, float],
) -> Selection:
    """Providers and layouts for all programs, or an error that says what is missing.

    `approximate` maps names or patterns of transcoding materializers to the error each may make;
    one that ends up unused is an error too.
    """
    allowed = _allowed(catalog, approximate)
    search = _Search(programs, weights, catalog, allowed)
    chosen = search.run()
    _require_used(approximate, {spec.name for spec in chosen.values()})
    layouts = {name: spec.layout for name, spec in chosen.items()}
    decide = _Decider(catalog, layouts)
    ops = tuple(
        tuple(decide(program.name, index, op) for index, op in enumerate(program.ops))
        for program in programs
    )
    bounds = {name: allowed[spec.name] for name, spec in chosen.items() if not spec.exact}
    return Selection(chosen, ops, bounds)


def _allowed(catalog: CapabilityCatalog, approximate: Mapping[str, float]) -> dict[str, float]:
    """The bound of each transcoding materializer that is allowed; the strictest pattern binds."""
    found: dict[str, float] = {}
    for spec in catalog.materializers:
        bounds = [b for pattern, b in approximate.items() if fnmatchcase(spec.name, pattern)]
        if bounds and not spec.exact:
            found[spec.name] = min(bounds)
    return found


def _require_used(approximate: Mapping[str, float], used: set[str]) -> None:
    for pattern in approximate:
        if not any(fnmatchcase(name, pattern) for name in used):
            raise ConfigurationError(
                "this materializer applies to no weight of the model",
                field="--materialize",
                value=pattern,
                remedy="leave it out; `helios plan --explain` lists what each weight can become",
            )


class _Search:
    """Depth first over the weights of one group at a time."""

    def __init__(
        self,
        programs: Sequence[Program],
        weights: Mapping[str, WeightDescriptor],
        catalog: CapabilityCatalog,
        allowed: Mapping[str, float],
    ) -> None:
        self._catalog = catalog
        self._allowed = allowed
        self._uses = _weight_uses(programs)
        self._options = {name: self._options_of(weights[name]) for name in sorted(self._uses)}
        self._chosen: dict[str, MaterializerSpec] = {}

    def run(self) -> Mapping[str, MaterializerSpec]:
        """A materializer for every weight that a program uses."""
        for group in _connected(self._uses):
            if not self._extend(group, 0):
                self._explain_failure(group)
        return dict(sorted(self._chosen.items()))

    def _options_of(self, weight: WeightDescriptor) -> list[MaterializerSpec]:
        storage = weight.storage.name.lower()
        readers = [
            m
            for m in self._catalog.materializers
            if m.storage == storage and self._is_whole(weight, m)
        ]
        found = [m for m in readers if m.name in self._allowed] + [m for m in readers if m.exact]
        if not found:
            approximate = sorted(m.name for m in readers)
            known = sorted({m.storage for m in self._catalog.materializers if m.exact})
            prepared = "prepare the model again with --layout source"
            raise UnsupportedLayoutError(
                "no exact materializer reads this storage",
                field=f"weights.{weight.name}",
                value=storage,
                remedy=f"allow an approximate one with --materialize: {', '.join(approximate)}"
                if approximate
                else prepared
                if weight.storage.tile_rows > 1
                else f"prepare the model in one of {', '.join(known)}",
            )
        return found

    def _is_whole(self, weight: WeightDescriptor, spec: MaterializerSpec) -> bool:
        """A transcoder needs rows of whole blocks; what is exact starts from them."""
        block = self._catalog.layout(spec.layout).block
        return spec.exact or weight.shape[-1] % block == 0

    def _extend(self, group: Sequence[str], place: int) -> bool:
        if place == len(group):
            return True
        name = group[place]
        for option in self._options[name]:
            self._chosen[name] = option
            if all(self._is_served(op) for op in self._uses[name]) and self._extend(
                group, place + 1
            ):
                return True
        self._chosen.pop(name, None)
        return False

    def _is_served(self, op: Op) -> bool:
        layouts = {
            o.name: self._chosen[o.name].layout
            for o in op.operands
            if isinstance(o, Weight) and o.name in self._chosen
        }
        return any(
            p.operation == op.kind and not _objection(p, op, layouts)
            for p in self._catalog.providers
        )

    def _explain_failure(self, group: Sequence[str]) -> None:
        for name in group:
            for op in self._uses[name]:
                _require_operation(op, self._catalog)
        raise UnsupportedLayoutError(
            "no choice of layouts suits every operation that uses these weights",
            field=f"weights.{group[0]}",
            value={name: [o.layout for o in self._options[name]] for name in group},
            remedy="; ".join(self._accepted(group)),
        )

    def _accepted(self, group: Sequence[str]) -> list[str]:
        kinds = {op.kind for name in group for op in self._uses[name]}
        return [
            f"{p.name} accepts {dict(p.weight_layouts)}"
            for p in self._catalog.providers
            if p.operation in kinds
        ]


def _weight_uses(programs: Sequence[Program]) -> dict[str, list[Op]]:
    """The distinct uses of each weight; programs repeat them, and once is enough."""
    uses: dict[str, dict[object, Op]] = {}
    seen: set[int] = set()
    for program in programs:
        for op in program.ops:
            if id(op) in seen:
                continue
            seen.add(id(op))
            names = tuple([o.name if isinstance(o, Weight) else None for o in op.operands])
            for name in filter(None, names):
                key = (op.kind, names, tuple(op.attributes.items()))
                uses.setdefault(name, {}).setdefault(key, op)
    return {name: list(ops.values()) for name, ops in uses.items()}


def _connected(uses: Mapping[str, list[Op]]) -> list[list[str]]:
    """Weights in groups that share an operation."""
    group_of: dict[str, list[str]] = {}
    for name, ops in uses.items():
        group_of.setdefault(name, [name])
        for op in ops:
            for other in op.operands:
                if isinstance(other, Weight):
                    _merge(group_of, name, other.name)
    return list({id(group): group for group in group_of.values()}.values())


def _merge(group_of: dict[str, list[str]], left: str, right: str) -> None:
    ours, theirs = group_of[left], group_of.setdefault(right, [right])
    if theirs is not ours:
        ours.extend(theirs)
        for member in theirs:
            group_of[member] = ours


def _require_operation(op: Op, catalog: CapabilityCatalog, where: str = "") -> None:
    """Raise `UnsupportedOperationError` where no provider runs it, whatever the layouts."""
    version = OPS[op.kind].version
    versions = {p.version for p in catalog.providers if p.operation == op.kind}
    if version not in versions:
        raise UnsupportedOperationError(
            "the device has no provider for this operation",
            field=where or op.kind,
            value=f"version {version}, device has {sorted(versions) or 'none'}",
            remedy="use a device whose catalog lists it",
        )
    mine = [p for p in catalog.providers if p.operation == op.kind]
    objections = {p.name: _objection(p, op, {}) for p in mine}
    if all(objections.values()):
        raise UnsupportedOperationError(
            "every provider of this operation refuses it",
            field=where or op.kind,
            value="; ".join(f"{name}: {reason}" for name, reason in objections.items()),
            remedy="use a device whose catalog accepts it",
        )


class _Decider:
    """Decides each distinct operation once."""

    def __init__(self, catalog: CapabilityCatalog, layouts: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._layouts = layouts
        self._known: dict[object, OpPlan] = {}
        self._decided: dict[int, OpPlan] = {}  # by the operation itself: programs share them

    def __call__(self, program: str, index: int, op: Op) -> OpPlan:
        known = self._decided.get(id(op))
        if known is None:
            known = self._decided[id(op)] = self._alike(program, index, op)
        return known

    def _alike(self, program: str, index: int, op: Op) -> OpPlan:
        key = (
            op.kind,
            tuple([o and o.type.dtype for o in op.operands]),
            tuple([self._layouts[o.name] for o in op.operands if isinstance(o, Weight)]),
            tuple([isinstance(o, Weight) for o in op.operands]),
            tuple(op.attributes.items()),
        )
        if key not in self._known:
            self._known[key] = self._decide(f"{program}.ops[{index}] {op.kind}", op)
        return self._known[key]

    def _decide(self, where: str, op: Op) -> OpPlan:
        _require_operation(op, self._catalog, where)
        winner = ""
        rejected: list[Rejection] = []
        for provider in self._catalog.providers:
            if provider.operation != op.kind:
                continue
            objection = _objection(provider, op, self._layouts)
            if not objection and not winner:
                winner = provider.name
            else:
                rejected.append(Rejection(provider.name, objection or f"{winner} is preferred"))
        return OpPlan(op.kind, winner, self._reason(op, len(rejected)), tuple(rejected))

    def _reason(self, op: Op, others: int) -> str:
        layouts = [self._layouts[o.name] for o in op.operands if isinstance(o, Weight)]
        if not others:
            return "the only provider"
        return f"preferred among those for {', '.join(layouts)}" if layouts else "preferred"


def _objection(provider: ProviderSpec, op: Op, layouts: Mapping[str, str]) -> str:
    """Why a provider can't run an operation, or an empty string. Unchosen weights don't object."""
    spec = OPS[op.kind]
    if provider.version != spec.version:
        return f"implements version {provider.version}, not {spec.version}"
    for operand_spec, operand in zip(spec.operands, op.operands, strict=False):
        if operand is None:
            continue
        if not isinstance(operand, Weight):
            dtypes = provider.dtypes.get(operand_spec.name)
            if dtypes is not None and operand.type.dtype.text not in dtypes:
                return (
                    f"{operand_spec.name} is {operand.type.dtype.text}, accepts {', '.join(dtypes)}"
                )
        elif operand.name in layouts:
            accepted = provider.weight_layouts.get(operand_spec.name, ())
            if layouts[operand.name] not in accepted:
                return (
                    f"{operand_spec.name} is {layouts[operand.name]}, "
                    f"accepts {', '.join(accepted) or 'none'}"
                )
    for name, choices in provider.attributes.items():
        if op.attributes.get(name) not in choices:
            return f"{name} is {op.attributes.get(name)!r}, accepts {list(choices)}"
    return ""
