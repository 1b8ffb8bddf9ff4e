"""Stored matrices as the tiles that the kernels read, to be kept in a core.

Tiles are the same bytes on every instruction set and for any number of threads.
"""

import numpy as np

from helios import _native
from helios.contract.kinds import WeightStorage
from helios.runtime.cpu.catalog import FLAT, TILES, tiled

Shape = tuple[int, ...]


class Tiler:
    """Repacks tensors on all threads, in pieces of whole tiles."""

    def __init__(self) -> None:
        self._executor = _native.Executor(_native.usable_processors())

    def storage(self, storage: WeightStorage, shape: Shape) -> WeightStorage:
        """What a tensor becomes: a vector plain float32, a matrix tiles."""
        return WeightStorage.F32 if len(shape) == 1 else tiled(storage)

    def unit(self, storage: WeightStorage, shape: Shape) -> int:
        """Stored bytes of a row of tiles: what a piece is a multiple of, unless it is the last."""
        rows = self.storage(storage, shape).tile_rows
        return rows * _native.stored_row_bytes(storage.name, shape[-1])

    def pack(self, storage: WeightStorage, shape: Shape, piece: memoryview) -> memoryview:
        """What a piece of a stored tensor becomes.

        Raises `DeviceError` for a tensor that its tiles can't hold exactly.
        """
        layout = TILES.get(self.storage(storage, shape), FLAT.name).upper()
        columns = shape[-1]
        rows = len(piece) // _native.stored_row_bytes(storage.name, columns)
        made = np.empty(_native.packed_bytes(layout, rows, columns), np.uint8)
        source, address = np.frombuffer(piece, np.uint8), int(made.ctypes.data)
        self._executor.pack(storage.name, layout, rows, columns, source, address)
        return made.data
