"""What a monitor allows next, checked: it is foreign code."""

from helios.errors import DeviceError
from helios.scheduler.request import HostMonitor


def next_mask(monitor: HostMonitor, vocabulary: int) -> bytes | None:
    """One bit per token in whole 32-bit words; None allows all.

    Raises whatever the monitor raises, and `DeviceError` where it allows no token: there would
    be nothing to draw.
    """
    mask = monitor.mask()
    if mask is None:
        return None
    size = -(-vocabulary // 32) * 4
    mask = mask[:size].ljust(size, b"\0")
    whole, rest = divmod(vocabulary, 8)
    if mask[:whole] == bytes(whole) and not (rest and mask[whole] & (1 << rest) - 1):
        raise DeviceError("no token is allowed", field="mask", remedy="loosen the grammar")
    return mask
