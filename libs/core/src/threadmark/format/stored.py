"""The contents of rows: an encoded value, literal while it is small, else as slices of segments; and the segments.

One form serves a channel's value (inside a checkpoint's header), a pending write's value and the header itself. A
segment has a separate row, behind a byte that names its form: plain, or compressed if that saves space. zstandard is
an optional extra. Rows written with it and without it live side by side; it is required only to read a compressed row.
"""

import threading
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from typing import NamedTuple, Self

from threadmark.errors import CorruptDataError, MissingDependencyError
from threadmark.format.digests import KEY_SIZE, VALUE_DIGEST_SIZE, Proof, proof
from threadmark.format.rope import MOST_REPEATED, Source, join, keys_in, layout

LITERAL_LIMIT = 96
"""Up to this many bytes a value stands in its row: a segment would cost more."""

EXPANSION_BYTES = 512 * 1024
"""The default limit of bytes that a checkpoint's values may take beyond those that are stored for them."""

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


def expect_compression() -> None:
    """Raise MissingDependencyError if segments are stored uncompressed, because zstandard is not installed."""
    if not _INSTALLED:
        raise MissingDependencyError(
            "compression needs a further package: pip install 'threadmark[zstd]'", name="zstandard"
        )


class Encoded(NamedTuple):
    """A value as a serializer returned it."""

    tag: str
    data: bytes


class Allowance:
    """How many bytes the values of one checkpoint may take beyond those that are stored for them.

    Stored values never need any: no segment is more than 128 times as long as its row, and no value more than 4 times
    as long as its segments. Crafted rows could ask for anything, so the excess is counted here.
    """

    def __init__(self, most: int = EXPANSION_BYTES) -> None:
        self._most = self._left = most

    def renew(self) -> None:
        """Begin again, for another checkpoint."""
        self._left = self._most

    def take(self, excess: int) -> None:
        """Count bytes before they are allocated. Raises CorruptDataError if they are more than allowed."""
        if excess <= 0:
            return
        self._left -= excess
        if self._left < 0:
            raise CorruptDataError(
                f"its stored bytes ask for {excess:,} bytes more than any value that was put would need; "
                f"if they can be trusted, open the saver with max_expansion_bytes={self._most - self._left} or more"
            )


class _Fields(NamedTuple):
    tag: str
    packed: bytes
    """The packed manifest, or the value itself if it is a literal."""
    digest: bytes
    """The digest of the value. Empty for a literal, which is covered by the check of its row."""
    body: bytes
    """All of that in the form that a row holds (docs/reference/format.md)."""


class Stored(_Fields):
    """A value in its stored form. The manifest stays packed, because few of the values that are read are decoded."""

    __slots__ = ()

    def __new__(cls, tag: str, packed: bytes, digest: bytes) -> Self:
        """Make the form that a row holds of the other three. A literal has no digest."""
        if not digest:
            return tuple.__new__(cls, (tag, packed, digest, before_literal(tag) + packed))
        # The manifest comes first, because it begins with the keys of its segments, which SQL reads.
        return tuple.__new__(cls, (tag, packed, digest, packed + digest + after_digest(tag)))

    def segment_keys(self) -> tuple[bytes, ...]:
        """Return the keys of the segments that hold the value's bytes."""
        return keys_in(self.packed) if self.digest else ()

    def size(self) -> int:
        """Return the length of the encoded value in bytes."""
        if not self.digest:
            return len(self.packed)
        return layout(self.packed).length

    def overhead(self) -> int:
        """Return how many bytes of the stored form are not the value's own: the manifest, the digest and the tag."""
        literals = layout(self.packed).literals() if self.digest else len(self.packed)
        return len(self.body) - literals

    def data(self, segments: Mapping[bytes, bytes], allowance: Allowance | None = None) -> bytes:
        """Join and verify the value's bytes from its stored segments. Raises CorruptDataError if they are damaged."""
        return self.proof(segments, {}, allowance=allowance).data if self.digest else self.packed

    def proof(
        self,
        segments: Mapping[bytes, bytes],
        whole: dict[bytes, bytes],
        previous: Proof | None = None,
        allowance: Allowance | None = None,
    ) -> Proof:
        """Like `data`, for a value that is not a literal. Returns the bytes with their proof.

        `whole` collects the expanded segments, for other values that share them. `previous` is the proof of a similar
        value. `allowance` is that of the value's checkpoint.
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
            proven = proof(join(manifest, whole), previous)
        except MemoryError as error:
            raise CorruptDataError(f"there is not enough memory for its {manifest.length:,} bytes") from error
        if proven.digest != self.digest:
            raise CorruptDataError("its bytes do not have the digest they were written with")
        return proven

    def source(self, data: bytes) -> Source:
        """Return the value's bytes with its manifest, to compare other values with."""
        return Source(data, self.packed if self.digest else b"")

    @classmethod
    def from_bytes(cls, body: bytes) -> "Stored":
        """Parse the form that a row holds. Raises CorruptDataError if it is cut off or damaged."""
        try:
            if body[0] == 0:
                start = 2 + body[1]
                tag = body[2:start].decode("utf-8", "surrogatepass")
                return tuple.__new__(cls, (tag, body[start:], b"", body))
            tag_start = len(body) - 1 - body[-1]
            end = tag_start - VALUE_DIGEST_SIZE
            if end < 1 + body[0] * KEY_SIZE:
                raise CorruptDataError("its stored form is cut off or damaged")
            tag = body[tag_start:-1].decode("utf-8", "surrogatepass")
            return tuple.__new__(cls, (tag, body[:end], body[end:tag_start], body))
        except (IndexError, UnicodeDecodeError) as error:
            raise CorruptDataError("its stored form is cut off or damaged") from error


