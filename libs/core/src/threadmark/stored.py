"""An encoded value as a row holds it: literally while it is small, else as a manifest of slices of segments.

The same form serves a channel's value (inside a checkpoint's header), a pending write's value and the header itself.
"""

from collections.abc import Mapping
from typing import NamedTuple

from threadmark.compression import expand
from threadmark.digests import VALUE_DIGEST_SIZE, Proof, proof
from threadmark.errors import CorruptDataError
from threadmark.rope import KEY_SIZE, Source, join, keys_in, layout

LITERAL_LIMIT = 96
"""Up to this many bytes a value stands in its row: a segment of its own would cost more."""

LONGEST_TAG = 255
"""Bytes of a serializer's tag; its length stands in one byte."""


class Encoded(NamedTuple):
    """What a serializer made of a value."""

    tag: str
    data: bytes

    @classmethod
    def of(cls, typed: tuple[str, bytes]) -> "Encoded":
        """What `dumps_typed` returned, for keeps: some serializers hand over the user's own bytearray."""
        tag, data = typed
        return cls(tag, data if type(data) is bytes else bytes(memoryview(data)))


class Stored(NamedTuple):
    """A value in its stored form: packed, because few of those that are read are ever taken apart."""

    tag: str
    packed: bytes
    """The manifest, or of a literal the value itself."""
    digest: bytes
    """The value's; empty for a literal, which its row's check proves."""

    def segment_keys(self) -> tuple[bytes, ...]:
        """The segments that hold the value's bytes."""
        return keys_in(self.packed) if self.digest else ()

    def size(self) -> int:
        """How many bytes the encoded value has."""
        if not self.digest:
            return len(self.packed)
        return sum(length for _, _, length in layout(self.packed).parts)

    def data(self, segments: Mapping[bytes, bytes]) -> bytes:
        """The value's bytes from its segments as they are stored, proven; CorruptDataError where they are damaged."""
        return self.proof(segments, {}).data if self.digest else self.packed

    def proof(self, segments: Mapping[bytes, bytes], whole: dict[bytes, bytes], near: Proof | None = None) -> Proof:
        """The same, of a value that is no literal, with what proves it.

        `whole` keeps the segments as they were before they were stored, for other values that share them; `near` is
        the proof of a value that this one resembles.
        """
        manifest = layout(self.packed)
        for key, size in zip(manifest.keys, manifest.sizes, strict=True):
            if key not in whole and key in segments:
                whole[key] = expand(segments[key], size)
        proven = proof(join(manifest, whole), near)
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
        """The stored form that a row holds; CorruptDataError where it is none."""
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
