"""Semantic versions of a model contract, and what each leaves implied.

Version 1 has neither tuned bindings nor explicit D, P and confidence width: D is W − 1 for
SPECULATIVE and 0 otherwise, P is B · W, and no program gives confidence. Version 2 adds tuned
bindings. Version 3 states D, P and the confidence width.
"""

from helios.contract.operation import Operation
from helios.contract.reading import refusal
from helios.records import dataclass
from helios.schema import contract_pb2 as pb

VERSIONS = (1, 2, 3)

_SINCE = {
    "tuned_bindings": 2,
    "draft_tokens": 3,
    "packed_token_capacity": 3,
    "confidence_width": 3,
}


@dataclass(frozen=True, slots=True)
class Extents:
    """The four physical extents of a graph, and its confidence width."""

    rows: int
    draft_tokens: int
    width: int
    tokens: int
    confidence_width: int


def check_version(model: pb.ModelContract) -> None:
    """The version is known and no graph uses a feature that is newer."""
    if model.version not in VERSIONS:
        raise refusal(
            "model.version", "unsupported version", model.version, "use a release that reads it"
        )
    for graph in model.graphs:
        for name, since in _SINCE.items():
            value = getattr(graph, name)
            if value and model.version < since:
                raise refusal(
                    f"graphs.{graph.program}.{name}",
                    f"needs version {since} and the contract declares {model.version}",
                    value if isinstance(value, int) else len(value),
                    f"declare version {since} or leave it unset",
                )


def extents_of(graph: pb.GraphContract, version: int) -> Extents:
    """The extents of a graph, implied where its version does not state them."""
    rows, width = graph.batch_capacity, graph.token_capacity
    if version >= 3:
        return Extents(
            rows, graph.draft_tokens, width, graph.packed_token_capacity, graph.confidence_width
        )
    speculative = int(graph.operation) == Operation.SPECULATIVE
    return Extents(rows, max(width - 1, 0) if speculative else 0, width, rows * width, 0)
