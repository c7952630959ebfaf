"""When stored bytes are written anew: the rules that keep manifests short and reads small.

Every put pays for its manifest again: about 14 bytes for each segment it names and 5 for each part. Bytes
that are made raw are paid for once. So each rule makes raw what costs more where it is than it would cost
anew; what is raw goes into the one segment that the put adds.
"""

from collections.abc import Collection
from itertools import accumulate
from math import isqrt

from threadmark.rope.manifest import Slice
from threadmark.rope.reuse import RAW, made_raw

MOST_SEGMENTS = 48
MOST_PARTS = 512
SLACK = 1024  # a value's segments may be longer than twice the value by this much
MOST_LITERAL = 64  # so many raw bytes stand in the manifest; more are worth a segment

_PART_COST = 5
_SEGMENT_COST = 14
_ROW_COST = 60
_RAGGED = 7  # a manifest may cost so many times the square root of the value's length,
_MENDED = 8  # and where it costs more it is made to cost so many times less than that


def tidied(slices: list[Slice]) -> list[Slice]:
    """The same value within the bounds of what may be stored.

    The order matters: the first rule may leave less of a segment in use, the second answers for that, and the
    last two drop segments only as a whole.
    """
    for rule in (_without_tatters, _without_waste, _without_crowd):
        slices = rule(slices)
    return slices


def raw_length(slices: list[Slice]) -> int:
    """How many bytes of a value are to be stored anew."""
    return sum(piece.length for piece in slices if piece.key == RAW)


def _without_tatters(slices: list[Slice]) -> list[Slice]:
    """No value in so many parts that naming them, put after put, costs more than to write them anew.

    Edits add parts, so that what the manifests cost grows with the square of the number of edits. Together
    with the cost of one rewriting that is least where a manifest costs about the square root of the value's
    length.
    """
    most = min(_RAGGED * isqrt(sum(piece.length for piece in slices)), MOST_PARTS * _PART_COST)
    if _manifest_cost(slices) <= most:
        return slices
    shortest = 16
    mended = slices
    while len(mended) > 1 and _manifest_cost(mended) > most // _MENDED:
        shortest *= 2
        mended = made_raw(slices, [piece.length < shortest for piece in slices])
    return mended


def _without_waste(slices: list[Slice]) -> list[Slice]:
    """No more to be read than twice the value: the least used segments go first."""
    used = _used(slices)
    sizes = {piece.key: piece.size for piece in slices if piece.key != RAW}
    total = sum(piece.length for piece in slices)
    excess = sum(sizes.values()) + raw_length(slices) - 2 * total - SLACK
    wasteful = set()
    for key in sorted(used, key=lambda key: used[key] / sizes[key]):
        if excess <= 0:
            break
        excess -= sizes[key] - used[key]
        wasteful.add(key)
    return _without(slices, wasteful)


def _without_crowd(slices: list[Slice]) -> list[Slice]:
    """No more segments than there is room for; the smallest merge.

    There is more room where segments are larger, since merging them costs more. Of all merges that is the
    best which costs least for the square of the room it makes: k free places let about k * k / 2 further
    segments come and be merged once before larger ones must give way.
    """
    ascending = sorted((length, key) for key, length in _used(slices).items())
    smaller = [length for length, _ in ascending[: (len(ascending) + 1) // 2]]
    if not smaller:
        return slices
    room = min(isqrt(sum(smaller) // len(smaller)), MOST_SEGMENTS - 1)
    fresh = raw_length(slices) > MOST_LITERAL
    if len(ascending) + fresh <= room:
        return slices
    costs = list(accumulate((length for length, _ in ascending), initial=0 if fresh else _ROW_COST))
    least = max(len(ascending) + 2 - MOST_SEGMENTS, 2 - fresh)
    merged = min(range(least, len(costs)), key=lambda count: costs[count] / (count - 1 + fresh) ** 2)
    return _without(slices, {key for _, key in ascending[:merged]})


def _used(slices: list[Slice]) -> dict[bytes, int]:
    """How many bytes of each segment the value uses."""
    used: dict[bytes, int] = {}
    for key, _, _, length in slices:
        if key != RAW:
            used[key] = used.get(key, 0) + length
    return used


def _manifest_cost(slices: list[Slice]) -> int:
    return _PART_COST * len(slices) + _SEGMENT_COST * len(_used(slices))


def _without(slices: list[Slice], keys: Collection[bytes]) -> list[Slice]:
    return made_raw(slices, [piece.key in keys for piece in slices]) if keys else slices
