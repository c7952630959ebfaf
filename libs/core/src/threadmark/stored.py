"""An encoded value as a row holds it: literally while it is small, else as a manifest of slices of segments.

The same form serves a channel's value (inside a checkpoint's header), a pending write's value and the header itself.
"""

from collections.abc import Mapping
from typing import NamedTuple

from threadmark.compression import MOST_COMPRESSED, expand
from threadmark.digests import VALUE_DIGEST_SIZE, Proof, proof
from threadmark.errors import CorruptDataError
from threadmark.rope import KEY_SIZE, MOST_REPEATED, Source, join, keys_in, layout

LITERAL_LIMIT = 96
"""Up to this many bytes a value stands in its row: a segment of its own would cost more."""

EXPANSION_BYTES = 512 * 1024
"""What reading a checkpoint may make of stored bytes beyond what a saver ever stores so, unless told otherwise."""

LONGEST_TAG = 255
"""The longest tag of a serializer, in bytes: its length is stored in one byte."""


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
