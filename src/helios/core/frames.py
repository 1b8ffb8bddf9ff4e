"""Executables: exactly one zstd level-3 frame each, whose decoded length is signed.

Format: RFC 8878. The frame states its content size; a decoder needs a window of at most 8 MiB.
Whatever the frame says, decoding allocates the signed length and no more, and that is bounded.
"""

import struct

import zstandard

from helios.errors import CoreError

LEVEL = 3
MAX_WINDOW_NBYTES = 8 << 20
MAX_DECODED_NBYTES = 64 << 20
# The most a frame of incompressible data of the largest decoded length takes.
MAX_FRAME_NBYTES = MAX_DECODED_NBYTES + (MAX_DECODED_NBYTES >> 8) + 64

_MAGIC = struct.pack("<I", 0xFD2FB528)
_REMEDY = "the core is damaged or was made by another tool; prepare it again"


def encode(data: bytes, *, field: str) -> bytes:
    """One frame that holds `data`, which must have 1 byte to 64 MiB."""
    check_decoded_nbytes(len(data), field=field)
    compressor = zstandard.ZstdCompressor(
        level=LEVEL, write_content_size=True, write_checksum=False, write_dict_id=False
    )
    return compressor.compress(data)


def decode(frame: bytes, decoded_nbytes: int, *, field: str) -> bytes:
    """The `decoded_nbytes` bytes that `frame`, and nothing but it, holds."""
    check_decoded_nbytes(decoded_nbytes, field=field)
    _check_header(frame, decoded_nbytes, field)
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_NBYTES)
    try:
        # The output buffer has the content size from the header, just compared with the signed
        # one. More or less output, an unfinished frame, and bytes after the frame are errors.
        return decompressor.decompress(frame, read_across_frames=False, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise CoreError(f"not one whole zstd frame: {error}", field=field, remedy=_REMEDY) from None


def check_decoded_nbytes(nbytes: int, *, field: str) -> None:
    """Refuse a decoded length that no executable may have."""
    if not 1 <= nbytes <= MAX_DECODED_NBYTES:
        raise CoreError(
            f"an executable has 1 to {MAX_DECODED_NBYTES} decoded bytes",
            field=field,
            value=nbytes,
        )


def _check_header(frame: bytes, decoded_nbytes: int, field: str) -> None:
    if frame[:4] != _MAGIC:
        raise CoreError(
            "does not start with a zstd frame", field=field, value=frame[:4], remedy=_REMEDY
        )
    try:
        header = zstandard.get_frame_parameters(frame)
    except zstandard.ZstdError as error:
        raise CoreError(f"has no zstd frame header: {error}", field=field, remedy=_REMEDY) from None
    if header.dict_id:
        raise CoreError(
            "needs a zstd dictionary", field=field, value=header.dict_id, remedy=_REMEDY
        )
    if header.window_size > MAX_WINDOW_NBYTES:
        raise CoreError(
            f"needs a decoder window above {MAX_WINDOW_NBYTES} bytes",
            field=field,
            value=header.window_size,
            remedy=_REMEDY,
        )
    if header.content_size == zstandard.CONTENTSIZE_UNKNOWN:
        raise CoreError("states no content size", field=field, remedy=_REMEDY)
    if header.content_size != decoded_nbytes:
        raise CoreError(
            f"states another content size than the signed {decoded_nbytes}",
            field=field,
            value=header.content_size,
            remedy=_REMEDY,
        )
