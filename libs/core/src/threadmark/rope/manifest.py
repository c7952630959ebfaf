"""What a value is made of: slices of stored segments and literals, and how they are joined again."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple

from threadmark.errors import CorruptDataError

KEY_SIZE = 12


class Slice(NamedTuple):
    """`length` bytes of a stored segment, from `start` on; `size` is the length of the whole segment."""

    key: bytes
    size: int
    start: int
    length: int


Part = Slice | bytes
Manifest = tuple[Part, ...]


def segment_key(segment: bytes, secret: bytes = b"") -> bytes:
    """A segment's name inside its thread; with a secret it tells nobody what the bytes are.

    It is short because every manifest repeats it. Should two segments ever collide, the digest of the whole
    value, checked on every read, turns that into a CorruptDataError.
    """
    return blake2b(segment, digest_size=KEY_SIZE, key=secret).digest()


def segment_keys(manifest: Manifest) -> tuple[bytes, ...]:
    """The distinct segments that a manifest names, in order of first appearance."""
    return tuple(dict.fromkeys(part.key for part in manifest if isinstance(part, Slice)))


def join(manifest: Manifest, segments: Mapping[bytes, bytes]) -> bytes:
    """The value's bytes; CorruptDataError where a segment is missing or not as long as the manifest says."""
    pieces = []
    for part in manifest:
        if not isinstance(part, Slice):
            pieces.append(part)
            continue
        key, size, start, length = part
        segment = segments.get(key)
        if segment is None:
            raise CorruptDataError(f"segment {key.hex()} is missing")
        if len(segment) != size:
            raise CorruptDataError(f"segment {key.hex()} has {len(segment)} bytes where {size} were stored")
        pieces.append(segment[start : start + length])
    return b"".join(pieces)
