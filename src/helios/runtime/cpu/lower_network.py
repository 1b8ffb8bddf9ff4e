"""Lowering the network other than matrix products and attention."""

from helios.runtime.cpu.lower_products import FUNCTIONS
from helios.runtime.cpu.lowering import Lowering, operands
from helios.runtime.cpu.regions import rope_key
from helios.runtime.cpu.schedule import Node


def embedding(low: Lowering, node: Node) -> None:
    """embedding, from a packed table."""
    tokens, table = operands(node, 2)
    weight = low.placement.weight(table)
    low.emit(
        "embedding",
        count=low.count(tokens),
        tokens=low.at(tokens),
        out=low.at(node.op.results[0]),
        weight=weight.address,
        layout=weight.layout.upper(),
        vocabulary=weight.rows,
        columns=weight.columns,
        scale=node.op.attributes["scale"],
    )


def rms_norm(low: Lowering, node: Node) -> None:
    """rms_norm, quantised where products read it."""
    x = operands(node, 2)[0]
    columns = low.dim(x.type.shape[-1])
    low.named(
        node,
        "x",
        "weight",
        columns=columns,
        repeat=low.inner(x) // columns,
        epsilon=node.op.attributes["epsilon"],
        **low.region(node.op.results[0], node.leaves),
    )


def rope(low: Lowering, node: Node) -> None:
    """rope, with its table before the first that needs it."""
    x, positions, frequencies = operands(node, 3)
    key = rope_key(node.op)
    table = low.tables[key]
    pairs = low.rows(frequencies)
    if table not in low.tables_made:
        low.tables_made.add(table)
        low.emit(
            "rope_table",
            count=low.count(x),
            positions=low.at(positions),
            frequencies=low.at(frequencies),
            pairs=pairs,
            magnitude=key[2],
            table=table,
        )
    _, heads, dim = x.type.shape
    low.emit(
        "rope",
        count=low.count(x),
        x=low.at(x),
        out=low.at(node.op.results[0]),
        heads=low.dim(heads),
        dim=low.dim(dim),
        pairs=pairs,
        interleaved=node.op.attributes["interleaved"],
        table=table,
    )


def heads(low: Lowering, node: Node) -> None:
    """split_heads and merge_heads: a copy, unless the bytes already lie there."""
    (x,) = operands(node, 1)
    result = node.op.results[0]
    offset = node.op.attributes.get("offset", 0)
    assert isinstance(offset, int)
    source, out = low.at(x) + offset * x.type.dtype.nbytes, low.at(result)
    if source == out and low.inner(x) == low.inner(result):
        return
    low.emit(
        "copy",
        count=low.count(result),
        source=source,
        source_pitch=low.bytes(x),
        out=out,
        bytes=low.bytes(result),
    )


def gated_activation(low: Lowering, node: Node) -> None:
    """gated_activation on its own."""
    function = FUNCTIONS[str(node.op.attributes["function"])]
    low.named(node, "gate", "up", columns=low.inner(node.op.results[0]), function=function)


def add(low: Lowering, node: Node) -> None:
    """add."""
    low.named(node, "left", "right", columns=low.inner(node.op.results[0]))


def scale(low: Lowering, node: Node) -> None:
    """scale."""
    columns = low.inner(node.op.results[0])
    low.named(node, "x", columns=columns, factor=node.op.attributes["factor"])


def softcap(low: Lowering, node: Node) -> None:
    """softcap."""
    columns = low.inner(node.op.results[0])
    low.named(node, "x", columns=columns, factor=node.op.attributes["cap"])
