"""What rows hold: an encoded value, literally while it is small, else as slices of segments; and the segments.

One form serves a channel's value (inside a checkpoint's header), a pending write's value and the header itself. A
segment stands in a row of its own behind a byte that says how: as it is, or compressed where that pays. zstandard is an
optional extra. Rows written with it and without it live side by side, and it is missed only where a compressed row is
read without it.
"""

import threading
from collections.abc import Mapping
from importlib.util import find_spec
from typing import NamedTuple

from threadmark.digests import KEY_SIZE, VALUE_DIGEST_SIZE, Proof, proof
from threadmark.errors import CorruptDataError, MissingDependencyError
from threadmark.rope import MOST_REPEATED, Source, join, keys_in, layout

LITERAL_LIMIT = 96
"""Up to this many bytes a value stands in its row: a segment of its own would cost more."""

EXPANSION_BYTES = 512 * 1024
"""What reading a checkpoint may make of stored bytes beyond what a saver ever stores so, unless told otherwise."""

LONGEST_TAG = 255
"""The longest tag of a serializer, in bytes: its length is stored in one byte."""

MOST_COMPRESSED = 128
"""A segment is at most this many times as long as its row, so that a row's length limits what it may ask for."""

SMALLEST = 256
"""Shorter segments are not compressed: a frame's own bytes and the row's weigh more than the gain."""

_AS_IT_IS = b"\x00"
_ZSTD = b"\x01"

_PAYS = 16
"""A compressed row must be smaller than the segment by one part in this many."""

_LEVEL = 3
"""zstd's level of compression."""

_SKIPPED = b"\x50\x2a\x4d\x18"
"""The beginning of a frame that zstd skips."""

_SKIPPED_LENGTH = 4
"""The bytes after it, which are the length of the skipped frame."""

_INSTALLED = find_spec("zstandard") is not None


class Encoded(NamedTuple):
    """What a serializer made of a value."""

    tag: str
    data: bytes

    @classmethod
    def of(cls, typed: tuple[str, bytes]) -> "Encoded":
        """What `dumps_typed` returned, for keeps: some serializers hand over the user's own bytearray."""
        tag, data = typed
        return cls(tag, data if type(data) is bytes else bytes(memoryview(data)))


class Allowance:
    """How much longer than their stored bytes account for the values of one checkpoint may be.

    A saver stores no segment so that it is more than 128 times as long as its row, and no value that is more than 4
    times as long as its segments. Crafted rows would ask for anything, so what goes beyond is counted here.
    """

    def __init__(self, most: int = EXPANSION_BYTES) -> None:
        self._most = self._left = most

    def renew(self) -> None:
        """Begin with another checkpoint."""
        self._left = self._most

    def take(self, excess: int) -> None:
        """Count bytes before they are allocated. Raises CorruptDataError if they are more than allowed."""
        if excess <= 0:
            return
        self._left -= excess
        if self._left < 0:
            raise CorruptDataError(
                f"its stored bytes ask for {excess:,} bytes more than anything that was put would; "
                f"if they are to be trusted, open the saver with max_expansion_bytes={self._most - self._left} or more"
            )


class Stored(NamedTuple):
    """A value in its stored form: packed, because few of those that are read are ever taken apart."""

    tag: str
    packed: bytes
    """The manifest, or of a literal the value itself."""
    digest: bytes
    """The digest of the value. Empty for a literal, which is covered by the check of its row."""

    def segment_keys(self) -> tuple[bytes, ...]:
        """The segments that hold the value's bytes."""
        return keys_in(self.packed) if self.digest else ()

    def size(self) -> int:
        """How many bytes the encoded value has."""
        if not self.digest:
            return len(self.packed)
        return layout(self.packed).length

    def data(self, segments: Mapping[bytes, bytes], allowance: Allowance | None = None) -> bytes:
        """Join and verify the value's bytes from its stored segments. Raises CorruptDataError if they are damaged."""
        return self.proof(segments, {}, allowance=allowance).data if self.digest else self.packed

    def proof(
        self,
        segments: Mapping[bytes, bytes],
        whole: dict[bytes, bytes],
        near: Proof | None = None,
        allowance: Allowance | None = None,
    ) -> Proof:
        """The same, of a value that is no literal, with what proves it.

        `whole` keeps the segments as they were before they were stored, for other values that share them; `near` is
        the proof of a value that this one resembles; `allowance` is that of its checkpoint.
        """
        manifest = layout(self.packed)
        allowance = allowance or Allowance()
        allowance.take(manifest.length - MOST_REPEATED * (sum(manifest.sizes) + len(self.packed)))
        try:
            for key, size in zip(manifest.keys, manifest.sizes, strict=True):
                if key not in whole and key in segments:
                    row = segments[key]
                    allowance.take(size - MOST_COMPRESSED * len(row))
                    whole[key] = expand(row, size)
            proven = proof(join(manifest, whole), near)
        except MemoryError as error:
            raise CorruptDataError(f"there is not the memory for its {manifest.length:,} bytes") from error
        if proven.digest != self.digest:
            raise CorruptDataError("its bytes do not have the digest they were written with")
        return proven

    def source(self, data: bytes) -> Source:
        """The value's bytes, to compare others with."""
        return Source(data, packed=self.packed) if self.digest else Source(data, (data,) if data else ())

    def to_bytes(self) -> bytes:
        """The form that a row holds (docs/format.md)."""
        tag = self.tag.encode("utf-8", "surrogatepass")
        if not self.digest:
            return b"\x00" + bytes([len(tag)]) + tag + self.packed
        # The manifest comes first, because it starts with the keys of its segments, and SQL must find those.
        return self.packed + self.digest + tag + bytes([len(tag)])

    @classmethod
    def from_bytes(cls, body: bytes) -> "Stored":
        """Parse the stored form that a row holds. Raises CorruptDataError if it is none."""
        try:
            if body[0] == 0:
                start = 2 + body[1]
                return cls(body[2:start].decode("utf-8", "surrogatepass"), body[start:], b"")
            tag_start = len(body) - 1 - body[-1]
            end = tag_start - VALUE_DIGEST_SIZE
            if end < 1 + body[0] * KEY_SIZE:
                raise CorruptDataError("its stored form is cut off or damaged")
            return cls(body[tag_start:-1].decode("utf-8", "surrogatepass"), body[:end], body[end:tag_start])
        except (IndexError, UnicodeDecodeError) as error:
            raise CorruptDataError("its stored form is cut off or damaged") from error


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
