"""How to break the example contract: one case names the rule that must refuse it."""

from collections.abc import Callable
from dataclasses import dataclass

from helios.schema import contract_pb2 as pb
from helios.schema import manifest_pb2

Break = Callable[[pb.ServingContract, manifest_pb2.ExecutionManifest], object]


@dataclass(frozen=True)
class Case:
    """`rule` is the function that raises, `field` a part of the field it names."""

    rule: str
    field: str
    apply: Break


def graph(contract: pb.ServingContract, name: str) -> pb.GraphContract:
    return next(g for g in contract.model.graphs if g.program == name)


def binding(contract: pb.ServingContract, program: str, destination: str) -> pb.ValueBinding:
    return next(b for b in graph(contract, program).bindings if b.destination == destination)


def unbind(contract: pb.ServingContract, program: str, *destinations: str) -> None:
    bindings = graph(contract, program).bindings
    kept = [b for b in bindings if b.destination not in destinations]
    assert len(kept) == len(bindings) - len(destinations)
    del bindings[:]
    bindings.extend(kept)


def access(contract: pb.ServingContract, program: str, view: str) -> pb.StateAccess:
    return next(a for a in graph(contract, program).state if a.view == view)


def view(contract: pb.ServingContract, name: str) -> pb.StateView:
    return next(v for v in contract.model.state_views if v.name == name)


def history(contract: pb.ServingContract, name: str) -> pb.HistoryRegion:
    return next(h for h in contract.model.cache.histories if h.name == name)


def buffer(manifest: manifest_pb2.ExecutionManifest, name: str) -> manifest_pb2.BufferDescriptor:
    return next(b for b in manifest.buffers if b.name == name)


def transport(
    manifest: manifest_pb2.ExecutionManifest, name: str
) -> manifest_pb2.TransportDestination:
    return next(t for t in manifest.transport if t.name == name)


def program(manifest: manifest_pb2.ExecutionManifest, name: str) -> manifest_pb2.ProgramDescriptor:
    return next(p for p in manifest.programs if p.name == name)


def completion(
    manifest: manifest_pb2.ExecutionManifest, name: str, field: str
) -> manifest_pb2.CompletionBinding:
    number = manifest_pb2.CompletionField.Value(f"COMPLETION_FIELD_{field}")
    return next(c for c in program(manifest, name).completion if c.field == number)


def uncomplete(manifest: manifest_pb2.ExecutionManifest, name: str, field: str) -> None:
    program(manifest, name).completion.remove(completion(manifest, name, field))


def complete(manifest: manifest_pb2.ExecutionManifest, name: str, field: str) -> None:
    program(manifest, name).completion.add(
        field=f"COMPLETION_FIELD_{field}", buffer=f"completion.{field.lower()}"
    )
