"""What a value is made of: slices of stored segments, and literals."""

from typing import NamedTuple

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


def segment_keys(manifest: Manifest) -> tuple[bytes, ...]:
    """The distinct segments that a manifest names, in order of first appearance."""
    return tuple(dict.fromkeys(part.key for part in manifest if isinstance(part, Slice)))
