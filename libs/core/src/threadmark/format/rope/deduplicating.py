"""Deciding how to store a value: as slices of segments that the thread holds, and at most one new segment.

Each put stores a manifest: about 14 bytes for each segment that it names and 5 for each part. Raw bytes are stored
again, but only once. So each rule here makes bytes raw if they cost more as slices than they would cost as new bytes.
All raw bytes go into the one segment that the put adds.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from itertools import accumulate
from math import isqrt

from threadmark.format.digests import segment_key
from threadmark.format.rope.packed import MOST_PARTS, MOST_REPEATED, MOST_SEGMENTS, Deduplicated, Part, Slice, pack
from threadmark.format.rope.reuse import RAW, Source, made_raw, reused
from threadmark.runtime.compiled import counterpart

SLACK = 1024
"""A value's segments may be longer together than twice the value by this many bytes."""

MOST_LITERAL = 64
"""Up to this many raw bytes of a value stay in its manifest as literals; more are worth a segment."""

_MOST_LITERAL_OF_HEADER = 640
"""The same for a long header, of which each put has to write the literals again. Most puts need no new segment then:
a segment costs about as many bytes, and its row and its index are two pages of a database."""

_TIMES_NEW = 4
"""But no more than this many times the new bytes since the header before it."""

_KEPT = 24
"""Next to a new segment, the shortest raw pieces stay literals, up to this many bytes: mostly counts."""

_PART_COST = 5
"""The cost of a part in a manifest, in bytes."""

_SEGMENT_COST = 14
"""The cost of naming a segment in a manifest, in bytes."""

_ROW_COST = 60
"""The cost of a new segment besides its bytes."""

_COSTLY = 5
"""A manifest that costs more than this many times the square root of the value's length is simplified."""

_COSTLY_OF_HEADER = 7
"""The same for a long header, of which something is new in many places with every put."""

_SIMPLIFIED = 8
"""A simplified manifest costs at most this fraction (one part in 8) of that limit."""

_SHORT = 2048
"""Values up to this length may be patched."""

_PATCH_COST = 12
"""A patched value may cost this many times the square root of its length."""

_FEW_SEGMENTS = 2
"""A value of at least this many segments that cannot be patched any more becomes one segment again."""

_MOSTLY_NEW = 12
"""But not if more than one byte in this many is new since the value before it."""


@counterpart("rope.deduplicate", is_whole=True)
def deduplicate(
    data: bytes,
    sources: Sequence[Source],
    key: Callable[[bytes], bytes] = segment_key,
    *,
    beside: Collection[bytes] = (),
) -> Deduplicated:
    """Express a value by slices of the segments of its sources.

    The first source should be the value's most likely origin; the others fill the gaps. Whatever the sources
    are, a manifest names at most 48 segments in at most 512 parts. Together the segments are no longer than twice the
    value and 1 KiB, not counting those in `beside`, which a reader of the value reads anyway. The value is at most 4
    times as long as the segments and literals together. Equal arguments give equal manifests.
    """
    if len(data) <= MOST_LITERAL:
        return _packed([data] if data else [], {})
    if not sources:
        return _with_new_segment(data, [Slice(RAW, len(data), 0, len(data))], key)
    return _with_new_segment(data, tidied(reused(data, sources), frozenset(beside)), key)


@counterpart("rope.patch", is_whole=True)
def patch(data: bytes, source: Source | None, key: Callable[[bytes], bytes] = segment_key) -> Deduplicated:
    """Express a value by the one before it, if only its successor will be compared with it.

    New bytes in a long value stay literal for some puts before they become a segment. A short value that changes in
    the same few places each time needs no new segments: literals take fewer bytes, and less time. When there are too
    many of them, the value is deduplicated like any other, so that they become a segment. The next time the whole value
    becomes one segment, unless so much is new each time that this would not last.
    """
    if source is None:
        return deduplicate(data, [], key)
    slices = reused(data, [source])
    pieces = Pieces(slices)
    new = pieces.raw - sum(len(part) for part in source.manifest if isinstance(part, bytes))
    if len(data) > _SHORT:
        most = max(MOST_LITERAL, min(_MOST_LITERAL_OF_HEADER, _TIMES_NEW * new))
        return _with_new_segment(data, tidied(slices, costly=_COSTLY_OF_HEADER, most_literal=most), key, most)
    cheap = pieces.used and pieces.raw + pieces.cost <= _PATCH_COST * isqrt(len(data))
    if cheap and pieces.excess() <= 0 and not pieces.repeats():
        return _with_new_segment(data, slices, key, pieces.raw)
    if new * _MOSTLY_NEW > len(data) or len(pieces.used) < _FEW_SEGMENTS:
        return _with_new_segment(data, tidied(slices), key)
    return deduplicate(data, [], key)


def _with_new_segment(
    data: bytes, slices: list[Slice], key: Callable[[bytes], bytes], most_literal: int = MOST_LITERAL
) -> Deduplicated:
    """Turn raw slices into literals, or into slices of one new segment if they are too long for that."""
    raw = [piece for piece in slices if piece.key == RAW]
    shortest = _shortest_gathered([piece.length for piece in raw], most_literal)
    segment = b"".join([data[start : start + length] for _, _, start, length in raw if length >= shortest])
    name, size = key(segment) if segment else RAW, len(segment)
    manifest: list[Part] = []
    position = 0
    for piece in slices:
        owner, _, start, length = piece
        if owner != RAW:
            manifest.append(piece)
        elif length < shortest:
            manifest.append(data[start : start + length])
        else:
            manifest.append(Slice(name, size, position, length))
            position += length
    return _packed(manifest, {name: segment} if segment else {})


