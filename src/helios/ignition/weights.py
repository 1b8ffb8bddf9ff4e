"""The weights resource: every tensor on its own cache line, as the source stores it or as tiles."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Protocol

from helios.contract.kinds import WeightStorage
from helios.contract.rules.resources import BLOCKS, stored_nbytes
from helios.ignition.finite import check_finite
from helios.ignition.options import WeightLayout
from helios.ignition.sources.source import SourceTensor
from helios.records import dataclass
from helios.schema import manifest_pb2

RESOURCE = "weights"
ALIGNMENT = 64
_PIECE = 1 << 22


class Making(Protocol):
    """How tensors are stored."""

    def storage(self, tensor: SourceTensor) -> WeightStorage:
        """The storage that a tensor gets."""

    def unit(self, tensor: SourceTensor) -> int:
        """Bytes that are stored together; pieces hold a multiple."""

    def store(self, tensor: SourceTensor, piece: memoryview) -> memoryview:
        """What is stored of a piece of a tensor."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor lies within the resource, and in which storage."""

    tensor: SourceTensor
    storage: WeightStorage
    offset: int

    @property
    def nbytes(self) -> int:
        """Bytes that the tensor takes there."""
        return stored_nbytes(self.storage, self.tensor.shape)


@dataclass(frozen=True, slots=True)
class WeightsLayout:
    """Where every tensor lies within the resource; `nbytes` is the whole."""

    places: Mapping[str, Place]
    nbytes: int
    making: Making = field(repr=False)

    def descriptors(self) -> list[manifest_pb2.WeightDescriptor]:
        """The weight catalog of the manifest."""
        return [
            manifest_pb2.WeightDescriptor(
                name=name,
                storage=f"WEIGHT_STORAGE_{place.storage.name}",
                shape=place.tensor.shape,
                resource=RESOURCE,
                offset=place.offset,
                nbytes=place.nbytes,
            )
            for name, place in self.places.items()
        ]

    def chunks(self) -> Iterator[memoryview]:
        """The resource's bytes in order, checked to be finite as they pass.

        Raises `SourceError` naming the first tensor that holds NaN or infinity.
        """
        position = 0
        for place in self.places.values():
            yield memoryview(bytes(place.offset - position))
            tensor = place.tensor
            for piece in _pieces(tensor.data(), self.making.unit(tensor)):
                check_finite(tensor.name, tensor.storage, piece)
                yield self.making.store(tensor, piece)
            position = place.offset + place.nbytes


def lay_out(tensors: Mapping[str, SourceTensor], layout: WeightLayout) -> WeightsLayout:
    """Place tensors one after the other, in the order the programs name them."""
    making: Making = _AsStored() if layout == "source" else _AsTiles()
    places: dict[str, Place] = {}
    end = 0
    for name, tensor in tensors.items():
        offset = -(-end // ALIGNMENT) * ALIGNMENT
        places[name] = Place(tensor, making.storage(tensor), offset)
        end = offset + places[name].nbytes
    return WeightsLayout(places, end, making)


def _pieces(data: memoryview, unit: int) -> Iterator[memoryview]:
    step = max(1, _PIECE // unit) * unit
    return (data[start : start + step] for start in range(0, len(data), step))


class _AsStored:
    """As the source has them."""

    def storage(self, tensor: SourceTensor) -> WeightStorage:
        return tensor.storage

    def unit(self, tensor: SourceTensor) -> int:
        return BLOCKS[tensor.storage][1]

    def store(self, tensor: SourceTensor, piece: memoryview) -> memoryview:
        return piece


class _AsTiles:
    """As the kernels of the CPU read them."""

    def __init__(self) -> None:
        from helios.runtime.cpu.tiles import Tiler

        self._tiler = Tiler()

    def storage(self, tensor: SourceTensor) -> WeightStorage:
        return self._tiler.storage(tensor.storage, tensor.shape)

    def unit(self, tensor: SourceTensor) -> int:
        return self._tiler.unit(tensor.storage, tensor.shape)

    def store(self, tensor: SourceTensor, piece: memoryview) -> memoryview:
        return self._tiler.pack(tensor.storage, tensor.shape, piece)
