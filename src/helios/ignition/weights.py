"""The weights resource: every tensor as the source stores it, each on its own cache line."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from helios.contract.rules.resources import BLOCKS
from helios.ignition.finite import check_finite
from helios.ignition.sources.source import SourceTensor
from helios.schema import manifest_pb2

RESOURCE = "weights"
ALIGNMENT = 64
_PIECE = 1 << 22


@dataclass(frozen=True, slots=True)
class WeightsLayout:
    """Where every tensor lies within the resource; `nbytes` is the whole."""

    tensors: Mapping[str, SourceTensor]
    offsets: Mapping[str, int]
    nbytes: int

    def descriptors(self) -> list[manifest_pb2.WeightDescriptor]:
        """The weight catalog of the manifest."""
        return [
            manifest_pb2.WeightDescriptor(
                name=name,
                storage=f"WEIGHT_STORAGE_{tensor.storage.name}",
                shape=tensor.shape,
                resource=RESOURCE,
                offset=self.offsets[name],
                nbytes=tensor.nbytes,
            )
            for name, tensor in self.tensors.items()
        ]

    def chunks(self) -> Iterator[memoryview]:
        """The resource's bytes in order, checked to be finite as they pass.

        Raises `SourceError` naming the first tensor that holds NaN or infinity.
        """
        position = 0
        for name, tensor in self.tensors.items():
            yield memoryview(bytes(self.offsets[name] - position))
            yield from _pieces(tensor)
            position = self.offsets[name] + tensor.nbytes


def lay_out(tensors: Mapping[str, SourceTensor]) -> WeightsLayout:
    """Place tensors one after the other, in the order the programs name them."""
    offsets: dict[str, int] = {}
    end = 0
    for name, tensor in tensors.items():
        offsets[name] = -(-end // ALIGNMENT) * ALIGNMENT
        end = offsets[name] + tensor.nbytes
    return WeightsLayout(tensors, offsets, end)


def _pieces(tensor: SourceTensor) -> Iterator[memoryview]:
    """A tensor's bytes in pieces of whole blocks."""
    block = BLOCKS[tensor.storage][1]
    step = _PIECE // block * block
    data = tensor.data()
    for start in range(0, len(data), step):
        piece = data[start : start + step]
        check_finite(tensor.name, tensor.storage, piece)
        yield piece
