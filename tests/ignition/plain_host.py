"""A host for one model: packs lanes by the contract's bindings, runs the plain interpreter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import gguf
import numpy as np
from plain_interpreter import Machine

from helios.contract.kinds import WeightStorage
from helios.ignition.preparation.geometry import Geometry
from helios.ignition.preparation.graph import Graph
from helios.ignition.preparation.programs import build_graphs
from helios.ignition.recipes.recipe import Recipe
from helios.ignition.sources.source import SourceTensor
from helios.program import extents
from helios.program.ir import Buffer, BufferKind, DType
from helios.schema import contract_pb2 as pb

_NUMPY = {
    DType.F32: np.float32,
    DType.I32: np.int32,
    DType.U32: np.uint32,
    DType.U64: np.uint64,
}


def dequantised(tensor: SourceTensor) -> np.ndarray:
    """A stored tensor as float32."""
    raw = np.frombuffer(tensor.data(), np.uint8)
    kind = gguf.GGMLQuantizationType[WeightStorage(tensor.storage).name]
    return gguf.quants.dequantize(raw, kind).astype(np.float32).reshape(tensor.shape)


@dataclass
class Lane:
    """What one lane of a step supplies; names are those of value sources."""

    slot: int
    tokens: Sequence[int] = ()
    sample: bool = False
    endpoint: int = 0
    targets: Sequence[int] = ()
    pages: Sequence[int] = ()
    restore_source: int = -1
    snapshot_destination: int = -1
    admission: Mapping[str, object] = field(default_factory=dict)
    length: int | None = None

    @property
    def query_length(self) -> int:
        return len(self.tokens) if self.length is None else self.length


_ADMISSION_DEFAULTS: Mapping[str, object] = {
    "TOP_P": 1.0,
    "REPETITION_PENALTY": 1.0,
    "PENDING_TOKEN": -1,
    "TOP_LOGPROBS": -1,
}


class PlainHost:
    """Programs of a recipe over plain float32 weights and caches."""

    def __init__(self, recipe: Recipe, geometry: Geometry, pages: int = 64) -> None:
        self.geometry = geometry
        self.graphs: dict[str, Graph] = {g.program.name: g for g in build_graphs(recipe, geometry)}
        self._tensors = recipe.tensors
        self._pages = pages
        self._table = np.full((geometry.concurrency, geometry.table_pages), -1, np.int32)

    @cached_property
    def machine(self) -> Machine:
        weights = {name: dequantised(tensor) for name, tensor in self._tensors.items()}
        return Machine(weights, self.geometry.concurrency, self._pages)

    def run(self, name: str, lanes: Sequence[Lane]) -> dict[str, np.ndarray]:
        """One step; returns every value and completion record by name."""
        graph = self.graphs[name]
        for lane in lanes:
            self._table[lane.slot, : len(lane.pages)] = lane.pages
        lengths = {
            extents.ROWS: len(lanes),
            extents.TOKENS: sum(lane.query_length for lane in lanes),
            extents.SAMPLED: sum(lane.sample for lane in lanes),
        }
        known = {**self.machine.loaded, **lengths}
        inputs = {}
        buffers = {b.name: b for b in graph.program.buffers() if b.kind is BufferKind.TRANSPORT}
        assert set(buffers) == {b.destination for b in graph.contract.bindings}
        for binding in graph.contract.bindings:
            buffer = buffers[binding.destination]
            inputs[buffer.name] = self._value(binding, buffer, lanes, known)
        return self.machine.run(graph.program, inputs, lengths)

    def _value(
        self,
        binding: pb.ValueBinding,
        buffer: Buffer,
        lanes: Sequence[Lane],
        known: Mapping[str, int],
    ) -> np.ndarray:
        source = pb.ValueSource.Name(binding.source).removeprefix("VALUE_SOURCE_")
        shape = buffer.type.resolve(known)
        array = np.full(shape, binding.padding, _NUMPY[buffer.type.dtype])
        match source:
            case "PAGE_TABLE":
                return self._table
            case "SAMPLED_ROW":
                array[:] = [row for row, lane in enumerate(lanes) if lane.sample]
            case "PROMPT_TOKENS" | "SCORED_TARGET_TOKENS":
                name = "tokens" if source == "PROMPT_TOKENS" else "targets"
                array[:] = [token for lane in lanes for token in getattr(lane, name)]
            case "CONSUMED_TOKENS":
                array[:] = [lane.endpoint for lane in lanes]
            case "SLOT" | "QUERY_LENGTH" | "RESTORE_SOURCE" | "SNAPSHOT_DESTINATION":
                array[:] = [getattr(lane, source.lower()) for lane in lanes]
            case "GENERATION":
                array[:] = [100 + lane.slot for lane in lanes]
            case "GRAMMAR_MASK" | "GRAMMAR_ACTIVE":
                pass
            case _:
                for row, lane in enumerate(lanes):
                    self._admit(source, array, row, lane)
        return array

    def _admit(self, source: str, array: np.ndarray, row: int, lane: Lane) -> None:
        value = lane.admission.get(source, _ADMISSION_DEFAULTS.get(source))
        if value is None:
            return
        if source.endswith("HISTOGRAM"):
            array[row] = np.bincount(value, minlength=array.shape[1])
        elif isinstance(value, tuple):
            array[row, : len(value)] = value
        else:
            array[row] = value
