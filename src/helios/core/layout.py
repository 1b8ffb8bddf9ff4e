"""The bytes of a core file.

    offset  bytes   what
    0       8       magic: 89 48 45 4C 49 4F 53 0A ("\\x89HELIOS\\n")
    8       4       container version, 1
    12      4       E: bytes of the envelope, 1 to 64 MiB
    16      4       L: bytes of the location set, 1 to 8 MiB
    20      E       Envelope (Protobuf), signed
    20+E    L       LocationSet (Protobuf), unsigned
            …       the resources, each at the offset that its location gives

Integers are unsigned and little endian. Every byte between the end of the location set and the
first resource, and between resources, is zero; such a gap is shorter than one page (4,096 bytes),
and the file ends where its last resource ends. The writer starts every resource on a page
boundary; a reader insists on that for weights, which it maps. Resources may lie in other files
beside the core instead: see `locations`.

The location set comes after the envelope and outside it because it is not signed: moving a
resource changes no signature. It can't do harm, as every resource's length and chunk hashes are
signed.
"""

import struct
from collections.abc import Sequence

from helios.errors import CoreError
from helios.records import dataclass
from helios.schema import core_pb2 as pb

MAGIC = b"\x89HELIOS\n"
CONTAINER_VERSION = 1
PAGE_NBYTES = 4096
MAX_ENVELOPE_NBYTES = 64 << 20
MAX_LOCATIONS_NBYTES = 8 << 20

_HEAD = struct.Struct("<8sIII")
HEAD_NBYTES = _HEAD.size


@dataclass(frozen=True, slots=True)
class Head:
    """The lengths in a core's first 20 bytes; `end` is the first byte after the location set."""

    envelope_nbytes: int
    locations_nbytes: int

    @property
    def locations_offset(self) -> int:
        """Where the location set starts; the envelope starts at `HEAD_NBYTES`."""
        return HEAD_NBYTES + self.envelope_nbytes

    @property
    def end(self) -> int:
        """The first byte after the location set."""
        return self.locations_offset + self.locations_nbytes

    def pack(self) -> bytes:
        """The 20 bytes."""
        return _HEAD.pack(MAGIC, CONTAINER_VERSION, self.envelope_nbytes, self.locations_nbytes)


def parse_head(data: bytes, file_nbytes: int) -> Head:
    """The head in a file's first 20 bytes (fewer if the file is shorter)."""
    if data[: len(MAGIC)] != MAGIC:
        raise CoreError(
            "this is not a core",
            field="head.magic",
            value=data[: len(MAGIC)],
            remedy="make one with `helios prepare`",
        )
    if len(data) < HEAD_NBYTES:
        raise CoreError("the file ends inside its head", field="head", value=file_nbytes)
    _, version, envelope_nbytes, locations_nbytes = _HEAD.unpack(data)
    if version != CONTAINER_VERSION:
        raise CoreError(
            "unknown container version",
            field="head.version",
            value=version,
            remedy=f"this Helios reads version {CONTAINER_VERSION}; use one that made the core",
        )
    _check_length("head.envelope_nbytes", envelope_nbytes, MAX_ENVELOPE_NBYTES)
    _check_length("head.locations_nbytes", locations_nbytes, MAX_LOCATIONS_NBYTES)
    head = Head(envelope_nbytes, locations_nbytes)
    if head.end > file_nbytes:
        raise CoreError(
            f"the envelope and location set need {head.end} bytes, the file is shorter",
            field="head",
            value=file_nbytes,
            remedy="the core was cut off; copy it again",
        )
    return head


def place(envelope_nbytes: int, resources: Sequence[tuple[str, int]]) -> pb.LocationSet:
    """Locations, within the core itself, for resources given as (id, stored bytes) in order."""
    start = _page_end(HEAD_NBYTES + envelope_nbytes)
    while True:
        locations = _in_sequence(start, resources)
        end = Head(envelope_nbytes, locations.ByteSize()).end
        if _page_end(end) == start:
            return locations
        start = _page_end(end)  # offsets grow with the start, so this settles


def _in_sequence(start: int, resources: Sequence[tuple[str, int]]) -> pb.LocationSet:
    locations = pb.LocationSet()
    for name, nbytes in resources:
        locations.locations.add(resource=name, offset=start, nbytes=nbytes)
        start = _page_end(start + nbytes)
    return locations


def _page_end(offset: int) -> int:
    return -(-offset // PAGE_NBYTES) * PAGE_NBYTES


def _check_length(field: str, value: int, limit: int) -> None:
    if not 1 <= value <= limit:
        raise CoreError(
            f"must be 1 to {limit}",
            field=field,
            value=value,
            remedy="the core is damaged; prepare or copy it again",
        )