def _packed(parts: list[Part], fresh: dict[bytes, bytes]) -> Deduplicated:
    manifest = tuple(parts)
    return Deduplicated(pack(manifest), fresh, manifest)


def _shortest_gathered(lengths: list[int], most_literal: int) -> int:
    """Return the length from which on raw pieces go into a new segment, if there is enough for one."""
    total = sum(lengths)
    if total <= most_literal:
        return total + 1
    ascending = sorted(lengths)
    kept = bisect_right(list(accumulate(ascending)), _KEPT)
    return ascending[kept]


def tidied(
    slices: list[Slice],
    beside: frozenset[bytes] = frozenset(),
    *,
    costly: int = _COSTLY,
    most_literal: int = MOST_LITERAL,
) -> list[Slice]:
    """Return the slices of the same value within the limits of storage.

    The order matters: the first rule may leave less of a segment in use, the second corrects that, and the last two
    drop segments only as a whole. Segments in `beside` are read with the value in any case. A value that mostly repeats
    itself is stored again, so that the bytes to read stay in proportion to the bytes stored.
    """
    pieces = _without_waste(_without_fragments(Pieces(slices), costly), beside)
    pieces = _with_fewer_segments(pieces, beside, most_literal)
    return (pieces.without(pieces.used) if pieces.repeats() else pieces).slices


class Pieces:
    """A value's slices, and their totals."""

    def __init__(self, slices: list[Slice]) -> None:
        self.slices = slices
        used: dict[bytes, int] = {}
        for key, _, _, length in slices:
            used[key] = used.get(key, 0) + length
        self.total = sum(used.values())
        self.raw = used.pop(RAW, 0)
        """How many bytes would be stored again."""
        self.used = used
        """How many bytes of each segment the value uses."""
        self.cost = _PART_COST * len(slices) + _SEGMENT_COST * len(used)
        """The cost of the manifest, in bytes."""

    @cached_property
    def _sizes(self) -> dict[bytes, int]:
        return {key: size for key, size, _, _ in self.slices if key in self.used}

    def sizes(self, beside: frozenset[bytes] = frozenset()) -> dict[bytes, int]:
        """Return the length of each segment that is read for this value only."""
        return {key: size for key, size in self._sizes.items() if key not in beside} if beside else self._sizes

    def repeats(self) -> bool:
        """Whether the value is longer than `MOST_REPEATED` allows."""
        return self.total > MOST_REPEATED * (sum(self._sizes.values()) + self.raw)

    def excess(self, beside: frozenset[bytes] = frozenset()) -> int:
        """Return how many bytes more than allowed are read for the value."""
        return sum(self.sizes(beside).values()) + self.raw - 2 * self.total - SLACK

    def without(self, keys: Collection[bytes]) -> "Pieces":
        """Return the same value with these segments' bytes raw."""
        return Pieces(made_raw(self.slices, [piece.key in keys for piece in self.slices])) if keys else self


def _without_fragments(pieces: Pieces, costly: int) -> Pieces:
    """Make the shortest pieces raw if the manifest, put after put, costs more than storing them again.

    Edits add parts, so that the cost of the manifests grows with the square of the number of edits. Together with the
    cost of storing pieces again, that is least if a manifest costs about the square root of the value's length.
    """
    most = min(costly * isqrt(pieces.total), MOST_PARTS * _PART_COST)
    if pieces.cost <= most:
        return pieces
    shortest = 16
    simplified = pieces
    while len(simplified.slices) > 1 and simplified.cost > most // _SIMPLIFIED:
        shortest *= 2
        simplified = Pieces(made_raw(pieces.slices, [piece.length < shortest for piece in pieces.slices]))
    return simplified


def _without_waste(pieces: Pieces, beside: frozenset[bytes]) -> Pieces:
    """Make segments raw, the least used first, until reading takes no more than twice the value."""
    excess = pieces.excess(beside)
    if excess <= 0:
        return pieces
    used, sizes = pieces.used, pieces.sizes(beside)
    wasteful = set()
    for key in sorted(sizes, key=lambda key: used[key] / sizes[key]):
        if excess <= 0:
            break
        excess -= sizes[key] - used[key]
        wasteful.add(key)
    return pieces.without(wasteful)


def _with_fewer_segments(pieces: Pieces, beside: frozenset[bytes], most_literal: int) -> Pieces:
    """Merge the smallest segments if there are more than the value should have.

    A value may have more segments if they are larger, because merging them costs more. The best merge is the one with
    the least cost for the square of the number of segments it removes: after k fewer, about k * k / 2 more segments can
    come and be merged once before larger ones have to be.
    """
    spared = beside if len(pieces.used) < MOST_SEGMENTS else frozenset()
    ascending = sorted((length, key) for key, length in pieces.used.items() if key not in spared)
    smaller = [length for length, _ in ascending[: (len(ascending) + 1) // 2]]
    if not smaller:
        return pieces
    room = min(isqrt(sum(smaller) // len(smaller)), MOST_SEGMENTS - 1)
    fresh = pieces.raw > most_literal
    if len(ascending) + fresh <= room:
        return pieces
    costs = list(accumulate((length for length, _ in ascending), initial=0 if fresh else _ROW_COST))
    least = max(len(ascending) + 2 - MOST_SEGMENTS, 2 - fresh)
    merged = min(range(least, len(costs)), key=lambda count: costs[count] / (count - 1 + fresh) ** 2)
    return pieces.without({key for _, key in ascending[:merged]})
