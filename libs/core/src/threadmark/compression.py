"""Segments as they stand in a row: one tag byte, then the bytes as they are, or compressed where that pays.

zstandard is an optional extra. Rows written with it and without it live side by side; it is missed only where
a compressed row is read without it.
"""

import threading
from importlib.util import find_spec

from threadmark.errors import ConfigError, CorruptDataError

SMALLEST = 256  # below this a frame's own bytes and a database's row weigh more than the gain

_AS_IT_IS = b"\x00"
_ZSTD = b"\x01"
_PAYS = 16  # a compressed row must be smaller by one part in so many
_LEVEL = 3
_INSTALLED = find_spec("zstandard") is not None


def shrink(data: bytes) -> bytes:
    """The stored form of a segment, at most one byte longer than it."""
    if _INSTALLED and len(data) >= SMALLEST:
        frame = _codecs.compressor.compress(data)
        if len(frame) < len(data) - len(data) // _PAYS:
            return _ZSTD + frame
    return _AS_IT_IS + data


def expand(stored: bytes, size: int) -> bytes:
    """The segment of `size` bytes that was stored so.

    No more than that is ever made of it, whatever the stored bytes say.
    """
    tag, body = stored[:1], stored[1:]
    if tag == _ZSTD:
        body = _decompressed(body, size)
    elif tag != _AS_IT_IS:
        raise CorruptDataError(f"a segment is stored in an unknown way (tag {tag.hex() or 'missing'})")
    if len(body) != size:
        raise CorruptDataError(f"a segment has {len(body)} bytes where {size} were stored")
    return body


class _Codecs(threading.local):
    """zstandard's objects must not be shared between threads, and are costly to make for every segment."""

    def __init__(self) -> None:
        import zstandard

        self.compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


def _decompressed(frame: bytes, size: int) -> bytes:
    if not _INSTALLED:
        raise ConfigError("a stored segment is compressed with zstd: install threadmark[zstd] to read it")
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
