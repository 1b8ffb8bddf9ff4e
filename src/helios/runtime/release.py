"""Giving back the pages of stored tensors that were read and are not used again.

A materialised weight leaves its stored bytes behind, resident because they were touched. Where
those are pages of a mapped file, the system can have them back at once: they are read again if
anybody looks. Memory that is not a read-only mapping of a file is never touched: it may hold the
only copy.
"""

import ctypes
import mmap
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import numpy as np

from helios.compile.plan import Plan
from helios.runtime.device import WeightData, WeightSource

_DONT_NEED = 4  # MADV_DONTNEED

_Advise = Callable[[int, int, int], int]


class ReleasingSource:
    """A weight source that releases each tensor the plan does not map once the next is asked for.

    Safe at any time: released pages come back from the file if they are read again.
    """

    def __init__(self, source: WeightSource, plan: Plan) -> None:
        self._source = source
        self._mapped = {weight.name for weight in plan.weights if weight.mapped}
        self._advise = _find_advise()
        self._files = FileMappings()
        self._last: memoryview | None = None

    def weight(self, name: str) -> WeightData:
        """The tensor of that name; the one before it is released."""
        self._release()
        found = self._source.weight(name)
        self._last = None if name in self._mapped else found.data
        return found

    def __enter__(self) -> "ReleasingSource":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._release()

    def _release(self) -> None:
        data, self._last = self._last, None
        if data is None or self._advise is None or not len(data):
            return
        start = np.frombuffer(data, dtype=np.uint8).ctypes.data
        first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        last = (start + len(data)) // mmap.PAGESIZE * mmap.PAGESIZE
        if last > first and self._files.cover(first, last):
            self._advise(first, last - first, _DONT_NEED)


class FileMappings:
    """The address ranges of this process that are read-only views of files."""

    def __init__(self, maps: Path = Path("/proc/self/maps")) -> None:
        self._maps = maps
        self._ranges: list[tuple[int, int]] = []

    def cover(self, first: int, last: int) -> bool:
        """Whether one such range holds all addresses from `first` up to `last`."""
        if not self._known(first, last):
            self._ranges = self._read()
        return self._known(first, last)

    def _known(self, first: int, last: int) -> bool:
        place = bisect_right(self._ranges, (first, 1 << 64)) - 1
        return place >= 0 and last <= self._ranges[place][1]

    def _read(self) -> list[tuple[int, int]]:
        try:
            lines = self._maps.read_text().splitlines()
        except OSError:
            return []
        found = []
        for line in lines:
            span, access, _, _, inode, *_ = line.split()
            if inode != "0" and access.startswith("r-"):
                start, end = span.split("-")
                found.append((int(start, 16), int(end, 16)))
        return sorted(found)


def _find_advise() -> _Advise | None:
    try:
        advise = ctypes.CDLL(None).madvise
    except (OSError, AttributeError):
        return None
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    advise.restype = ctypes.c_int
    return advise
