"""The native CPU runtime: layouts, packing and the executor of compiled steps."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

Step = tuple[str, Mapping[str, int | float | str | Sequence[int]]]

class BuildInfo(TypedDict):
    compiler: str
    sanitizer: str
    isas: list[str]
    processors: int

def isa() -> str:
    """The instruction set in use: `HELIOS_ISA`, or the best that this processor runs."""

def build_info() -> BuildInfo:
    """Compiler, sanitizer, the instruction sets this processor runs (best first), processors."""

def usable_processors() -> int:
    """Processors this process may keep busy: its affinity, cut by any cgroup limit."""

def packed_bytes(layout: str, rows: int, columns: int) -> int:
    """Bytes of a packed matrix."""

def natural_layout(storage: str) -> str:
    """The smallest layout that holds every value of a stored type (`Q4_1`, …) exactly."""

def stored_row_bytes(storage: str, columns: int) -> int:
    """Bytes of one stored row."""

def layout_number(layout: str) -> int:
    """A layout's number in step parameters."""

def unpack(
    layout: str, rows: int, columns: int, packed: NDArray[np.uint8], out: NDArray[np.float32]
) -> None:
    """Write the float32 values of a packed matrix to `out` [rows, columns]."""

class Memory:
    """Zeroed, page-aligned memory; large ones on huge pages where the system grants them."""

    def __init__(self, nbytes: int) -> None: ...
    @property
    def address(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def view(self) -> NDArray[np.uint8]:
        """The memory as an array that keeps it alive."""

class Latch:
    """Where steps of kind `await_input` wait while it is held. Must outlive what names it."""

    def __init__(self) -> None: ...
    @property
    def address(self) -> int: ...
    def hold(self) -> None:
        """Let a run that gets here wait."""

    def release(self) -> None:
        """Let it go on: what it reads from here on has been written."""

class Executor:
    """Threads, kernels and loaded programs. One run at a time; not usable after fork()."""

    def __init__(self, threads: int) -> None: ...
    @property
    def threads(self) -> int: ...
    @property
    def isa(self) -> str: ...
    @property
    def allocated_bytes(self) -> int:
        """Bytes that the executor had to allocate for workspace."""

    def load(
        self,
        steps: list[Any],
        capacity: tuple[int, int, int],
        workspace: int = 0,
        workspace_bytes: int = 0,
    ) -> int:
        """Load steps, with the largest B, T and S they will run at; returns the program's number.

        Steps hold absolute addresses, which must stay valid until the program is unloaded. The
        workspace lies in the memory given if it is large enough, else in memory of its own; all
        programs share it, since nothing in it outlives a run.
        """

    def unload(self, program: int) -> None:
        """Forget a program."""

    def run(
        self,
        program: int,
        extents: tuple[int, int, int],
        before: NDArray[np.int64],
        after: NDArray[np.int64],
    ) -> None:
        """Copy `before`, run the steps at extents (B, T, S), copy `after`.

        The copies are rows of (destination, source, bytes). The interpreter lock is released.
        Raises `DeviceError` where an index of a frame is out of range.
        """

    def profile(self, program: int, extents: tuple[int, int, int]) -> dict[str, tuple[int, int]]:
        """Run once; for each kind of step, how often it ran and for how many nanoseconds.

        Nanoseconds of processor time with one thread, else of wall time.
        """

    def ceilings(self) -> dict[str, float]:
        """What all threads can do at best, per nanosecond.

        `integer_macs` (8-bit), `float_macs` and `read_bytes` (beyond the caches).
        """

    def pack(
        self,
        storage: str,
        layout: str,
        rows: int,
        columns: int,
        source: NDArray[np.uint8],
        destination: int,
    ) -> None:
        """Repack a stored matrix into a layout that holds it exactly, on all threads."""
