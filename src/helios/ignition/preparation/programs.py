"""All programs of a model."""

from helios.contract.operation import Operation
from helios.ignition.preparation.admission import admission_graph
from helios.ignition.preparation.geometry import Geometry
from helios.ignition.preparation.graph import Graph
from helios.ignition.preparation.text import text_graph
from helios.ignition.preparation.transfer import restore_graph
from helios.ignition.recipes.recipe import Recipe


def build_graphs(recipe: Recipe, geometry: Geometry) -> tuple[Graph, ...]:
    """One verified program per operation, each with its contract entry.

    Extents are dynamic up to their capacity, so that one variant serves every smaller step.
    """
    tokens = {
        Operation.PREFILL: geometry.prefill_tokens,
        Operation.SCORED_PREFILL: geometry.scored_tokens,
        Operation.DECODE: geometry.concurrency,
        Operation.MIXED: geometry.mixed_tokens,
    }
    return (
        admission_graph("initialize", Operation.INITIALIZE, geometry),
        admission_graph("resume", Operation.RESUME, geometry),
        restore_graph("restore", geometry),
        *(
            text_graph(operation.name.lower(), operation, recipe, geometry, capacity)
            for operation, capacity in tokens.items()
        ),
    )
