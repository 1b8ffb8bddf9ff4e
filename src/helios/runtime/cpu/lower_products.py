"""Lowering matrix products and what runs with them."""

from collections.abc import Sequence

from helios import _native
from helios.program.ir import Op, Ref
from helios.runtime.cpu.lowering import Lowering, Params, operands
from helios.runtime.cpu.schedule import INTEGER_LAYOUTS, Gated, Node, Quantise, Round

FUNCTIONS = {"silu": 0, "gelu": 1, "gelu_tanh": 2}
"""Activations as the kernels number them."""


def _linear(
    low: Lowering,
    x: Ref,
    ops: Sequence[Op],
    outs: Sequence[Ref | None],
    residuals: Sequence[Ref | None],
    planes: int,
) -> Params:
    weights = [low.placement.weight(op.operands[1]) for op in ops]
    biases = [op.operands[2] if len(op.operands) > 2 else None for op in ops]
    params: Params = {
        "count": low.count(x),
        "columns": weights[0].columns,
        "weights": [w.address for w in weights],
        "layouts": [_native.layout_number(w.layout.upper()) for w in weights],
        "rows": [w.rows for w in weights],
        "biases": [low.at(b) for b in biases],
        "residuals": [low.at(r) for r in residuals],
        "outs": [low.at(o) for o in outs],
        **_choices(low, ops),
    }
    return params | (low.region(x, planes) or {"x": low.at(x)})


def _choices(low: Lowering, ops: Sequence[Op]) -> Params:
    """The tuned choices of the largest product, by which a whole round is cut."""
    largest = max(ops, key=lambda op: low.placement.weight(op.operands[1]).rows)
    choices = largest.operands[3] if len(largest.operands) > 3 else None
    if choices is None:
        return {}
    return {"choices": low.at(choices), "places": low.rows(choices)}


def products(low: Lowering, node: Round) -> None:
    """Products of one input in one round."""
    params = _linear(
        low,
        node.x,
        [p.linear for p in node.products],
        [p.out for p in node.products],
        [p.residual for p in node.products],
        node.planes,
    )
    low.emit("linear", **params)


def gated(low: Lowering, node: Gated) -> None:
    """Gate and up with their activation, quantised where products read the result."""
    result = node.activation.results[0]
    params = _linear(
        low,
        node.x,
        [node.gate, node.up],
        [result if node.plain else None, None],
        [None, None],
        node.planes,
    )
    params["gate"] = FUNCTIONS[str(node.activation.attributes["function"])]
    if node.leaves:
        params["out_region"] = low.regions[result.name, node.leaves]
        params["out_planes"] = node.leaves
    low.emit("linear", **params)


def tune_linear(low: Lowering, node: Node) -> None:
    """Measuring the cuts of one product; `cpu/tuning` adds what is known only when it runs."""
    weight, choices = operands(node, 2)
    packed = low.placement.weight(weight)
    planes = low.numerics.planes(node.op) if packed.layout in INTEGER_LAYOUTS else 0
    low.emit(
        "tune_linear",
        weights=[packed.address],
        layout=_native.layout_number(packed.layout.upper()),
        rows=packed.rows,
        columns=packed.columns,
        planes=planes,
        choices=low.at(choices),
        places=low.rows(choices),
    )


def quantise(low: Lowering, node: Quantise) -> None:
    """A quantised form of a value."""
    low.emit(
        "quantise",
        count=low.count(node.x),
        x=low.at(node.x),
        columns=low.inner(node.x),
        **low.region(node.x, node.planes),
    )
