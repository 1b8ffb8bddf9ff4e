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
    prefill, scored = geometry.prefill_tokens, geometry.scored_tokens
    capacities = {
        Operation.PREFILL: (prefill, prefill),
        Operation.SCORED_PREFILL: (scored, scored),
        Operation.DECODE: (geometry.concurrency, 1),
        # A full prefill chunk beside one token of every other lane.
        Operation.MIXED: (prefill + geometry.concurrency - 1, prefill),
    }
    return (
        admission_graph("initialize", Operation.INITIALIZE, geometry),
        admission_graph("resume", Operation.RESUME, geometry),
        restore_graph("restore", geometry),
        *(
            text_graph(operation.name.lower(), operation, recipe, geometry, tokens, lane_tokens)
            for operation, (tokens, lane_tokens) in capacities.items()
        ),
    )
