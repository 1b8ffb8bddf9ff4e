"""Rules of stored things: weights, and the executables that graphs depend on."""

from collections.abc import Mapping
from math import prod

from helios.contract.kinds import WeightStorage
from helios.contract.prepared import PreparedContract
from helios.contract.reading import refusal

MAX_RANK = 8
MAX_OFFSET = 1 << 62

BLOCKS: Mapping[WeightStorage, tuple[int, int]] = {
    WeightStorage.F32: (1, 4),
    WeightStorage.F16: (1, 2),
    WeightStorage.BF16: (1, 2),
    WeightStorage.Q8_0: (32, 34),
    WeightStorage.Q4_0: (32, 18),
    WeightStorage.Q4_1: (32, 20),
    WeightStorage.Q5_0: (32, 22),
    WeightStorage.Q5_1: (32, 24),
    WeightStorage.Q2_K: (256, 84),
    WeightStorage.Q3_K: (256, 110),
    WeightStorage.Q4_K: (256, 144),
    WeightStorage.Q5_K: (256, 176),
    WeightStorage.Q6_K: (256, 210),
    WeightStorage.IQ4_NL: (32, 18),
    WeightStorage.MXFP4: (32, 17),
    WeightStorage.TILE16_W4G32: (32, 20),
    WeightStorage.TILE16_W4G32F: (32, 24),
    WeightStorage.TILE16_W8G32: (32, 34),
    WeightStorage.TILE16_W8G32M: (32, 40),
    WeightStorage.TILE16_W8G16: (32, 40),
    WeightStorage.TILE16_W8G16M: (32, 48),
    WeightStorage.TILE16_F16: (1, 2),
    WeightStorage.TILE16_BF16: (1, 2),
    WeightStorage.TILE16_F32: (1, 4),
}
"""Elements and bytes of one block along the last dimension; of tiles, a row's share."""


def weights_are_sized(contract: PreparedContract) -> None:
    """A weight's bytes are those of its shape in its storage."""
    for weight in contract.weights.values():
        field = f"manifest.weights.{weight.name}"
        if not 1 <= len(weight.shape) <= MAX_RANK or min(weight.shape) < 1:
            raise refusal(
                f"{field}.shape",
                "must have 1 to 8 positive dimensions",
                list(weight.shape),
                "fix it",
            )
        elements, _ = BLOCKS[weight.storage]
        if weight.shape[-1] % elements:
            raise refusal(
                f"{field}.shape",
                f"{weight.storage.name} stores blocks of {elements}",
                list(weight.shape),
                "choose another storage",
            )
        nbytes = stored_nbytes(weight.storage, weight.shape)
        if weight.nbytes != nbytes:
            raise refusal(
                f"{field}.nbytes",
                f"{weight.storage.name}{list(weight.shape)} takes {nbytes} bytes",
                weight.nbytes,
                f"give {nbytes}",
            )
        if weight.offset > MAX_OFFSET - nbytes:
            raise refusal(f"{field}.offset", "out of range", weight.offset, "store it earlier")


def stored_nbytes(storage: WeightStorage, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor of whole blocks in a storage."""
    elements, nbytes = BLOCKS[storage]
    rows = -(-prod(shape[:-1]) // storage.tile_rows) * storage.tile_rows
    return rows * (shape[-1] // elements) * nbytes


def graphs_name_their_resources(contract: PreparedContract) -> None:
    """A graph depends on its own program and on executables of the catalogs."""
    known = {g.resource for g in contract.graphs} | {t.resource for t in contract.tuning.values()}
    for graph in contract.graphs:
        field = f"graphs.{graph.program}.resources"
        for resource in graph.resources:
            if resource not in known:
                raise refusal(field, "no catalog names it", resource, "name executables only")
        if graph.resource not in graph.resources:
            raise refusal(
                field, "lacks the graph's own program", list(graph.resources), graph.resource
            )


RULES = (weights_are_sized, graphs_name_their_resources)
