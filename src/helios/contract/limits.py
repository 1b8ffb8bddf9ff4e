"""How many of each thing a contract may name, so that checking it is bounded."""

from collections.abc import Mapping

from google.protobuf.message import Message

from helios.contract.reading import refusal
from helios.schema.contract_pb2 import ServingContract
from helios.schema.manifest_pb2 import ExecutionManifest

_SERVING = {"aliases": 64, "speculative_widths": 64}
_MODEL = {"graphs": 1 << 12, "state_views": 1 << 14}
_GRAPH = {"bindings": 512, "state": 1 << 10, "tuned_bindings": 1 << 10, "resources": 64}
_CACHE = {"histories": 1 << 12, "page_tables": 64}
_MANIFEST = {
    "buffers": 1 << 16,
    "transport": 1 << 12,
    "programs": 1 << 12,
    "tuning": 1 << 12,
    "weights": 1 << 19,
}
_PROGRAM = {"completion": 64, "tuned_inputs": 1 << 10, "tuned_outputs": 1 << 10}


def check_counts(contract: ServingContract, manifest: ExecutionManifest) -> None:
    """Raise `ContractError` where a contract or manifest names too many of anything."""
    model = contract.model
    _check(contract, _SERVING, "contract")
    _check(model, _MODEL, "contract.model")
    _check(model.cache, _CACHE, "contract.model.cache")
    for graph in model.graphs:
        _check(graph, _GRAPH, f"graphs.{graph.program}")
    _check(manifest, _MANIFEST, "manifest")
    for program in (*manifest.programs, *manifest.tuning):
        _check(program, _PROGRAM, f"manifest.programs.{program.name}")


def _check(message: Message, limits: Mapping[str, int], field: str) -> None:
    for name, limit in limits.items():
        count = len(getattr(message, name))
        if count > limit:
            raise refusal(f"{field}.{name}", "too many entries", count, f"at most {limit}")
