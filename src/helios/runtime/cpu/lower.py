"""Lowering: scheduled nodes become native steps with absolute addresses."""

from collections.abc import Callable, Mapping

from helios.errors import UnsupportedOperationError
from helios.runtime import late
from helios.runtime.cpu import lower_attention as attention
from helios.runtime.cpu import lower_network as network
from helios.runtime.cpu import lower_products as products
from helios.runtime.cpu import lower_sampling as sampling
from helios.runtime.cpu import lower_state as state
from helios.runtime.cpu.lowering import Lowering, Step
from helios.runtime.cpu.numerics import Numerics
from helios.runtime.cpu.placement import Lifetime, Placement
from helios.runtime.cpu.regions import plain_values
from helios.runtime.cpu.schedule import Gated, Node, Quantise, Round, Schedule, Scheduled

_RULES: Mapping[str, Callable[[Lowering, Node], None]] = {
    "token_rows": state.token_rows,
    "resolve_tokens": state.resolve_tokens,
    "last_tokens": state.last_tokens,
    "gather": state.gather,
    "add_integers": state.add_integers,
    "ones": state.ones,
    "embedding": network.embedding,
    "rms_norm": network.rms_norm,
    "rope": network.rope,
    "split_heads": network.heads,
    "merge_heads": network.heads,
    "gated_activation": network.gated_activation,
    "add": network.add,
    "scale": network.scale,
    "softcap": network.softcap,
    "cache_write": attention.cache_write,
    "paged_attention": attention.paged_attention,
    "process_logits": sampling.process_logits,
    "mask_logits": sampling.mask_logits,
    "sample": sampling.sample,
    "log_probability": sampling.log_probability,
    "top_log_probabilities": sampling.top_log_probabilities,
    "state_read": state.gather,
    "state_write": state.state_write,
    "state_clear": state.state_write,
    "state_add": state.state_add,
    "histogram_add": state.histogram_add,
    "current_page": state.current_page,
    "page_save": state.page_save,
    "page_load": state.page_load,
    "store": state.store,
    "tune_linear": products.tune_linear,
}

SUPPORTED = frozenset({"linear", *_RULES})
"""Operations that can be lowered."""


def lower(
    plan: Schedule, placement: Placement, lengths: Mapping[str, int], numerics: Numerics
) -> list[Step]:
    """The native steps of a scheduled program. `lengths` has the capacity of every extent."""
    low = Lowering(plan, placement, lengths, numerics)
    waits = bool(placement.late)
    for node in plan.nodes:
        if waits and _reads_late(low, node):
            low.emit("await_input", latch=placement.latch, seconds=late.LATE_SECONDS)
            waits = False
        _lower(low, node)
    return low.steps


def _reads_late(low: Lowering, node: Scheduled) -> bool:
    """Whether the host may still be writing what a node reads. Products read no such input."""
    return isinstance(node, Node) and any(map(low.is_late, node.op.operands))


def _lower(low: Lowering, node: Scheduled) -> None:
    if isinstance(node, Round):
        products.products(low, node)
    elif isinstance(node, Gated):
        products.gated(low, node)
    elif isinstance(node, Quantise):
        products.quantise(low, node)
    elif node.op.kind in _RULES:
        _RULES[node.op.kind](low, node)
    else:
        raise UnsupportedOperationError(
            "the CPU runtime has no step for this operation",
            field="op",
            value=node.op.kind,
            remedy="use a newer engine",
        )


def lifetimes(plan: Schedule, lengths: Mapping[str, int]) -> tuple[Lifetime, ...]:
    """How long each value that needs memory must survive, in nodes of the schedule."""
    spans: dict[str, tuple[int, int, int]] = {}
    for index, value in plain_values(plan.nodes):
        root = plan.root(value)
        first = spans.get(root.name, (index, index, 0))[0]
        spans[root.name] = (first, index, root.type.nbytes(lengths))
    return tuple(
        Lifetime(name, nbytes, first, last) for name, (first, last, nbytes) in spans.items()
    )
