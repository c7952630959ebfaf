"""Manifests: a value as slices of stored segments and literals."""

from typing import NamedTuple

MOST_SEGMENTS = 48
"""The most segments that a manifest may name."""

MOST_PARTS = 512
"""The most parts that a manifest may have."""

MOST_REPEATED = 4
"""A value is at most this many times as long as its segments and its literals together."""


class Slice(NamedTuple):
    """`length` bytes of a stored segment, from `start`. `size` is the length of the whole segment."""

    key: bytes
    size: int
    start: int
    length: int


Part = Slice | bytes
Manifest = tuple[Part, ...]


class Deduplicated(NamedTuple):
    """A value's packed manifest, and the segments that must be added for it, by key."""

    packed: bytes
    fresh: dict[bytes, bytes]
    manifest: Manifest | None = None
    """The manifest, if it was at hand, so that nobody needs to unpack it."""


def segment_keys(manifest: Manifest) -> tuple[bytes, ...]:
    """Return the keys of the segments that a manifest names, each once, in order of first appearance."""
    return tuple(dict.fromkeys(part.key for part in manifest if isinstance(part, Slice)))
