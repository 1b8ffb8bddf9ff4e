import struct
import tracemalloc

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.core import frames
from helios.errors import CoreError

DATA = b"".join(b"op %d\n" % i for i in range(5000))
FRAME = frames.encode(DATA, field="it")
SKIPPABLE = bytes.fromhex("502a4d18") + struct.pack("<I", 3) + b"abc"


def compress(data: bytes, **options: object) -> bytes:
    return zstandard.ZstdCompressor(**options).compress(data)  # type: ignore[arg-type]


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.binary(min_size=1, max_size=3000))
def test_round_trip(data: bytes) -> None:
    assert frames.decode(frames.encode(data, field="it"), len(data), field="it") == data


def test_a_frame_is_one_level_three_frame_with_its_size() -> None:
    header = zstandard.get_frame_parameters(FRAME)
    assert header.content_size == len(DATA)
    assert not header.has_checksum
    assert compress(DATA, level=3) == FRAME


def test_a_frame_of_the_largest_content_keeps_within_the_window() -> None:
    data = bytes(frames.MAX_DECODED_NBYTES)
    frame = frames.encode(data, field="it")
    assert zstandard.get_frame_parameters(frame).window_size <= frames.MAX_WINDOW_NBYTES
    assert frames.decode(frame, len(data), field="it") == data


@pytest.mark.parametrize("nbytes", [0, frames.MAX_DECODED_NBYTES + 1, 1 << 63])
def test_lengths_out_of_bounds(nbytes: int) -> None:
    with pytest.raises(CoreError, match=r"1 to 67108864 decoded bytes \(got"):
        frames.decode(FRAME, nbytes, field="it")


def test_empty_and_oversized_executables_are_not_encoded() -> None:
    for data in (b"", bytes(frames.MAX_DECODED_NBYTES + 1)):
        with pytest.raises(CoreError, match="decoded bytes"):
            frames.encode(data, field="it")


@pytest.mark.parametrize("signed", [1, len(DATA) - 1, len(DATA) + 1, 1 << 20])
def test_a_signed_length_that_lies(signed: int) -> None:
    with pytest.raises(CoreError, match=rf"signed {signed}\b.*got {len(DATA)}"):
        frames.decode(FRAME, signed, field="it")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME + b"\0", "not one whole zstd frame"),
        (FRAME + FRAME, "not one whole zstd frame"),
        (FRAME + compress(b""), "not one whole zstd frame"),
        (FRAME + SKIPPABLE, "not one whole zstd frame"),
        (SKIPPABLE + FRAME, "does not start with a zstd frame"),
        (SKIPPABLE, "does not start with a zstd frame"),
        (b"", "does not start"),
        (DATA, "does not start"),
        (FRAME[:5], "header"),
        (FRAME[:9], "not one whole"),
        (FRAME[:-1], "not one whole"),
        (compress(DATA, write_content_size=False), "states no content size"),
        (compress(DATA, write_checksum=True)[:-1], "not one whole"),
        (compress(DATA, write_checksum=True)[:-4], "not one whole"),
        (compress(DATA, write_checksum=True)[:-1] + b"\0", "not one whole"),
    ],
)
def test_frames_that_are_not_exactly_one(frame: bytes, message: str) -> None:
    with pytest.raises(CoreError, match=message):
        frames.decode(frame, len(DATA), field="it")


def test_every_cut_and_every_flip() -> None:
    data = b"a program, a program, a program, one more"
    frame = frames.encode(data, field="it")
    for end in range(len(frame)):
        with pytest.raises(CoreError):
            frames.decode(frame[:end], len(data), field="it")
    for place in range(len(frame)):
        for bit in range(8):
            flipped = bytearray(frame)
            flipped[place] ^= 1 << bit
            try:
                decoded = frames.decode(bytes(flipped), len(data), field="it")
            except CoreError:
                continue
            assert len(decoded) == len(data)  # the hash above this layer tells them apart


def test_a_window_above_the_cap() -> None:
    wide = zstandard.ZstdCompressionParameters(
        window_log=24, write_content_size=True, write_checksum=False
    )
    data = bytes((16 << 20) + 1)
    frame = zstandard.ZstdCompressor(compression_params=wide).compress(data)
    with pytest.raises(CoreError, match=r"window above 8388608 bytes \(got 16777216"):
        frames.decode(frame, len(data), field="it")


def test_a_frame_that_needs_a_dictionary() -> None:
    header = bytearray(FRAME)
    header[4] |= 1  # a one-byte dictionary id follows the window descriptor, if any
    single_segment = header[4] & 0x20
    header.insert(5 if single_segment else 6, 7)
    with pytest.raises(CoreError, match="dictionary"):
        frames.decode(bytes(header), len(DATA), field="it")


def bomb(stated: int, blocks: int) -> bytes:
    """A frame that states one size and holds `blocks` runs of 128 KiB."""
    header = struct.pack("<IBBI", 0xFD2FB528, 0x80, 0x38, stated)  # 128 KiB window, 4-byte size
    run = 128 << 10
    body = b"".join(
        ((run << 3) | 2 | (index == blocks - 1)).to_bytes(3, "little") + b"x"
        for index in range(blocks)
    )
    return header + body


def test_the_bomb_is_a_frame() -> None:
    assert frames.decode(bomb(4 << 20, 32), 4 << 20, field="it") == b"x" * (4 << 20)


@pytest.mark.parametrize("stated", [1, 1000, 1 << 20])
def test_a_bomb_costs_the_signed_length_and_no_more(stated: int) -> None:
    frame = bomb(stated, 4096)  # half a GiB from 16 KiB
    tracemalloc.start()
    with pytest.raises(CoreError, match="not one whole"):
        frames.decode(frame, stated, field="it")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < stated + (1 << 18)


def test_a_frame_that_holds_less_than_it_states() -> None:
    stated = (4 << 20) + 1
    with pytest.raises(CoreError, match="not one whole"):
        frames.decode(bomb(stated, 32), stated, field="it")
