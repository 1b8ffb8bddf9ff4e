"""Late input: what the host supplies while the step that reads it runs.

A grammar's mask follows from the token before it, so that the host can only begin on it when the
step that needs it may begin too. The step is therefore submitted first, and waits where it first
reads such input, which is after its network.
"""

from helios.contract.kinds import ValueSource
from helios.contract.prepared import PreparedContract

LATE_SOURCES = frozenset({ValueSource.GRAMMAR_MASK, ValueSource.PROPOSAL_GRAMMAR_MASK})

LATE_SECONDS = 60.0
"""How long a step waits before it fails. No grammar takes so long: its work is bounded."""


def late_inputs(contract: PreparedContract) -> frozenset[str]:
    """The transport buffers that are filled late."""
    return frozenset(
        binding.destination
        for graph in contract.graphs
        for binding in graph.bindings
        if binding.source in LATE_SOURCES
    )
