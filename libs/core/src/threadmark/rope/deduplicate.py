"""What a put stores of a value: slices of what the thread holds already, and one new segment at most."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate
from math import isqrt
from typing import NamedTuple

from threadmark.rope.manifest import Manifest, Part, Slice, segment_key
from threadmark.rope.reuse import RAW, Source, reused
from threadmark.rope.tidy import MOST_LITERAL, Pieces, tidied

_KEPT = 24  # so many raw bytes, the shortest pieces, stay literals beside a new segment: counts mostly
_PATCHED = 2048  # values up to this length may be patched,
_PATCHES = 12  # by a manifest that takes so many times the square root of the value's length at most
_CRUMBLED = 2  # where that is not enough, and it is of so many segments already, it becomes one again,
_RESTLESS = 12  # unless more than one in so many bytes is new since the value before


class Deduplicated(NamedTuple):
    """A value's manifest, and by key the segments that must be added for it."""

    manifest: Manifest
    fresh: dict[bytes, bytes]


def deduplicate(
    data: bytes,
    sources: Sequence[Source],
    key: Callable[[bytes], bytes] = segment_key,
    *,
    beside: Collection[bytes] = (),
) -> Deduplicated:
    """Express a value by what its sources are made of.

    The first source should be what the value most likely came from; the others fill the gaps. Whatever the
    sources, a manifest names at most 48 segments in at most 512 parts, and the segments are together no
    longer than twice the value and 1 KiB; of those `beside`, which a reader of the value has read anyway, none
    counts towards that. The value is at most 4 times as long as they and the literals. Equal arguments give equal
    manifests.
    """
    if len(data) <= MOST_LITERAL:
        return Deduplicated((data,) if data else (), {})
    if not sources:
        return _laid(data, [Slice(RAW, len(data), 0, len(data))], key)
    return _laid(data, tidied(reused(data, sources), frozenset(beside)), key)


def patch(data: bytes, source: Source | None, key: Callable[[bytes], bytes] = segment_key) -> Deduplicated:
    """Express a value by the one before it, where nothing but the next one will be compared with it.

    A short one that changes in the same few places every time needs no segments for that: literals take fewer bytes,
    and less time. Once they are too many, the value is deduplicated like any other, so that they become a segment; the
    next time all of it becomes one, unless so much is new each time that this would soon have to be done again.
    """
    if source is None or len(data) > _PATCHED:
        return deduplicate(data, [source] if source else [], key)
    slices = reused(data, [source])
    pieces = Pieces(slices)
    cheap = pieces.used and pieces.raw + pieces.cost <= _PATCHES * isqrt(len(data))
    if cheap and pieces.excess() <= 0 and not pieces.repeats():
        return _laid(data, slices, key, most_literal=pieces.raw)
    literal = sum(len(part) for part in source.manifest if isinstance(part, bytes))
    restless = (pieces.raw - literal) * _RESTLESS > len(data)
    return _laid(data, tidied(slices), key) if restless or len(pieces.used) < _CRUMBLED else deduplicate(data, [], key)


def _laid(
    data: bytes, slices: list[Slice], key: Callable[[bytes], bytes], *, most_literal: int = MOST_LITERAL
) -> Deduplicated:
    """Raw bytes as literals, and where they are more than that, gathered in a new segment."""
    raw = [piece for piece in slices if piece.key == RAW]
    shortest = _shortest_gathered([piece.length for piece in raw], most_literal)
    segment = b"".join([data[start : start + length] for _, _, start, length in raw if length >= shortest])
    name, size = key(segment) if segment else RAW, len(segment)
    manifest: list[Part] = []
    laid = 0
    for piece in slices:
        owner, _, start, length = piece
        if owner != RAW:
            manifest.append(piece)
        elif length < shortest:
            manifest.append(data[start : start + length])
        else:
            manifest.append(Slice(name, size, laid, length))
            laid += length
    return Deduplicated(tuple(manifest), {name: segment} if segment else {})


def _shortest_gathered(lengths: list[int], most_literal: int) -> int:
    """The length from which on raw pieces go into a new segment, if there are enough to be worth one."""
    total = sum(lengths)
    if total <= most_literal:
        return total + 1
    ascending = sorted(lengths)
    kept = bisect_right(list(accumulate(ascending)), _KEPT)
    return ascending[kept]
