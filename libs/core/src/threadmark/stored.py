"""An encoded value as a row holds it: literally while it is small, else as a manifest of slices of segments.

The same form serves a channel's value (inside a checkpoint's header), a pending write's value and the header itself.
"""

from collections.abc import Mapping
from typing import NamedTuple

from threadmark.compression import expand
from threadmark.digests import VALUE_DIGEST_SIZE, value_digest
from threadmark.errors import CorruptDataError
from threadmark.rope import Manifest, join, pack, segment_keys, unpack

LITERAL_LIMIT = 96
"""Up to this many bytes a value stands in its row: a segment of its own would cost more."""


class Encoded(NamedTuple):
    """What a serializer made of a value."""

    tag: str
    data: bytes


class Stored(NamedTuple):
    """A value in its stored form. `digest` is empty for a literal, which its row's check proves."""

    tag: str
    manifest: Manifest
    digest: bytes

    @property
    def literal(self) -> bytes | None:
        """The value's bytes where they stand in the row itself."""
        if self.digest:
            return None
        (data,) = self.manifest
        return data if isinstance(data, bytes) else None

    def keys(self) -> tuple[bytes, ...]:
        """The segments that hold the value's bytes."""
        return segment_keys(self.manifest) if self.digest else ()

    def size(self) -> int:
        """How many bytes the encoded value has."""
        return sum(len(part) if isinstance(part, bytes) else part.length for part in self.manifest)

    def data(self, segments: Mapping[bytes, bytes], expanded: dict[bytes, bytes] | None = None) -> bytes:
        """The value's bytes from its segments as they are stored, proven; CorruptDataError where they are damaged.

        `expanded` keeps the segments as they were before they were stored, for other values that share them.
        """
        if (literal := self.literal) is not None:
            return literal
        whole = {} if expanded is None else expanded
        for part in self.manifest:
            if not isinstance(part, bytes) and part.key not in whole and part.key in segments:
                whole[part.key] = expand(segments[part.key], part.size)
        data = join(self.manifest, whole)
        if value_digest(data) != self.digest:
            raise CorruptDataError("its bytes do not have the digest they were written with")
        return data

    def to_bytes(self) -> bytes:
        """The form that a row holds (docs/format.md)."""
        tag = self.tag.encode("utf-8", "surrogatepass")
        if not self.digest:
            return b"\x00" + bytes([len(tag)]) + tag + (self.literal or b"")
        # The manifest comes first, because it starts with the keys of its segments, and SQL must find those.
        return pack(self.manifest) + self.digest + tag + bytes([len(tag)])

    @classmethod
    def from_bytes(cls, body: bytes) -> "Stored":
        """The stored form that a row holds; CorruptDataError where it is none."""
        try:
            if body[0] == 0:
                start = 2 + body[1]
                return cls(body[2:start].decode("utf-8", "surrogatepass"), (body[start:],), b"")
            tag_start = len(body) - 1 - body[-1]
            tag = body[tag_start:-1].decode("utf-8", "surrogatepass")
            digest = body[tag_start - VALUE_DIGEST_SIZE : tag_start]
            return cls(tag, unpack(body[: tag_start - VALUE_DIGEST_SIZE]), digest)
        except (IndexError, UnicodeDecodeError) as error:
            raise CorruptDataError("its stored form is cut off or damaged") from error
