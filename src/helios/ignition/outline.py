"""What a source would be prepared into, without reading its weights: enough to plan for it."""

from collections.abc import Mapping

from helios.contract.prepare import prepare_contract
from helios.contract.prepared import PreparedContract
from helios.ignition.options import PrepareOptions, resolve_geometry
from helios.ignition.preparation.contract import serving_contract
from helios.ignition.preparation.frontend import frontend_contract
from helios.ignition.preparation.manifest import execution_manifest
from helios.ignition.preparation.programs import build_graphs
from helios.ignition.preparation.tuning import catalogued, with_tuning
from helios.ignition.recipes.registry import recipe_for
from helios.ignition.sources.source import Source, SourceTensor
from helios.ignition.weights import lay_out
from helios.program.ir import Program
from helios.records import dataclass
from helios.schema.contract_pb2 import ServingContract
from helios.schema.manifest_pb2 import ExecutionManifest

_NAME = "outline"
_NO_DIGEST = bytes(32)


@dataclass(frozen=True, slots=True)
class Outline:
    """A contract and its programs. Its cache identity and frontend mean nothing: it can be
    planned for, and never served."""

    contract: PreparedContract
    programs: tuple[Program, ...]
    messages: tuple[ServingContract, ExecutionManifest]
    tensors: Mapping[str, SourceTensor]


def outline(source: Source, options: PrepareOptions) -> Outline:
    """Run the recipe over a source's description.

    Raises what preparing it would raise, except for faults in weights and tokenizer, which are
    not looked at.
    """
    recipe = recipe_for(source)
    geometry = resolve_geometry(options, recipe.facts)
    graphs, tuning = with_tuning(build_graphs(recipe, geometry), recipe.tensors)
    contract = serving_contract(
        recipe.facts,
        geometry,
        graphs,
        frontend_contract((0,), {}, False, False),
        served_id=options.served_id or _NAME,
        aliases=options.aliases,
        source_sha256=_NO_DIGEST,
    )
    weights = lay_out(recipe.tensors, options.layout)
    manifest = execution_manifest(graphs, tuning, geometry, weights.descriptors())
    programs = tuple(program for _, program in catalogued(graphs, tuning))
    prepared = prepare_contract(contract, manifest)
    return Outline(prepared, programs, (contract, manifest), recipe.tensors)
