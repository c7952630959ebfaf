"""What a value is made of: slices of stored segments, and literals."""

from hashlib import blake2b
from typing import NamedTuple

KEY_SIZE = 12
MOST_SEGMENTS = 48
MOST_PARTS = 512
MOST_REPEATED = 4  # a value is at most so many times as long as its segments and its raw bytes together


class Slice(NamedTuple):
    """`length` bytes of a stored segment, from `start`. `size` is the length of the whole segment."""

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
