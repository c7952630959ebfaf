"""Finding the bytes that two strings share, at the speed of C: no loop here runs over bytes.

Equal stretches are measured by comparing views of growing length, then by bisection. At the place where two strings
part, usually some bytes were replaced by as many others; the exclusive or of the next bytes shows this. Otherwise
anchors (short pieces) of each string are searched for in the other with `find`, further and further ahead and in wider
and wider windows, so that a small edit costs a small search. A budget limits the whole search for any input.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

_ANCHOR = 32
"""Bytes of an anchor: fewer would agree by chance in any structure."""

_LEAST = 16
"""A match of fewer bytes is not worth a slice."""

_ABREAST = 256
"""Bytes that are compared position by position after two strings part, before anything is searched."""

_STRIDE = 16
"""How far ahead the second anchor is taken; the distances then grow by half."""

_LEAST_WINDOW = 4096
"""Every anchor is searched for in at least this many bytes."""

_REACH = 64
"""An anchor is searched for in this many times its distance, if that is more."""

_PATIENCE = 8
"""A doubtful match is accepted once the search has gone this many times as far as the match skips."""

_DISTANCES = 3000
"""Distances tried in one search. Each takes a microsecond, even if its anchors are found at once."""

_SIZEABLE = 4096
"""A stretch of this many bytes is worth a search through a whole source that is much longer."""

_MUCH_LONGER = 8
"""A source is much longer than a stretch if it is this many times as long."""

_GALLOP = 256
"""The length of the first stretches that are compared."""

_FASTER = 16
"""Each stretch compared is this many times as long as the one before it."""

_ALIKE = bytes(_ANCHOR)
"""The exclusive or of two equal anchors."""

_BLOCKS = (4096, 512, 64)
"""The blocks in which strings of one length are compared."""

_DIFFERING = re.compile(rb"[^\0](?:\0{0,%d}[^\0])*" % (_LEAST - 1))
"""In an exclusive or: bytes that differ, and those between them that are too few for a match."""

_NUMBER = 1024
"""Up to this many bytes are compared as one number, which shows the difference; longer stretches are halved."""


class Match(NamedTuple):
    """A stretch that is equal in both: data[at:][:length] == source[start:][:length]."""

    at: int
    start: int
    length: int


class Gap(NamedTuple):
    """The stretch data[start:end], for which nothing was found yet."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """How many bytes it spans."""
        return self.end - self.start

    def without(self, found: Iterable[Match]) -> Iterator["Gap"]:
        """Yield the gaps between and around ascending matches inside this one. They may be empty."""
        start = self.start
        for match in found:
            yield Gap(start, match.at)
            start = match.at + match.length
        yield Gap(start, self.end)


class Budget:
    """The remaining cost of a search: bytes to search for anchors in, and distances to take anchors at."""

    def __init__(self, scan: int) -> None:
        self._scan = scan
        self._distances = _DISTANCES

    def __bool__(self) -> bool:
        return self._scan > 0 and self._distances > 0

    def spend(self, scanned: int) -> None:
        """Account for one distance, and for the bytes in which its anchors are searched for."""
        self._scan -= scanned
        self._distances -= 1


def matches(data: bytes, gap: Gap, source: bytes, budget: Budget) -> list[Match]:
    """Return the matches of a stretch of `data` with `source`, in ascending order in both."""
    first, last = _surroundings(data, gap, source, budget)
    walk = _Walk(data, gap, source[first:last], budget)
    found = [match for match in walk.matches() if match.length >= _LEAST]
    return [Match(at, start + first, length) for at, start, length in found] if first else found


def abreast(data: bytes, source: bytes) -> list[Match]:
    """Return the equal bytes of two strings of one length at the same positions, in ascending order.

    Large blocks are compared first, then smaller ones in those that differ, and single bytes only if these do.
    """
    blocks, length = [0], len(data)
    for size in _BLOCKS:
        inside = [at for block in blocks for at in range(block, min(block + length, len(data)), size)]
        blocks, length = [at for at in inside if data[at : at + size] != source[at : at + size]], size
    found: list[Match] = []
    same = 0  # the position at which the two begin to be the same
    for block in blocks:
        difference = _exclusive_or(data[block : block + length], source[block : block + length])
        for differing in _DIFFERING.finditer(difference):
            at = block + differing.start()
            if at - same >= _LEAST:
                found.append(Match(same, same, at - same))
            same = block + differing.end()
    if len(data) - same >= _LEAST:
        found.append(Match(same, same, len(data) - same))
    return found


def stretch(data: bytes, gap: Gap, source: bytes) -> list[Match]:
    """Return the match of a short source in a stretch of `data`, in a list, or an empty list.

    A short source usually occurs as a whole or not at all, and two searches tell which.
    """
    for ahead in (len(source) // 2, len(source) // 4):
        at = data.find(source[ahead : ahead + _ANCHOR], gap.start, gap.end)
        if at >= 0:
            return [_Walk(data, gap, source, Budget(0)).extended(at, ahead)]
    return []


def _surroundings(data: bytes, gap: Gap, source: bytes, budget: Budget) -> tuple[int, int]:
    """Return the part of the source to compare with: of a much longer one, the part around a piece of the stretch.

    Two pieces are searched for, because one may have been edited.
    """
    if gap.length < _SIZEABLE or len(source) < _MUCH_LONGER * gap.length:
        return 0, len(source)
    for ahead in (gap.length // 2, gap.length // 4):
        anchor = data[gap.start + ahead : gap.start + ahead + _ANCHOR]
        budget.spend(len(source))
        position = source.find(anchor)
        if position >= 0:
            first = position - ahead
            return max(0, first - _LEAST_WINDOW // 2), first + gap.length + _LEAST_WINDOW // 2
    return 0, len(source)


class _Walk:
    """Walks through two byte strings side by side. data[at:end] and source[start:stop] are still to be compared."""

    def __init__(self, data: bytes, gap: Gap, source: bytes, budget: Budget) -> None:
        self.data, self.at, self.end = data, gap.start, gap.end
        self.source, self.start, self.stop = source, 0, len(source)
        self.view = memoryview(source)
        self.last_length = 0  # of the last equal stretch: among similar records the next is often as long
        self.budget = budget

    def matches(self) -> Iterator[Match]:
        tail = self.same_before(self.end, self.stop)
        end, stop = self.end - tail, self.stop - tail
        match: Match | None = Match(self.at, self.start, self.same_from(self.at, self.start))
        while match:
            yield match
            self.at, self.start = match.at + match.length, match.start + match.length
            yield from self.replaced(end, stop)
            match = self.resumed(end, stop)
        # The last match may have run into the common tail; only the rest of that is a separate match.
        tail = min(tail, self.end - self.at, self.stop - self.start)
        yield Match(self.end - tail, self.stop - tail, tail)

    def replaced(self, end: int, stop: int) -> Iterator[Match]:
        """Yield the next matches, as long as each comes after a few bytes that were replaced by as many others.

        A match that is shorter than the bytes it skips is left to a search.
        """
        found = True
        while found and self.budget:
            at, start, found = self.at, self.start, False
            length = min(end - at, stop - start, _ABREAST)
            self.budget.spend(length)
            for same, after in _alike(self.data[at : at + length], self.source[start : start + length]):
                more = self.same_from(at + after, start + after) if after == length else 0
                yield Match(at + same, start + same, after - same + more)
                self.at, self.start, found = at + after + more, start + after + more, True

    def resumed(self, end: int, stop: int) -> Match | None:
        """Return the next match around an anchor before `end` and `stop`, or None.

        A match that skips more than it shares is doubtful: records of one shape agree in their shape wherever they are
        compared, while the record that is really the same one comes later.
        """
        best: Match | None = None
        patience = 0
        for ahead, at, start in self.positions(end, stop):
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

    def positions(self, end: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Yield the places of the other string that have an anchor of the one: its distance, and both positions."""
        shorter, longest = sorted((end - self.at, stop - self.start))
        if shorter < _ANCHOR:
            return  # the rest of one of the two is shorter than an anchor
        ahead = 0
        while ahead + _ANCHOR <= longest and self.budget:
            at, start = self.at + ahead, self.start + ahead
            window = min(max(_LEAST_WINDOW, _REACH * ahead), longest)
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
        """Return the longest match around a position at which the two agree."""
        before = self.same_before(at, start)
        return Match(at - before, start - before, before + self.same_from(at, start))

    def same_from(self, at: int, start: int) -> int:
        """Return how many bytes are the same from here on."""
        most, same = min(self.end - at, self.stop - start), self.last_length
        if same > most or not self.equal(at, start, same):
            same = 0
        self.last_length = self.measured(at, start, same, most, back=False)
        return self.last_length

    def same_before(self, at: int, start: int) -> int:
        """Return how many bytes are the same up to here."""
        return self.measured(at, start, 0, min(at - self.at, start - self.start), back=True)

    def measured(self, at: int, start: int, same: int, most: int, *, back: bool) -> int:
        """Return how many of `most` bytes are the same from here on (`back`: up to here), of which `same` are known."""
        ahead = -most if back else same
        if self.equal(at + ahead, start + ahead, most - same):
            return most  # usually all or few are the same, and an early difference is found early
        stride = _GALLOP
        while True:  # until a stretch differs
            length = min(stride, most - same)
            ahead = -same - length if back else same
            if not self.equal(at + ahead, start + ahead, length):
                return self.bisected(at, start, same, length, back=back)
            same += length
            stride *= _FASTER

    def bisected(self, at: int, start: int, same: int, length: int, *, back: bool) -> int:
        """Like `measured`, if the next `length` bytes are known not to be all the same."""
        while length > _NUMBER:
            half = length // 2
            ahead = -same - half if back else same
            if self.equal(at + ahead, start + ahead, half):
                same, half = same + half, length - half
            length = half
        ahead = -same - length if back else same
        mine = self.data[at + ahead : at + ahead + length]
        other = self.source[start + ahead : start + ahead + length]
        return same + _zeros(mine, other, "little" if back else "big")

    def equal(self, at: int, start: int, length: int) -> bool:
        """Whether the next `length` bytes are the same."""
        return self.data.startswith(self.view[start : start + length], at)


def _exclusive_or(mine: bytes, other: bytes) -> bytes:
    return (int.from_bytes(mine, "big") ^ int.from_bytes(other, "big")).to_bytes(len(mine), "big")


def _alike(mine: bytes, other: bytes) -> Iterator[tuple[int, int]]:
    """Yield the stretches (start, end) in which two strings of one length agree for longer than they differed."""
    length = len(mine)
    differing = _exclusive_or(mine, other)
    after, same = 0, differing.find(_ALIKE)
    while same >= 0:
        before, after = after, length - len(differing[same:].lstrip(b"\0"))
        if after - same < 2 * (same - before):
            break
        yield same, after
        same = differing.find(_ALIKE, after)


def _zeros(mine: bytes, other: bytes, order: Literal["big", "little"]) -> int:
    """Return how many of the highest bytes are equal, if the strings are read as numbers."""
    difference = int.from_bytes(mine, order) ^ int.from_bytes(other, order)
    return len(mine) - (difference.bit_length() + 7) // 8
