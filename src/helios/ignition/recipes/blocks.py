"""Layers that dense decoders share: grouped attention and gated feed-forward.

Weights are named after their place: `layers.3.attention.query`. A recipe declares which of the
optional ones (biases, query and key norms) a layer has.

A recipe also says which products are coarse, that is, bear an input in 8 bits. What a family bears
was measured, group by group (`docs/architecture.md`); queries, keys and values, which lose most for
their size, are never coarse here.
"""

from helios.ignition.recipes.recipe import Batch, Planes
from helios.program.builder import ProgramBuilder
from helios.program.ir import Ref, Value, Weight
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Geometry of one attention layer; `scale` multiplies the scores."""

    width: int
    heads: int
    key_heads: int
    head_dim: int
    scale: float
    rope_pairs: int
    rope_weight: str
    interleaved: bool = False
    magnitude: float = 1.0
    window: int = 0
    softcap: float = 0.0
    projection_bias: bool = False
    output_bias: bool = False
    head_norms: bool = False


def linear(
    builder: ProgramBuilder,
    x: Ref,
    name: str,
    inputs: int,
    outputs: int,
    bias: bool = False,
    coarse: bool = False,
    result: str = "",
) -> Value:
    """x · weightᵀ (+ bias), with weights `name` and `name`.bias; `result` names the value."""
    weight = builder.weight(name, (outputs, inputs))
    added: Weight | None = builder.weight(f"{name}.bias", (outputs,)) if bias else None
    return builder.value("linear", x, weight, added, name=result, coarse=coarse)


def rms_norm(builder: ProgramBuilder, x: Ref, name: str, width: int, epsilon: float) -> Value:
    """Root-mean-square norm with weight `name`."""
    return builder.value("rms_norm", x, builder.weight(name, (width,)), epsilon=epsilon)


def attention(
    builder: ProgramBuilder,
    x: Value,
    layer: str,
    shape: AttentionShape,
    batch: Batch,
    planes: Planes,
    epsilon: float,
    coarse: bool = False,
) -> Value:
    """Grouped causal attention of f32[T, E] over the paged history, written to first.

    What each head attends to is the value `LAYER.attention.heads`, the result `LAYER.attention`,
    a product that may be coarse.
    """

    def heads(which: str, count: int) -> Value:
        flat = linear(
            builder,
            x,
            f"{layer}.attention.{which}",
            shape.width,
            count * shape.head_dim,
            shape.projection_bias,
        )
        return builder.value("split_heads", flat, heads=count, dim=shape.head_dim)

    def turned(which: str, count: int) -> Value:
        y = heads(which, count)
        if shape.head_norms:
            y = rms_norm(builder, y, f"{layer}.attention.{which}_norm", shape.head_dim, epsilon)
        frequencies = builder.weight(shape.rope_weight, (shape.rope_pairs,))
        return builder.value(
            "rope",
            y,
            batch.positions,
            frequencies,
            interleaved=shape.interleaved,
            magnitude=shape.magnitude,
        )

    where = (batch.rows, batch.positions, batch.slots, batch.page_table)
    query = turned("query", shape.heads)
    builder.op("cache_write", turned("key", shape.key_heads), *where, planes.keys)
    builder.op("cache_write", heads("value", shape.key_heads), *where, planes.values)
    mixed = builder.value(
        "paged_attention",
        query,
        *where,
        planes.keys,
        planes.values,
        scale=shape.scale,
        window=shape.window,
        softcap=shape.softcap,
        name=f"{layer}.attention.heads",
    )
    inner = shape.heads * shape.head_dim
    flat = builder.value("merge_heads", mixed, width=inner)
    return linear(
        builder,
        flat,
        f"{layer}.attention.output",
        inner,
        shape.width,
        shape.output_bias,
        coarse,
        result=f"{layer}.attention",
    )


def feed_forward(
    builder: ProgramBuilder,
    x: Value,
    layer: str,
    width: int,
    inner: int,
    function: str,
    coarse: bool = False,
    coarse_down: bool = False,
) -> Value:
    """down(function(gate(x)) · up(x)), the value `LAYER.feed_forward`.

    Gate and up may be coarse, and down.
    """
    gate = linear(builder, x, f"{layer}.feed_forward.gate", width, inner, coarse=coarse)
    up = linear(builder, x, f"{layer}.feed_forward.up", width, inner, coarse=coarse)
    active = builder.value("gated_activation", gate, up, function=function)
    return linear(
        builder,
        active,
        f"{layer}.feed_forward.down",
        inner,
        width,
        result=f"{layer}.feed_forward",
        coarse=coarse_down,
    )
