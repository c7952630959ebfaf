"""Segments as they stand in a row: one tag byte, then the bytes raw or compressed.

zstandard is an optional extra. Rows written with it and without it live side by side; only to read a compressed row
does one need it.
"""

from typing import TYPE_CHECKING, Any

from threadmark.errors import ConfigError, CorruptDataError

if TYPE_CHECKING:
    import zstandard
else:
    try:
        import zstandard
    except ImportError:
        zstandard = None

SMALLEST = 256  # below it a frame's own bytes eat most of the gain


def shrink(data: bytes) -> bytes:
    if zstandard is not None and len(data) >= SMALLEST:
        packed = zstandard.ZstdCompressor(level=3, write_content_size=False, write_checksum=False).compress(data)
        if len(packed) < len(data) - len(data) // 16:
            return b"\x01" + packed
    return b"\x00" + data


def expand(stored: bytes, size: int) -> bytes:
    """The `size` bytes that `shrink` was given."""
    if stored[:1] == b"\x01":
        if zstandard is None:
            raise ConfigError("a stored segment is compressed with zstd; to read it, install threadmark[zstd]")
        try:
            data = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompress(stored[1:], max_output_size=size)
        except zstandard.ZstdError:
            raise CorruptDataError("a compressed segment cannot be expanded") from None
    else:
        data = stored[1:]
    if len(data) != size or stored[:1] not in (b"\x00", b"\x01"):
        raise CorruptDataError("not a segment")
    return data
