"""Where the resources lie: the unsigned location set against the signed facts and the files.

The set is not trusted. It may send a read to wrong bytes, which then fail their signed hashes,
but not outside the core's folder, past the end of a file, or into bytes that another resource or
the core's head already claims. In the core file itself, nothing may lie between or after the
resources but the zeros that align them.
"""

from collections.abc import Iterable, Mapping

from helios.core.body import ResourceFacts, ResourceKind
from helios.core.files import CoreFolder, SourceFile
from helios.core.layout import PAGE_NBYTES
from helios.core.wire import parse
from helios.errors import CoreError
from helios.records import dataclass
from helios.schema import core_pb2 as pb

_REMEDY = "the core is damaged; prepare or copy it again"


@dataclass(frozen=True, slots=True)
class Placed:
    """A resource and the stored bytes that claim to be it."""

    facts: ResourceFacts
    file: SourceFile
    offset: int

    @property
    def end(self) -> int:
        """The first byte after it in its file."""
        return self.offset + self.facts.stored_nbytes


def locate(
    data: bytes, resources: Mapping[str, ResourceFacts], folder: CoreFolder, head_end: int
) -> dict[str, Placed]:
    """Every resource by id, placed by the location set in `data`.

    `head_end` is the first byte of the core file that may belong to a resource.
    """
    limit = len(resources)
    locations = parse(pb.LocationSet, data, field="locations", limit=limit).locations
    placed: dict[str, Placed] = {}
    for entry in locations:
        found = _placed(entry, resources, folder)
        if entry.resource in placed:
            raise CoreError("is located twice", field="locations.resource", value=entry.resource)
        placed[entry.resource] = found
    missing = [name for name in resources if name not in placed]
    if missing:
        raise CoreError("has no location", field=f"resource {missing[0]}", remedy=_REMEDY)
    _check_overlaps(placed.values(), folder.core, head_end)
    return placed


def _placed(
    entry: pb.Location, resources: Mapping[str, ResourceFacts], folder: CoreFolder
) -> Placed:
    facts = resources.get(entry.resource)
    if facts is None:
        raise CoreError(
            "names no resource of this core", field="locations.resource", value=entry.resource
        )
    field = f"locations[{entry.resource}]"
    if entry.nbytes != facts.stored_nbytes:
        raise CoreError(
            f"disagrees with the signed length, {facts.stored_nbytes}",
            field=f"{field}.nbytes",
            value=entry.nbytes,
            remedy=_REMEDY,
        )
    if facts.kind is ResourceKind.WEIGHTS and entry.offset % PAGE_NBYTES:
        raise CoreError(
            f"weights must start at a multiple of {PAGE_NBYTES}",
            field=f"{field}.offset",
            value=entry.offset,
            remedy=_REMEDY,
        )
    placed = Placed(facts, folder.file(entry.file), entry.offset)
    if placed.end > placed.file.nbytes:
        raise CoreError(
            f"reaches past the end of {placed.file.name} at {placed.file.nbytes}",
            field=field,
            value=placed.end,
            remedy="the file was cut off; copy it again",
        )
    return placed


def _check_overlaps(placed: Iterable[Placed], core: SourceFile, head_end: int) -> None:
    # Files are told apart by what they are, not by name: hard links overlap too.
    by_file: dict[tuple[int, int], list[Placed]] = {core.identity: []}
    for entry in placed:
        by_file.setdefault(entry.file.identity, []).append(entry)
    for identity, entries in by_file.items():
        own = identity == core.identity
        end = head_end if own else 0
        for entry in sorted(entries, key=lambda e: e.offset):
            if entry.offset < end:
                raise CoreError(
                    f"overlaps the bytes before {end}",
                    field=f"locations[{entry.facts.id}].offset",
                    value=entry.offset,
                    remedy=_REMEDY,
                )
            if own:
                _check_gap(core, end, entry)
            end = entry.end
        if own and end != core.nbytes:
            raise CoreError(
                f"has bytes after its last resource, which ends at {end}",
                field=core.name,
                value=core.nbytes,
                remedy=_REMEDY,
            )


def _check_gap(core: SourceFile, start: int, entry: Placed) -> None:
    length = entry.offset - start
    if length >= PAGE_NBYTES or any(core.read(start, length)):
        raise CoreError(
            f"must be preceded by fewer than {PAGE_NBYTES} unused bytes, all zero",
            field=f"locations[{entry.facts.id}].offset",
            value=entry.offset,
            remedy=_REMEDY,
        )
