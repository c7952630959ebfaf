"""Matching the items of two sequences, in little more than linear time for any input.

Equal items at both ends come first. In the rest, the keys that occur once in each sequence are anchors: the longest run
of anchors with the same order in both is kept, and the gaps between them are treated in the same way. Only small gaps
are compared item by item. So 5,000 items that moved take no longer than 5,000 that stayed.

Differences of texts are pieces: by lines if one of them has several, else by words.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from threadmark.travel.model import Edit, EditKind

_SMALL = 2_500
"""Gaps with at most this many pairs are compared item by item."""

_WORK = 1_000_000
"""How many pairs are compared at most, in all gaps together."""

_DEEPEST = 8
"""So often gaps are searched for anchors again."""


class Run(NamedTuple):
    """Items of the one sequence and those in their place in the other. `same` says whether they are the same."""

    start: int
    stop: int
    other_start: int
    other_stop: int
    same: bool


class _Gap(NamedTuple):
    start: int
    stop: int
    other_start: int
    other_stop: int
    depth: int


def aligned(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[Run]:
    """Return the runs of two sequences, in order. Between two runs that are the same there is at most one other."""
    runs: list[Run] = []
    at, other_at = 0, 0
    for start, other_start, length in [*_Matching(one, other).matches(), (len(one), len(other), 0)]:
        if start > at or other_start > other_at:
            runs.append(Run(at, start, other_at, other_start, same=False))
        if length and runs and runs[-1].same:
            runs[-1] = runs[-1]._replace(stop=start + length, other_stop=other_start + length)
        elif length:
            runs.append(Run(start, start + length, other_start, other_start + length, same=True))
        at, other_at = start + length, other_start + length
    return runs


class _Matching:
    def __init__(self, one: Sequence[Hashable], other: Sequence[Hashable]) -> None:
        self._one = one
        self._other = other
        self._work = _WORK

    def matches(self) -> list[tuple[int, int, int]]:
        """Return the stretches that are the same in both, as (start, start in the other, length), in order."""
        found: list[tuple[int, int, int]] = []
        ahead = [_Gap(0, len(self._one), 0, len(self._other), 0)]
        while ahead:
            gap = ahead.pop()
            trimmed = self._trim(gap, found)
            if trimmed.start == trimmed.stop or trimmed.other_start == trimmed.other_stop:
                continue
            anchors = self._anchors(trimmed) if trimmed.depth < _DEEPEST else []
            if anchors:
                found += [(start, other_start, 1) for start, other_start in anchors]
                ahead += _gaps(trimmed, anchors)
            else:
                found += self._compared(trimmed)
        return sorted(found)

    def _trim(self, gap: _Gap, found: list[tuple[int, int, int]]) -> _Gap:
        """Note the common beginning and end of the gap. Returns the rest."""
        one, other = self._one, self._other
        start, stop, other_start, other_stop, depth = gap
        while start < stop and other_start < other_stop and one[start] == other[other_start]:
            start, other_start = start + 1, other_start + 1
        if length := start - gap.start:
            found.append((gap.start, gap.other_start, length))
        while start < stop and other_start < other_stop and one[stop - 1] == other[other_stop - 1]:
            stop, other_stop = stop - 1, other_stop - 1
        if length := gap.stop - stop:
            found.append((stop, other_stop, length))
        return _Gap(start, stop, other_start, other_stop, depth)

    def _anchors(self, gap: _Gap) -> list[tuple[int, int]]:
        """Return the places of keys that occur once on both sides, as many as are in one order in both."""
        ours, theirs = self._one[gap.start : gap.stop], self._other[gap.other_start : gap.other_stop]
        counts, other_counts = Counter(ours), Counter(theirs)
        place_of = {key: place for place, key in enumerate(theirs, gap.other_start) if other_counts[key] == 1}
        pairs = [
            (place, place_of[key]) for place, key in enumerate(ours, gap.start) if counts[key] == 1 and key in place_of
        ]
        return _rising(pairs)

    def _compared(self, gap: _Gap) -> Iterator[tuple[int, int, int]]:
        pairs = (gap.stop - gap.start) * (gap.other_stop - gap.other_start)
        if pairs > min(_SMALL, self._work):
            return
        self._work -= pairs
        ours, theirs = self._one[gap.start : gap.stop], self._other[gap.other_start : gap.other_stop]
        for start, other_start, length in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
            if length:
                yield gap.start + start, gap.other_start + other_start, length


def _gaps(gap: _Gap, anchors: Sequence[tuple[int, int]]) -> Iterator[_Gap]:
    at, other_at = gap.start, gap.other_start
    for start, other_start in [*anchors, (gap.stop, gap.other_stop)]:
        yield _Gap(at, start, other_at, other_start, gap.depth + 1)
        at, other_at = start + 1, other_start + 1


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest part of the pairs, which are in the order of the first places, whose second places rise."""
    ends: list[int] = []  # for each length, the smallest second place with which so many pairs end
    last: list[int] = []  # the index of that pair
    before: list[int] = []
    for index, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        if length == len(ends):
            ends.append(place)
            last.append(index)
        else:
            ends[length], last[length] = place, index
    rising: list[tuple[int, int]] = []
    index = last[-1] if last else -1
    while index >= 0:
        rising.append(pairs[index])
        index = before[index]
    return rising[::-1]


_MOST = 100_000
"""For texts with more pieces, only the common beginning and end are found."""

_WORD = re.compile(r"\w+|\s+|[^\w\s]")


def text_edits(before: str, after: str) -> list[Edit]:
    """Return the pieces in order. Those that are equal or removed are the one text, equal or added the other."""
    lines = "\n" in before.rstrip("\n") or "\n" in after.rstrip("\n")
    ours, theirs = (_lines(text) if lines else _WORD.findall(text) for text in (before, after))
    if len(ours) + len(theirs) > _MOST:
        return list(_outer(before, after))
    edits: list[Edit] = []
    for start, stop, other_start, other_stop, same in aligned(ours, theirs):
        removed, added = "".join(ours[start:stop]), "".join(theirs[other_start:other_stop])
        edits += _pieces(removed, added, same=same)
    return edits


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _pieces(removed: str, added: str, *, same: bool) -> Iterator[Edit]:
    pieces: tuple[tuple[EditKind, str], ...] = (
        (("equal", removed),) if same else (("removed", removed), ("added", added))
    )
    for kind, text in pieces:
        if text:
            yield Edit(kind, text)


def _outer(before: str, after: str) -> Iterator[Edit]:
    """Yield the common beginning of both texts, the part between, and the common end."""
    shorter = min(len(before), len(after))
    start = _common(lambda length: before[:length] == after[:length], shorter)
    end = _common(lambda length: before[len(before) - length :] == after[len(after) - length :], shorter - start)
    yield from _pieces(before[:start], "", same=True)
    yield from _pieces(before[start : len(before) - end], after[start : len(after) - end], same=False)
    yield from _pieces(before[len(before) - end :], "", same=True)


def _common(agree: Callable[[int], bool], most: int) -> int:
    """Return the greatest length at which two texts agree."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if agree(middle) else (least, middle - 1)
    return least
