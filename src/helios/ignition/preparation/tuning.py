"""The tuning program, and what serving programs take from it.

Matrix products of one shape and storage, coarse or not, form a class. The tuning program has one
operation for each class, on the first weight of it, and every product of the class reads its
choices.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from helios.contract.operation import Operation
from helios.ignition.preparation.graph import PROGRAM_RESOURCE, Graph
from helios.ignition.sources.source import SourceTensor
from helios.program.builder import ProgramBuilder
from helios.program.ir import Buffer, BufferKind, DType, Op, Program, TensorType, Weight
from helios.records import dataclass
from helios.schema import contract_pb2, manifest_pb2

NAME = "tune"
PLACES = 5  # choices of a class: for 1 row, up to 4, 16 and 64, and more


_Classes = dict[Buffer, tuple[Weight, bool]]
"""By their buffers, the first weight of each class, and whether its products are coarse."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """A tuning program and its catalog entry."""

    program: Program
    descriptor: manifest_pb2.ProgramDescriptor


def with_tuning(
    graphs: Sequence[Graph], tensors: Mapping[str, SourceTensor]
) -> tuple[tuple[Graph, ...], tuple[Tuning, ...]]:
    """The same graphs reading tuned choices, and the tuning programs that make those.

    There is none where no graph multiplies by a matrix. The graphs given are not changed.
    """
    classes: _Classes = {}
    tuned = tuple(_tuned(graph, tensors, classes) for graph in graphs)
    return tuned, (_tuning(classes),) if classes else ()


def catalogued(
    graphs: Sequence[Graph], tuning: Sequence[Tuning]
) -> list[tuple[manifest_pb2.ProgramDescriptor, Program]]:
    """Every entry of both catalogs with its program."""
    serving = [(graph.descriptor, graph.program) for graph in graphs]
    return [*serving, *((item.descriptor, item.program) for item in tuning)]


def _tuning(classes: _Classes) -> Tuning:
    builder = ProgramBuilder(NAME, Operation.TUNING)
    for buffer, (weight, coarse) in classes.items():
        builder.op("tune_linear", weight, buffer, coarse=coarse)
    descriptor = manifest_pb2.ProgramDescriptor(
        name=NAME,
        operation=f"OPERATION_{Operation.TUNING.name}",
        resource=PROGRAM_RESOURCE + NAME,
        tuned_outputs=[buffer.name for buffer in classes],
    )
    return Tuning(builder.build(), descriptor)


def _tuned(graph: Graph, tensors: Mapping[str, SourceTensor], classes: _Classes) -> Graph:
    """The graph with choices for its products; a class that is new is added to `classes`."""
    program = replace(
        graph.program, ops=tuple(_with_choices(op, tensors, classes) for op in graph.program.ops)
    )
    names = [b.name for b in program.buffers() if b.kind is BufferKind.TUNED]
    if not names:
        return graph
    contract, descriptor = contract_pb2.GraphContract(), manifest_pb2.ProgramDescriptor()
    contract.CopyFrom(graph.contract)
    descriptor.CopyFrom(graph.descriptor)
    contract.resources.append(PROGRAM_RESOURCE + NAME)
    for name in names:
        contract.tuned_bindings.add(buffer=name, producer=NAME)
        descriptor.tuned_inputs.add(buffer=name, producer=NAME)
    return replace(graph, program=program, contract=contract, descriptor=descriptor)


def _with_choices(op: Op, tensors: Mapping[str, SourceTensor], classes: _Classes) -> Op:
    if op.kind != "linear":
        return op
    x, weight, *bias = op.operands
    assert isinstance(weight, Weight)
    rows, columns = weight.type.shape
    storage = tensors[weight.name].storage.name.lower()
    coarse = op.attributes["coarse"]
    assert isinstance(coarse, bool)
    buffer = Buffer(
        f"tuned.{'coarse' if coarse else 'linear'}.{rows}x{columns}.{storage}",
        BufferKind.TUNED,
        TensorType(DType.I32, (PLACES,)),
    )
    classes.setdefault(buffer, (weight, coarse))
    return replace(op, operands=(x, weight, *(bias or [None]), buffer))
