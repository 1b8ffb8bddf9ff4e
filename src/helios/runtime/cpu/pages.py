"""Which planes of paged history hold keys. They lie otherwise in a page than values do, so that
vectors of attention hold positions of the ones and elements of the others (`native/src/kernels.h`).
"""

from collections.abc import Iterable

from helios.errors import UnsupportedOperationError
from helios.program.ir import Program

_KEYS, _VALUES = 5, 6  # operands of paged_attention


def key_planes(programs: Iterable[Program]) -> frozenset[str]:
    """The planes that attention of any of a core's programs reads as keys.

    Raises `UnsupportedOperationError` for one that is read as values, too.
    """
    read: dict[int, set[str]] = {_KEYS: set(), _VALUES: set()}
    for program in programs:
        for op in program.ops:
            if op.kind == "paged_attention":
                for place, names in read.items():
                    if (plane := op.operands[place]) is not None:
                        names.add(plane.name)
    if both := sorted(read[_KEYS] & read[_VALUES]):
        raise UnsupportedOperationError(
            "the CPU runtime keeps keys and values in planes of their own",
            field="op",
            value=f"paged_attention reads {', '.join(both)} as both",
            remedy="prepare the model with a plane for each",
        )
    return frozenset(read[_KEYS])