@lru_cache(64)  # a serializer has a few tags
def before_literal(tag: str) -> bytes:
    """Return the bytes before a literal with this tag in a row."""
    name = tag.encode("utf-8", "surrogatepass")
    return b"\0" + bytes([len(name)]) + name


@lru_cache(64)  # as `before_literal`
def after_digest(tag: str) -> bytes:
    """Return the bytes behind a manifest and its digest."""
    name = tag.encode("utf-8", "surrogatepass")
    return name + bytes([len(name)])


def shrink(data: bytes) -> bytes:
    """Return the stored form of a segment, which is at most one byte longer."""
    if _INSTALLED and len(data) >= SMALLEST:
        frame = _codecs.compressor.compress(data)
        frame = _lengthened(frame, -(-len(data) // MOST_COMPRESSED))
        if len(frame) < len(data) - len(data) // _PAYS:
            return _ZSTD + frame
    return _AS_IT_IS + data


def expand(stored: bytes, size: int) -> bytes:
    """Return the segment of `size` bytes from its stored form.

    Never makes more than that, even if the stored bytes announce more.
    """
    tag, body = stored[:1], stored[1:]
    if tag == _ZSTD:
        body = _decompressed(_without_skipped(body), size)
    elif tag != _AS_IT_IS:
        raise CorruptDataError(f"a segment is stored in an unknown form (tag {tag.hex() or 'missing'})")
    if len(body) != size:
        raise CorruptDataError(f"a segment has {len(body)} bytes where {size} were stored")
    return body


def announced_size(stored: bytes) -> int:
    """Return the length of a segment as its stored form announces it, at most the length that `expand` allows."""
    if stored[:1] != _ZSTD:
        return len(stored) - 1
    size = _announced(_without_skipped(stored[1:]))
    if not 0 <= size <= MOST_COMPRESSED * len(stored):
        raise CorruptDataError(f"a compressed segment announces {size} bytes")
    return size


def _lengthened(frame: bytes, least: int) -> bytes:
    """Return the frame with at least this length, by a frame of zeros in front, which every reader of zstd skips."""
    if len(frame) >= least:
        return frame
    zeros = max(0, least - len(frame) - len(_SKIPPED) - _SKIPPED_LENGTH)
    return _SKIPPED + zeros.to_bytes(_SKIPPED_LENGTH, "little") + bytes(zeros) + frame


def _without_skipped(body: bytes) -> bytes:
    """Return the frame without the skipped one in front of it."""
    if not body.startswith(_SKIPPED):
        return body
    start = len(_SKIPPED) + _SKIPPED_LENGTH
    zeros = int.from_bytes(body[len(_SKIPPED) : start], "little")
    if body.count(0, start, start + zeros) != zeros:
        raise CorruptDataError("a compressed segment does not begin as it should")
    return body[start + zeros :]


class _Codecs(threading.local):
    """zstandard's objects, one of each for every thread: they must not be shared, and are expensive to make."""

    def __init__(self) -> None:
        import zstandard

        self.compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


def _decompressed(frame: bytes, size: int) -> bytes:
    # Checked first, because the decompressor allocates the length that the frame announces.
    if _announced(frame) != size:
        raise CorruptDataError(f"a compressed segment does not announce the {size} bytes that were stored")
    import zstandard

    try:
        return _codecs.decompressor.decompress(frame, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise CorruptDataError(f"a compressed segment cannot be expanded ({error})") from None


def _announced(frame: bytes) -> int:
    """Return the length of the segment that a frame announces, -1 if it does not."""
    if not _INSTALLED:
        raise MissingDependencyError(
            "a stored segment is compressed with zstd: to read it, pip install 'threadmark[zstd]'", name="zstandard"
        )
    import zstandard

    try:
        return zstandard.frame_content_size(frame)
    except zstandard.ZstdError as error:
        raise CorruptDataError(f"a compressed segment cannot be expanded ({error})") from None


if _INSTALLED:
    _codecs = _Codecs()
