"""The unsigned location set, when it lies."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from making_cores import Parts, read_everything

from helios.core.keys import SigningKey
from helios.core.layout import HEAD_NBYTES, PAGE_NBYTES, Head, parse_head, place
from helios.core.reader import authenticate
from helios.core.trust import TrustStore
from helios.errors import CoreError
from helios.schema import core_pb2 as pb


def located(parts: Parts, name: str) -> pb.Location:
    return next(e for e in parts.locations.locations if e.resource == name)


def swap(parts: Parts) -> None:
    one, two = located(parts, "tokenizer"), located(parts, "template")
    one.offset, two.offset = two.offset, one.offset


def rename(parts: Parts) -> None:
    located(parts, "license").resource = "licence"
    parts.stored["licence"] = parts.stored["license"]


def twice(parts: Parts) -> None:
    located(parts, "license").CopyFrom(located(parts, "template"))


def missing(parts: Parts) -> None:
    del parts.locations.locations[-1]


def too_many(parts: Parts) -> None:
    parts.locations.locations.add(resource="license", offset=1, nbytes=1)


def longer(parts: Parts) -> None:
    located(parts, "template").nbytes += 1


def empty(parts: Parts) -> None:
    located(parts, "template").nbytes = 0


def unaligned(parts: Parts) -> None:
    located(parts, "weights").offset += 64


def stranger_field(parts: Parts) -> None:
    parts.locations_suffix = b"\x10\x01"


def same_place(parts: Parts) -> None:
    located(parts, "template").offset = located(parts, "tokenizer").offset


def wide_gap(parts: Parts) -> None:
    located(parts, "license").offset += PAGE_NBYTES


def trailing(parts: Parts) -> None:
    parts.trailing = b"\0"


def dirty_padding(parts: Parts) -> None:
    parts.padding = b"\0\1"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (rename, r"locations.resource: names no resource of this core \(got 'licence'"),
        (twice, r"locations.resource: is located twice \(got 'template'"),
        (missing, r"resource license: has no location"),
        (too_many, r"locations: embeds more than 6 messages"),
        (longer, r"locations\[template\].nbytes: disagrees with the signed length, 14 \(got 15"),
        (empty, r"locations\[template\].nbytes: disagrees"),
        (unaligned, r"locations\[weights\].offset: weights must start at a multiple of 4096"),
        (stranger_field, r"locations: LocationSet has a field"),
        (same_place, r"locations\[(template|tokenizer)\].offset: overlaps"),
        (wide_gap, r"locations\[license\].offset: must be preceded by fewer than 4096"),
        (trailing, r"has bytes after its last resource"),
        (dirty_padding, r"must be preceded by .* all zero"),
    ],
)
def test_each_lie_has_its_own_error(
    parts: Parts,
    core_path: Path,
    key: SigningKey,
    trust: TrustStore,
    change: Callable[[Parts], None],
    message: str,
) -> None:
    change(parts)
    parts.write(core_path, key)
    with pytest.raises(CoreError, match=message):
        authenticate(core_path, trust)


@pytest.mark.parametrize("offset", [1 << 40, (1 << 64) - 4096])
def test_an_offset_outside_the_file(
    parts: Parts, core_path: Path, key: SigningKey, trust: TrustStore, offset: int
) -> None:
    parts.write(core_path, key)
    data = bytearray(core_path.read_bytes())
    envelope_nbytes = int.from_bytes(data[12:16], "little")
    located(parts, "weights").offset = offset
    moved = parts.locations.SerializeToString()
    start = HEAD_NBYTES + envelope_nbytes
    data[start : start + len(moved)] = moved
    data[16:20] = len(moved).to_bytes(4, "little")
    core_path.write_bytes(data)
    with pytest.raises(CoreError, match=r"locations\[weights\]: reaches past the end"):
        authenticate(core_path, trust)


def test_bytes_of_the_head_belong_to_no_resource(
    parts: Parts, core_path: Path, key: SigningKey, trust: TrustStore
) -> None:
    parts.write(core_path, key)
    located(parts, "tokenizer").offset = 4
    data = bytearray(core_path.read_bytes())
    start = HEAD_NBYTES + int.from_bytes(data[12:16], "little")
    moved = parts.locations.SerializeToString()
    data[start : start + len(moved)] = moved
    data[16:20] = len(moved).to_bytes(4, "little")
    core_path.write_bytes(data)
    with pytest.raises(CoreError, match=r"locations\[tokenizer\].offset: overlaps"):
        authenticate(core_path, trust)


def test_wrong_bytes_at_an_honest_place_fail_their_hash(
    parts: Parts, core_path: Path, key: SigningKey, trust: TrustStore
) -> None:
    parts.stored["template"] = b"{{ massages }}"
    parts.write(core_path, key)
    with (
        authenticate(core_path, trust) as core,
        pytest.raises(CoreError, match="resource template: chunk 0 does not have the signed"),
    ):
        core.audit()


def test_files_with_two_names_overlap_like_one(
    parts: Parts, core_path: Path, key: SigningKey, trust: TrustStore
) -> None:
    for name in ("tokenizer", "template"):
        entry = located(parts, name)
        entry.file, entry.offset = f"{name}.bin", 0
    (core_path.parent / "tokenizer.bin").write_bytes(bytes(64))
    os.link(core_path.parent / "tokenizer.bin", core_path.parent / "template.bin")
    for name in ("weights", "license"):
        located(parts, name).offset -= 2 * PAGE_NBYTES
    parts.write(core_path, key)
    with pytest.raises(CoreError, match="overlaps"):
        authenticate(core_path, trust)


def test_order_of_locations_is_free(
    parts: Parts, core_path: Path, key: SigningKey, trust: TrustStore
) -> None:
    expected = read_everything(core_path, trust)
    entries = list(parts.locations.locations)
    del parts.locations.locations[:]
    parts.locations.locations.extend(reversed(entries))
    parts.write(core_path, key)
    assert read_everything(core_path, trust) == expected


# ---- the head ----------------------------------------------------------------------------------


def head_bytes(magic: bytes, version: int, envelope: int, locations: int) -> bytes:
    return magic + b"".join(n.to_bytes(4, "little") for n in (version, envelope, locations))


GOOD = b"\x89HELIOS\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "head.magic: this is not a core"),
        (b"GGUF" + bytes(16), "head.magic: this is not a core"),
        (b"\x89HELIOS\r" + bytes(12), "head.magic"),
        (GOOD, "head: the file ends inside its head"),
        (head_bytes(GOOD, 1, 9, 9)[:-1], "head: the file ends inside its head"),
        (head_bytes(GOOD, 0, 9, 9), r"head.version: unknown container version \(got 0"),
        (head_bytes(GOOD, 2, 9, 9), r"head.version: unknown container version \(got 2"),
        (head_bytes(GOOD, 1, 0, 9), r"head.envelope_nbytes: must be 1 to 67108864 \(got 0"),
        (head_bytes(GOOD, 1, (64 << 20) + 1, 9), "head.envelope_nbytes: must be"),
        (head_bytes(GOOD, 1, 9, 0), "head.locations_nbytes: must be"),
        (head_bytes(GOOD, 1, 9, 0xFFFFFFFF), "head.locations_nbytes: must be"),
        (head_bytes(GOOD, 1, 500, 500), r"need 1020 bytes, the file is shorter \(got 1019"),
    ],
)
def test_heads_that_lie(data: bytes, message: str) -> None:
    with pytest.raises(CoreError, match=message):
        parse_head(data, 1019)


def test_a_head_is_read_back() -> None:
    assert parse_head(Head(500, 499).pack(), 1019) == Head(500, 499)
    assert Head(500, 499).end == 1019


@pytest.mark.parametrize("envelope_nbytes", [1, 3900, 4000, 4050, 4070, 4076, 4090, 100_000])
def test_places_start_right_after_the_head(envelope_nbytes: int) -> None:
    sizes = [("a", 1), ("b", PAGE_NBYTES), ("c", 3 * PAGE_NBYTES + 1), ("d", 1 << 40), ("e", 5)]
    locations = place(envelope_nbytes, sizes)
    end = Head(envelope_nbytes, locations.ByteSize()).end
    for entry, (name, nbytes) in zip(locations.locations, sizes, strict=True):
        assert (entry.resource, entry.nbytes) == (name, nbytes)
        assert entry.offset % PAGE_NBYTES == 0
        assert 0 <= entry.offset - end < PAGE_NBYTES
        end = entry.offset + nbytes
