"""When stored bytes are written anew: the rules that keep manifests short and reads small.

Every put pays for its manifest again: about 14 bytes for each segment it names and 5 for each part. Bytes
that are made raw are paid for once. So each rule makes raw what costs more where it is than it would cost
anew; what is raw goes into the one segment that the put adds.
"""

from collections.abc import Collection
from functools import cached_property
from itertools import accumulate
from math import isqrt

from threadmark.rope.manifest import MOST_PARTS, MOST_REPEATED, MOST_SEGMENTS, Slice
from threadmark.rope.reuse import RAW, made_raw

SLACK = 1024  # a value's segments may be longer than twice the value by this much
MOST_LITERAL = 64  # so many raw bytes stand in the manifest; more are worth a segment

_PART_COST = 5
_SEGMENT_COST = 14
_ROW_COST = 60
_RAGGED = 7  # a manifest may cost so many times the square root of the value's length,
_MENDED = 8  # and where it costs more it is made to cost so many times less than that


def tidied(slices: list[Slice], beside: frozenset[bytes] = frozenset()) -> list[Slice]:
    """The same value within the bounds of what may be stored.

    The order matters: the first rule may leave less of a segment in use, the second answers for that, and the
    last two drop segments only as a whole. Segments `beside` are read with the value in any case. A value that mostly
    repeats itself is written out after all: what is read must not be without measure beside what is stored.
    """
    pieces = _without_crowd(_without_waste(_without_fragments(Pieces(slices)), beside), beside)
    return (pieces.without(pieces.used) if pieces.repeats() else pieces).slices


class Pieces:
    """A value's slices, and what they amount to."""

    def __init__(self, slices: list[Slice]) -> None:
        self.slices = slices
        used: dict[bytes, int] = {}
        for key, _, _, length in slices:
            used[key] = used.get(key, 0) + length
        self.total = sum(used.values())
        self.raw = used.pop(RAW, 0)
        """How many bytes are to be stored anew."""
        self.used = used
        """How many bytes of each segment the value uses."""
        self.cost = _PART_COST * len(slices) + _SEGMENT_COST * len(used)
        """What every manifest that names them pays."""

    @cached_property
    def _sizes(self) -> dict[bytes, int]:
        return {key: size for key, size, _, _ in self.slices if key in self.used}

    def sizes(self, beside: frozenset[bytes] = frozenset()) -> dict[bytes, int]:
        """How long each segment is that is read for the value alone."""
        return {key: size for key, size in self._sizes.items() if key not in beside} if beside else self._sizes

    def repeats(self) -> bool:
        """Whether the value is longer than what it is made of allows."""
        return self.total > MOST_REPEATED * (sum(self._sizes.values()) + self.raw)

    def excess(self, beside: frozenset[bytes] = frozenset()) -> int:
        """How many bytes more than allowed are read for the value."""
        return sum(self.sizes(beside).values()) + self.raw - 2 * self.total - SLACK

    def without(self, keys: Collection[bytes]) -> "Pieces":
        """The same value with these segments' bytes raw."""
        return Pieces(made_raw(self.slices, [piece.key in keys for piece in self.slices])) if keys else self


def _without_fragments(pieces: Pieces) -> Pieces:
    """No value in so many parts that naming them, put after put, costs more than to write them anew.

    Edits add parts, so that what the manifests cost grows with the square of the number of edits. Together
    with the cost of one rewriting that is least where a manifest costs about the square root of the value's
    length.
    """
    most = min(_RAGGED * isqrt(pieces.total), MOST_PARTS * _PART_COST)
    if pieces.cost <= most:
        return pieces
    shortest = 16
    mended = pieces
    while len(mended.slices) > 1 and mended.cost > most // _MENDED:
        shortest *= 2
        mended = Pieces(made_raw(pieces.slices, [piece.length < shortest for piece in pieces.slices]))
    return mended


def _without_waste(pieces: Pieces, beside: frozenset[bytes]) -> Pieces:
    """No more to be read than twice the value: the least used segments go first."""
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


def _without_crowd(pieces: Pieces, beside: frozenset[bytes]) -> Pieces:
    """No more segments than there is room for; the smallest merge.

    There is more room where segments are larger, since merging them costs more. Of all merges that is the
    best which costs least for the square of the room it makes: k free places let about k * k / 2 further
    segments come and be merged once before larger ones must give way.
    """
    spared = beside if len(pieces.used) < MOST_SEGMENTS else frozenset()
    ascending = sorted((length, key) for key, length in pieces.used.items() if key not in spared)
    smaller = [length for length, _ in ascending[: (len(ascending) + 1) // 2]]
    if not smaller:
        return pieces
    room = min(isqrt(sum(smaller) // len(smaller)), MOST_SEGMENTS - 1)
    fresh = pieces.raw > MOST_LITERAL
    if len(ascending) + fresh <= room:
        return pieces
    costs = list(accumulate((length for length, _ in ascending), initial=0 if fresh else _ROW_COST))
    least = max(len(ascending) + 2 - MOST_SEGMENTS, 2 - fresh)
    merged = min(range(least, len(costs)), key=lambda count: costs[count] / (count - 1 + fresh) ** 2)
    return pieces.without({key for _, key in ascending[:merged]})
