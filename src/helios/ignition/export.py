"""Preparing a checkpoint: from a source on disk to a signed core."""

import re
from collections.abc import Callable
from pathlib import Path

import helios
from helios.contract.prepare import prepare_contract
from helios.core.body import ResourceKind
from helios.core.keys import SigningKey
from helios.core.writer import CoreSummary, ResourceInput, write_core
from helios.ignition.options import PrepareOptions, resolve_geometry
from helios.ignition.preparation.contract import serving_contract
from helios.ignition.preparation.frontend import (
    TEMPLATE_RESOURCE,
    TOKENIZER_RESOURCE,
    frontend_contract,
)
from helios.ignition.preparation.graph import Graph
from helios.ignition.preparation.manifest import execution_manifest
from helios.ignition.preparation.programs import build_graphs
from helios.ignition.preparation.tuning import Tuning, catalogued, with_tuning
from helios.ignition.recipes.registry import recipe_for
from helios.ignition.sources.huggingface_text import hub_name
from helios.ignition.sources.open import open_source
from helios.ignition.sources.source import License, Source
from helios.ignition.sources.split_name import SPLIT_NAME
from helios.ignition.text_assets import TextAssets, make_text_assets
from helios.ignition.weights import RESOURCE as WEIGHTS_RESOURCE
from helios.ignition.weights import WeightsLayout, lay_out
from helios.program.agreement import check_programs
from helios.program.wire import program_to_bytes
from helios.records import dataclass
from helios.schema import contract_pb2, core_pb2, manifest_pb2

# Bytes written so far, and in all.
Progress = Callable[[int, int], None]

_LICENSE_RESOURCE = "license"


@dataclass(frozen=True, slots=True)
class Deployment:
    """Everything of a core but its signature; tensors are still where the source has them."""

    contract: contract_pb2.ServingContract
    manifest: manifest_pb2.ExecutionManifest
    graphs: tuple[Graph, ...]
    tuning: tuple[Tuning, ...]
    weights: WeightsLayout
    text: TextAssets
    license: License
    provenance: core_pb2.Provenance


def assemble(source: Source, options: PrepareOptions) -> Deployment:
    """Run the recipe and the shared declarations over an opened source.

    Raises `SourceError` for a checkpoint that can't be prepared, `ConfigurationError` for options
    the model can't honour, and `ContractError` for a contract that a server would refuse.
    """
    recipe = recipe_for(source)
    facts = recipe.facts
    geometry = resolve_geometry(options, facts)
    graphs, tuning = with_tuning(build_graphs(recipe, geometry), recipe.tensors)
    weights = lay_out(recipe.tensors, options.layout)
    text = make_text_assets(source, facts.vocabulary, options.syntaxes)
    digest = source.sha256()
    frontend = frontend_contract(text.eos, text.special, text.add_bos, bool(text.chat.template))
    text.chat.declare(frontend)
    contract = serving_contract(
        facts,
        geometry,
        graphs,
        frontend,
        served_id=options.served_id or served_name(source.path),
        aliases=options.aliases,
        source_sha256=digest,
    )
    provenance = core_pb2.Provenance(
        source=source.path.name,
        source_sha256=digest,
        recipe=facts.architecture,
        engine_version=helios.__version__,
    )
    manifest = execution_manifest(graphs, tuning, geometry, weights.descriptors())
    prepared = prepare_contract(contract, manifest)
    check_programs(prepared, {p.name: p for _, p in catalogued(graphs, tuning)})
    return Deployment(contract, manifest, graphs, tuning, weights, text, source.license, provenance)


def prepare(
    source: Path,
    output: Path,
    options: PrepareOptions,
    *,
    key: SigningKey,
    namespace: str,
    progress: Progress | None = None,
) -> CoreSummary:
    """Prepare the checkpoint at `source` into a core at `output`, signed by `key`.

    The same source, options, key and namespace give the same bytes. Nothing is left at `output`
    if anything fails.
    """
    deployment = assemble(open_source(source), options)
    return write_core(
        output,
        publisher=core_pb2.Publisher(
            namespace=namespace,
            name=deployment.contract.served_id,
            license=deployment.license.identifier,
        ),
        contract=deployment.contract,
        manifest=deployment.manifest,
        resources=_resources(deployment),
        provenance=deployment.provenance,
        key=key,
        progress=progress,
    )


def served_name(path: Path) -> str:
    """A plain identifier from the name of a file, as it is given, or of a folder."""
    name = hub_name(path) if path.is_dir() else path.name.removesuffix(".gguf")
    if split := SPLIT_NAME.fullmatch(name):
        name = split[1]
    return re.sub(r"[^A-Za-z0-9_.+@-]+", "-", name).lstrip(".+@-") or "model"


def _resources(deployment: Deployment) -> list[ResourceInput]:
    """Programs first: a reader that only inspects needs no more than the head of the file."""
    text, weights = deployment.text, deployment.weights
    resources = [
        ResourceInput(
            descriptor.resource,
            ResourceKind.PROGRAM,
            data=program_to_bytes(program),
            media_type="application/x-protobuf",
        )
        for descriptor, program in catalogued(deployment.graphs, deployment.tuning)
    ]
    resources.append(
        ResourceInput(
            TOKENIZER_RESOURCE,
            ResourceKind.TOKENIZER,
            data=text.tokenizer,
            media_type="application/json",
        )
    )
    if text.chat.template:
        resources.append(
            ResourceInput(
                TEMPLATE_RESOURCE,
                ResourceKind.TEMPLATE,
                data=text.chat.template.encode(),
                media_type="text/x-jinja",
            )
        )
    if licence := license_text(deployment.license):
        resources.append(
            ResourceInput(
                _LICENSE_RESOURCE,
                ResourceKind.LICENSE,
                data=licence.encode(),
                media_type="text/plain",
            )
        )
    resources.append(
        ResourceInput(
            WEIGHTS_RESOURCE,
            ResourceKind.WEIGHTS,
            chunks=weights.chunks,
            nbytes=weights.nbytes,
            media_type="application/octet-stream",
        )
    )
    return resources


def license_text(license: License) -> str:
    """The licence's own text, or what the checkpoint declares of it."""
    declared = {"Licence": license.identifier, "Name": license.name, "Link": license.link}
    lines = [f"{label}: {value}\n" for label, value in declared.items() if value]
    return license.text or "".join(lines)
