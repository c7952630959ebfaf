"""Segments as they stand in a row: one tag byte, then the bytes as they are, or compressed where that pays.

zstandard is an optional extra. Rows written with it and without it live side by side; it is missed only where
a compressed row is read without it.
"""

import threading
from importlib.util import find_spec

from threadmark.errors import CorruptDataError, MissingDependencyError

MOST_COMPRESSED = 128
"""A segment is at most so many times as long as its row, so that a row's length says how much it may ask for."""

SMALLEST = 256  # below this a frame's own bytes and a database's row weigh more than the gain

_AS_IT_IS = b"\x00"
_ZSTD = b"\x01"
_PAYS = 16  # a compressed row must be smaller by one part in so many
_LEVEL = 3
_SKIPPED = b"\x50\x2a\x4d\x18"  # how a frame begins that zstd skips; its length follows
_SKIPPED_LENGTH = 4
_INSTALLED = find_spec("zstandard") is not None


def shrink(data: bytes) -> bytes:
    """The stored form of a segment, at most one byte longer than it."""
    if _INSTALLED and len(data) >= SMALLEST:
        frame = _codecs.compressor.compress(data)
        frame = _lengthened(frame, -(-len(data) // MOST_COMPRESSED))
        if len(frame) < len(data) - len(data) // _PAYS:
            return _ZSTD + frame
    return _AS_IT_IS + data


def expand(stored: bytes, size: int) -> bytes:
    """The segment of `size` bytes that was stored so.

    No more than that is ever made of it, whatever the stored bytes say.
    """
    tag, body = stored[:1], stored[1:]
    if tag == _ZSTD:
        body = _decompressed(_without_skipped(body), size)
    elif tag != _AS_IT_IS:
        raise CorruptDataError(f"a segment is stored in an unknown way (tag {tag.hex() or 'missing'})")
    if len(body) != size:
        raise CorruptDataError(f"a segment has {len(body)} bytes where {size} were stored")
    return body


def _lengthened(frame: bytes, least: int) -> bytes:
    """The frame, and in front of it where that is too short a frame of zeros that every reader of zstd skips."""
    if len(frame) >= least:
        return frame
    zeros = max(0, least - len(frame) - len(_SKIPPED) - _SKIPPED_LENGTH)
    return _SKIPPED + zeros.to_bytes(_SKIPPED_LENGTH, "little") + bytes(zeros) + frame


def _without_skipped(body: bytes) -> bytes:
    """The frame that says something."""
    if not body.startswith(_SKIPPED):
        return body
    start = len(_SKIPPED) + _SKIPPED_LENGTH
    zeros = int.from_bytes(body[len(_SKIPPED) : start], "little")
    if body.count(0, start, start + zeros) != zeros:
        raise CorruptDataError("a compressed segment does not begin as it should")
    return body[start + zeros :]


class _Codecs(threading.local):
    """zstandard's objects must not be shared between threads, and are costly to make for every segment."""

    def __init__(self) -> None:
        import zstandard

        self.compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


def _decompressed(frame: bytes, size: int) -> bytes:
    if not _INSTALLED:
        raise MissingDependencyError(
            "a stored segment is compressed with zstd: to read it, pip install 'threadmark[zstd]'", name="zstandard"
        )
    import zstandard

    try:
        # Checked first: the decompressor allocates what the frame announces.
        if zstandard.frame_content_size(frame) != size:
            raise CorruptDataError(f"a compressed segment does not announce the {size} bytes that were stored")
        return _codecs.decompressor.decompress(frame, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise CorruptDataError(f"a compressed segment cannot be expanded ({error})") from None


if _INSTALLED:
    _codecs = _Codecs()
