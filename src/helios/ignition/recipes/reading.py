"""What recipes read and check alike, whichever architecture they are for."""

from helios.errors import SourceError
from helios.ignition.sources.facts import Facts
from helios.ignition.sources.source import Source

INTACT = "use a checkpoint whose configuration is intact"


def layer_windows(facts: Facts, layers: int, window: int) -> tuple[int, ...]:
    """The window of every layer from a list that says which layers slide."""
    kinds = [str(kind) for kind in facts.sequence("layer_types")]
    known = {"sliding_attention": window, "full_attention": 0}
    if len(kinds) != layers or any(kind not in known for kind in kinds):
        raise SourceError(
            f"must name {layers} layers, each one of {', '.join(known)}",
            field=facts.name("layer_types"),
            value=kinds,
            remedy=INTACT,
        )
    return tuple(known[kind] for kind in kinds)


def layer_count(source: Source, key: str) -> int:
    """The number of layers, each of which must at least have a tensor."""
    layers = source.config.integer(key)
    if layers > len(source.tensors):
        raise SourceError(
            f"the checkpoint has no more than {len(source.tensors)} tensors",
            field=source.config.name(key),
            value=layers,
            remedy="use a complete checkpoint",
        )
    return layers


def vocabulary_rows(source: Source, embedding: str) -> int:
    """The rows of the embedding table: the ids a model knows, padding included."""
    if embedding not in source.tensors:
        raise SourceError(
            "the checkpoint lacks this tensor", field=embedding, remedy="use a complete checkpoint"
        )
    return source.tensors[embedding].shape[0]


def refuse_present(facts: Facts, key: str, what: str) -> None:
    """Refuse a configuration that asks for something the recipe does not compute."""
    if key in facts and facts.whole(key):
        raise SourceError(
            f"{what} are not part of this recipe",
            field=facts.name(key),
            value=facts.whole(key),
            remedy="use another checkpoint",
        )


def check_heads(source: Source, heads: int, key_heads: int, head_dim: int) -> None:
    """Query heads share key heads in equal groups, and a head has elements in pairs."""
    if heads % key_heads or head_dim % 2:
        raise SourceError(
            "query heads must be a multiple of key heads, and heads of even size",
            field=f"{source.architecture} heads",
            value=(heads, key_heads, head_dim),
            remedy=INTACT,
        )


def check_value_length(facts: Facts, head_dim: int) -> None:
    """GGUF can state keys and values of different lengths, which these recipes do not have."""
    length = facts.integer("attention.value_length", head_dim)
    if length != head_dim:
        raise SourceError(
            f"keys have {head_dim} elements and values as many",
            field=facts.name("attention.value_length"),
            value=length,
            remedy="this needs another recipe",
        )
