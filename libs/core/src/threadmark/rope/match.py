"""Finding what two byte strings share, at the speed of C: no loop here runs over bytes.

Equal stretches are measured by comparing slices of growing length, then by bisection. Where the two part,
anchors (short pieces) of either are looked for in the other with `find`, ever further ahead and in ever wider
windows, so that a small edit costs a small search. A budget bounds the whole, whatever the bytes are.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

_ANCHOR = 32  # bytes that must agree before a place is looked at: fewer meet by chance in any structure
_LEAST = 16  # bytes; a shorter match is not worth a slice
_REPLACED = (8, 16, 24, 40, 80)  # lengths after which both may go on alike, tried before anything is searched
_STRIDE = 16  # how far ahead the second anchor is taken; the distances then grow by half
_NEAR = 4096  # bytes that every anchor is looked for in,
_REACH = 64  # or so many times its distance ahead, if that is more
_PATIENCE = 8  # a doubtful match stands once the search is at so many times the distance that it skips
_DISTANCES = 3000  # tried in one search, at a microsecond each even where the anchors are found at once
_SIZEABLE = 4096  # a stretch this long is worth a look through the whole of a source
_MUCH_LONGER = 8  # that is so many times longer
_GALLOP = 64  # the length of the first slices compared
_LONGEST = 1 << 16  # and of the longest
_NUMBER = 1024  # so many bytes are compared as one number, which tells where they differ; more are halved first


class Match(NamedTuple):
    """data[at:][:length] equals source[start:][:length]."""

    at: int
    start: int
    length: int


class Gap(NamedTuple):
    """data[start:end], of which nothing is known yet."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """How many bytes it spans."""
        return self.end - self.start

    def without(self, found: Iterable[Match]) -> Iterator["Gap"]:
        """What ascending matches inside the gap leave of it, be it empty."""
        start = self.start
        for match in found:
            yield Gap(start, match.at)
            start = match.at + match.length
        yield Gap(start, self.end)


class Budget:
    """What a search may still spend: bytes to look for anchors in, and distances to take anchors at."""

    def __init__(self, scan: int) -> None:
        self._scan = scan
        self._distances = _DISTANCES

    def __bool__(self) -> bool:
        return self._scan > 0 and self._distances > 0

    def spend(self, scanned: int) -> None:
        """Account for one distance, whose anchors are looked for in so many bytes."""
        self._scan -= scanned
        self._distances -= 1


def matches(data: bytes, gap: Gap, source: bytes, budget: Budget) -> list[Match]:
    """What a stretch of `data` shares with `source`, in ascending order in both."""
    first, last = _surroundings(data, gap, source, budget)
    walk = _Walk(data, gap, source[first:last], budget)
    return [match._replace(start=match.start + first) for match in walk.matches() if match.length >= _LEAST]


def _surroundings(data: bytes, gap: Gap, source: bytes, budget: Budget) -> tuple[int, int]:
    """Which part of the source to compare with: of one that is much longer, that where a piece of the stretch stands.

    Two pieces are looked for, since one may have been edited.
    """
    if gap.length < _SIZEABLE or len(source) < _MUCH_LONGER * gap.length:
        return 0, len(source)
    for ahead in (gap.length // 2, gap.length // 4):
        anchor = data[gap.start + ahead : gap.start + ahead + _ANCHOR]
        budget.spend(len(source))
        place = source.find(anchor)
        if place >= 0:
            first = place - ahead
            return max(0, first - _NEAR // 2), first + gap.length + _NEAR // 2
    return 0, len(source)


class _Walk:
    """Two byte strings walked side by side: data[at:end] and source[start:stop] are still to be compared."""

    def __init__(self, data: bytes, gap: Gap, source: bytes, budget: Budget) -> None:
        self.data, self.at, self.end = data, gap.start, gap.end
        self.source, self.start, self.stop = source, 0, len(source)
        self.budget = budget

    def matches(self) -> Iterator[Match]:
        tail = self.same_before(self.end, self.stop)
        match: Match | None = Match(self.at, self.start, self.same_from(self.at, self.start))
        while match:
            yield match
            self.at, self.start = match.at + match.length, match.start + match.length
            match = self.resumed(self.end - tail, self.stop - tail)
        # The last match may have run into the common tail: only what it left of that is a match of its own.
        tail = min(tail, self.end - self.at, self.stop - self.start)
        yield Match(self.end - tail, self.stop - tail, tail)

    def resumed(self, end: int, stop: int) -> Match | None:
        """The next match, through an anchor that stands before `end` and `stop`.

        A match that skips more than it shares is doubtful: records of one shape agree in their shape wherever
        they are laid side by side, while the record that is really the same one stands further on.
        """
        best: Match | None = None
        patience = 0
        for ahead, at, start in self.places(end, stop):
            if best and ahead > patience:
                break
            match = self.extended(at, start)
            if best is None or match.length > best.length:
                best = match
                skipped = match.at - self.at + match.start - self.start
                if skipped <= match.length:
                    break
                patience = _PATIENCE * skipped
        return best

    def places(self, end: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Where an anchor of either was found further on in the other, after how far ahead it was taken."""
        for ahead in _REPLACED:  # most edits replace some bytes by as many
            at, start = self.at + ahead, self.start + ahead
            anchor = self.data[at : at + _ANCHOR]
            if at + _ANCHOR <= end and start + _ANCHOR <= stop and self.source.startswith(anchor, start):
                yield ahead, at, start
                break
        longest = max(end - self.at, stop - self.start)
        ahead = 0
        while ahead + _ANCHOR <= longest and self.budget:
            at, start = self.at + ahead, self.start + ahead
            window = min(max(_NEAR, _REACH * ahead), longest)
            self.budget.spend(window)
            if start + _ANCHOR <= stop:
                anchor = self.source[start : start + _ANCHOR]
                found = self.data.find(anchor, self.at, min(end, self.at + window))
                if found >= 0:
                    yield ahead, found, start
            if at + _ANCHOR <= end:
                anchor = self.data[at : at + _ANCHOR]
                found = self.source.find(anchor, self.start, min(stop, self.start + window))
                if found >= 0:
                    yield ahead, at, found
            ahead += ahead // 2 + _STRIDE

    def extended(self, at: int, start: int) -> Match:
        """The longest match around a place where the two agree."""
        before = self.same_before(at, start)
        return Match(at - before, start - before, before + self.same_from(at, start))

    def same_from(self, at: int, start: int) -> int:
        """How many bytes from here on are the same."""
        most, same, stride = min(self.end - at, self.stop - start), 0, _GALLOP
        while same < most:
            length = min(stride, most - same)
            mine = self.data[at + same : at + same + length]
            other = self.source[start + same : start + same + length]
            if mine != other:
                return same + _same_at_front(mine, other)
            same += length
            stride = min(4 * stride, _LONGEST)
        return same

    def same_before(self, at: int, start: int) -> int:
        """How many bytes up to here are the same."""
        most, same, stride = min(at - self.at, start - self.start), 0, _GALLOP
        while same < most:
            length = min(stride, most - same)
            mine = self.data[at - same - length : at - same]
            other = self.source[start - same - length : start - same]
            if mine != other:
                return same + _same_at_end(mine, other)
            same += length
            stride = min(4 * stride, _LONGEST)
        return same


def _same_at_front(mine: bytes, other: bytes) -> int:
    """How many bytes at the front are the same, of two strings of one length that are not."""
    same = 0
    while len(mine) > _NUMBER:
        half = len(mine) // 2
        if mine[:half] == other[:half]:
            same, mine, other = same + half, mine[half:], other[half:]
        else:
            mine, other = mine[:half], other[:half]
    return same + _zeros(mine, other, "big")


def _same_at_end(mine: bytes, other: bytes) -> int:
    """How many bytes at the end are the same, of two strings of one length that are not."""
    same = 0
    while len(mine) > _NUMBER:
        half = len(mine) // 2
        if mine[-half:] == other[-half:]:
            same, mine, other = same + half, mine[:-half], other[:-half]
        else:
            mine, other = mine[-half:], other[-half:]
    return same + _zeros(mine, other, "little")


def _zeros(mine: bytes, other: bytes, order: Literal["big", "little"]) -> int:
    """How many of the highest bytes are equal, the strings taken as numbers."""
    difference = int.from_bytes(mine, order) ^ int.from_bytes(other, order)
    return len(mine) - (difference.bit_length() + 7) // 8
