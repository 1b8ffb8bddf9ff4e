"""`helios inspect`: what a core says about itself, without running or trusting it."""

from pathlib import Path
from typing import Annotated, Any

from google.protobuf.json_format import MessageToDict
from rich.table import Table

from helios.cli.command import Argument, Option
from helios.cli.console import JsonFlag, nbytes_text, out, print_json
from helios.contract.kinds import WeightStorage as Storage
from helios.core.reader import UnverifiedCore, authenticate, authorize
from helios.core.reader import inspect as read_claims
from helios.core.trust import TrustStore
from helios.errors import HeliosError
from helios.program.text import to_text
from helios.schema.contract_pb2 import ServingContract
from helios.schema.frontend_pb2 import ReasoningParser, ToolParser
from helios.schema.manifest_pb2 import ExecutionManifest, WeightStorage
from helios.schema.program_pb2 import Operation


def inspect(
    core: Annotated[Path, Argument(help="The core to look at.")],
    program: Annotated[str, Option(help="Print this program's text form instead.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Show a core's contract, programs, weights and signer."""
    claims = read_claims(core)
    if program:
        _print_program(core, program)
    elif as_json:
        print_json(_facts(claims))
    else:
        _print_tables(claims)


def _print_program(path: Path, name: str) -> None:
    """A program is a stored resource, so its text is shown from an authenticated core alone."""
    with authenticate(path, TrustStore()) as opened:
        # Looking runs nothing, so it needs no acceptance from the user.
        found = {p.name: p for p in authorize(opened, opened.namespace).programs()}
    if name not in found:
        raise HeliosError(
            "the core has no such program",
            field="--program",
            value=name,
            remedy=f"one of {', '.join(found)}",
        )
    print(to_text(found[name]), end="")


def _signature(claims: UnverifiedCore) -> tuple[str, str]:
    """(verdict, remedy): whether a trusted key signed the file."""
    try:
        with authenticate(claims.path, TrustStore()) as opened:
            return f"signed by {opened.signer.id}, trusted", ""
    except HeliosError as error:
        return f"NOT TRUSTED: {error.message}", error.remedy


def _facts(claims: UnverifiedCore) -> dict[str, Any]:
    body = claims.body
    return {
        "path": claims.path,
        "nbytes": claims.nbytes,
        "digest": claims.digest,
        "key_ids": list(claims.key_ids),
        "signature": _signature(claims)[0],
        "publisher": MessageToDict(body.publisher),
        "provenance": MessageToDict(body.provenance),
        "contract": MessageToDict(body.deployment.contract),
        "manifest": MessageToDict(body.deployment.manifest),
        "layout": _layout(body.deployment.manifest),
        "resources": [
            {
                "id": r.id,
                "kind": r.kind.name.lower(),
                "encoding": r.encoding.name.lower(),
                "stored_nbytes": r.stored_nbytes,
                "decoded_nbytes": r.decoded_nbytes,
                "chunks": len(r.chunk_sha256),
            }
            for r in claims.resources
        ],
    }


def _layout(manifest: ExecutionManifest) -> str:
    """What `--layout` was when the core was prepared."""
    tiled = any(Storage(w.storage).tile_rows > 1 for w in manifest.weights)
    return "cpu" if tiled else "source"


def _print_tables(claims: UnverifiedCore) -> None:
    body = claims.body
    verdict, remedy = _signature(claims)
    head = Table(show_header=False, box=None)
    head.add_row("core", f"{claims.path}  ({nbytes_text(claims.nbytes)})")
    head.add_row("digest", claims.digest)
    head.add_row("publisher", f"{body.publisher.namespace}  {body.publisher.name}")
    head.add_row("licence", body.publisher.license or "not stated")
    head.add_row("signature", verdict)
    head.add_row("made from", body.provenance.source)
    head.add_row("layout", _layout(body.deployment.manifest))
    out.print(head)
    if remedy:
        out.print(f"  {remedy}", style="dim", highlight=False)
    contract = body.deployment.contract
    out.print(_contract_table(contract))
    out.print(_program_table(contract, body.deployment.manifest))
    out.print(_weight_table(body.deployment.manifest))
    out.print(_resource_table(claims))


def _contract_table(contract: ServingContract) -> Table:
    model = contract.model
    table = Table("contract", "", title_justify="left")
    table.add_row("served id", ", ".join([contract.served_id, *contract.aliases]))
    table.add_row("contract version", str(model.version))
    table.add_row("context", f"{contract.context_tokens:,} tokens")
    table.add_row("concurrency", str(contract.concurrency))
    table.add_row("prefill", f"{contract.prefill_tokens:,} tokens a step")
    table.add_row("vocabulary", f"{model.vocabulary:,}")
    table.add_row("page", f"{model.cache.page_tokens} tokens")
    frontend = model.frontend
    table.add_row("end of sequence", ", ".join(map(str, frontend.eos_tokens)))
    table.add_row("chat", "by template" if frontend.template_resource else "none")
    table.add_row("tool calls", _word(ToolParser.Name(frontend.tool_parser), "TOOL_PARSER_"))
    reasoning = ReasoningParser.Name(frontend.reasoning_parser)
    table.add_row("reasoning", _word(reasoning, "REASONING_PARSER_"))
    for field, value in contract.defaults.ListFields():
        table.add_row(f"default {_word(field.name)}", f"{value:g}")
    return table


def _word(name: str, prefix: str = "") -> str:
    return name.removeprefix(prefix).lower().replace("_", " ")


def _program_table(contract: ServingContract, manifest: ExecutionManifest) -> Table:
    table = Table("program", "operation", "rows", "tokens", "bindings", "state")
    for graph in contract.model.graphs:
        table.add_row(
            graph.program,
            Operation.Name(graph.operation).removeprefix("OPERATION_").lower(),
            str(graph.batch_capacity),
            str(graph.packed_token_capacity),
            str(len(graph.bindings)),
            str(len(graph.state)),
        )
    for entry in manifest.tuning:
        table.add_row(entry.name, "tuning", "", "", "", "")
    return table


def _weight_table(manifest: ExecutionManifest) -> Table:
    table = Table("weights stored as", "tensors", "bytes")
    groups: dict[str, list[int]] = {}
    for weight in manifest.weights:
        name = WeightStorage.Name(weight.storage).removeprefix("WEIGHT_STORAGE_").lower()
        groups.setdefault(name, []).append(weight.nbytes)
    for name, sizes in sorted(groups.items(), key=lambda item: -sum(item[1])):
        table.add_row(name, str(len(sizes)), nbytes_text(sum(sizes)))
    return table


def _resource_table(claims: UnverifiedCore) -> Table:
    table = Table("resource", "kind", "stored", "decoded", "chunks")
    for resource in claims.resources:
        table.add_row(
            resource.id,
            resource.kind.name.lower(),
            nbytes_text(resource.stored_nbytes),
            nbytes_text(resource.decoded_nbytes),
            str(len(resource.chunk_sha256)),
        )
    return table
