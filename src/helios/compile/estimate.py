"""What a provider needs to run one operation, from metadata alone.

The op table says which dimensions an operation has; a provider's demands are stated over them.
"""

from collections.abc import Mapping

from helios.compile.capabilities import ProviderSpec
from helios.compile.demand import Demand
from helios.contract.tensor import Dim
from helios.program.ir import Op
from helios.program.ops import OPS
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class Workspace:
    """Memory beside operands and results.

    `scratch` is free again after the operation, `held` after the program, `binding` belongs to
    the bound operation as long as the model is loaded, `persistent` is shared by all operations
    of the provider.
    """

    scratch: Demand
    held: Demand
    binding: Demand
    persistent: Demand


def workspace(provider: ProviderSpec, op: Op) -> Workspace:
    """The provider's demands for that operation's shapes; extents stay symbolic."""
    dims = dimensions(op)
    return Workspace(
        scratch=provider.scratch.bind(dims),
        held=provider.held.bind(dims),
        binding=provider.binding.bind(dims),
        persistent=provider.persistent.bind(dims),
    )


class Estimator:
    """Estimates operations, each distinct one once: layers repeat the same few shapes."""

    def __init__(self, providers: Mapping[str, ProviderSpec]) -> None:
        self._providers = providers
        self._known: dict[object, Workspace] = {}
        self._estimated: dict[tuple[str, int], tuple[Op, Workspace]] = {}

    def __call__(self, provider: str, op: Op) -> Workspace:
        """What the provider of that name needs for an operation."""
        # The operation is kept, so that its id is its own.
        _, found = self._estimated.get((provider, id(op)), (op, None))
        if found is None:
            types = tuple([o and o.type for o in op.operands])
            key = (provider, op.kind, types, tuple(op.attributes.items()))
            found = self._known.get(key)
            if found is None:
                found = self._known[key] = workspace(self._providers[provider], op)
            self._estimated[provider, id(op)] = op, found
        return found


def dimensions(op: Op) -> dict[str, Dim | tuple[Dim, ...]]:
    """Every name of the operation's row with what it stands for; absent operands' names are 0."""
    spec = OPS[op.kind]
    found: dict[str, Dim | tuple[Dim, ...]] = {
        name: value for name, value in op.attributes.items() if type(value) is int
    }
    found.update({name: str(op.attributes[name]) for name in _extent_attributes(op)})
    padded = (*op.operands, *(None for _ in spec.operands[len(op.operands) :]))
    for operand_spec, operand in zip(spec.operands, padded, strict=True):
        if operand is not None:
            found.update(_matched(operand_spec.shape, operand.type.shape))
    for operand_spec in spec.operands:
        for name in operand_spec.shape:
            if isinstance(name, str):
                found.setdefault(name, 0)
    return found


def _extent_attributes(op: Op) -> list[str]:
    """Attributes that name an extent: those that a result's shape refers to by text."""
    named = {name for result in OPS[op.kind].results for name in result.shape}
    return [name for name, value in op.attributes.items() if name in named and type(value) is str]


def _matched(
    pattern: tuple[str | int, ...], shape: tuple[Dim, ...]
) -> dict[str, Dim | tuple[Dim, ...]]:
    head = pattern.index("...") if "..." in pattern else len(pattern)
    tail = len(pattern) - head - 1 if head < len(pattern) else 0
    named: dict[str, Dim | tuple[Dim, ...]] = {}
    pairs = [*zip(pattern[:head], shape, strict=False)]
    if head < len(pattern):
        named["..."] = shape[head : len(shape) - tail]
        pairs += zip(pattern[head + 1 :], shape[len(shape) - tail :], strict=True)
    named.update({name: dim for name, dim in pairs if isinstance(name, str)})
    return named
