"""Finding what two byte strings share, at the speed of C: no loop here runs over bytes.

Equal stretches are measured by comparing slices of doubling length, then by bisection. Where the two part, anchors
(short pieces) of either are looked for in the other with `find`, ever further ahead and in ever wider windows, so
that a small edit costs a small search. A budget bounds the whole, whatever the bytes are.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

_ANCHOR = 32  # bytes that must agree before a place is looked at: shorter ones meet by chance in any structure
_LEAST = 16  # a shorter match is not worth a slice
_NEAR = 4096  # the smallest window: an edit usually leaves its surroundings where they were
_REACH = 64  # a window is this much wider than the distance ahead of the anchor that is looked for
_STRIDE = 16  # how far ahead the second anchor lies; the distances then grow by half
_PATIENCE = 8  # a match that skips more than it shares must stand until the search is so many times further ahead
_ANCHORS = 3000  # tried in one source at most: each costs a microsecond even where it is found at once
_GALLOP = 64  # the first stretch compared
_LONGEST = 1 << 16  # and the longest: a difference inside it is bisected


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
        return self.end - self.start

    def without(self, matches: Iterable[Match]) -> Iterator["Gap"]:
        """What matches inside the gap leave of it, empty rests included."""
        start = self.start
        for match in matches:
            yield Gap(start, match.at)
            start = match.at + match.length
        yield Gap(start, self.end)


class Budget:
    """What a search may still spend: bytes looked at, and distances tried."""

    def __init__(self, scan: int) -> None:
        self.scan = scan
        self.anchors = _ANCHORS

    def __bool__(self) -> bool:
        return self.scan > 0 and self.anchors > 0

    def spend(self, scanned: int) -> None:
        """Account for one distance, at which anchors were looked for in so many bytes."""
        self.scan -= scanned
        self.anchors -= 1


def matches(data: bytes, gap: Gap, source: bytes, budget: Budget, near: int = 0) -> list[Match]:
    """What a stretch of `data` shares with `source`, in ascending order and disjoint in both.

    `near` widens the search: anchors are looked for at least so far from where the two part.
    """
    walk = _Walk(data, gap, source, budget, near)
    return [match for match in walk.matches() if match.length >= _LEAST]


class _Walk:
    """Two byte strings walked side by side: data[at:end] and source[start:stop] are still to be compared."""

    def __init__(self, data: bytes, gap: Gap, source: bytes, budget: Budget, near: int) -> None:
        self.data, self.at, self.end = data, gap.start, gap.end
        self.source, self.start, self.stop = source, 0, len(source)
        self.budget, self.near = budget, max(near, _NEAR)

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
        """The next match, found in what stands before the common tail."""
        best: Match | None = None
        patience = 0
        for at, start, ahead in self.places(end, stop):
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
        """Where the two may agree again: anchors of either, found further on in the other."""
        longest = max(end - self.at, stop - self.start)
        ahead = 0
        while ahead + _ANCHOR <= longest and self.budget:
            at, start = self.at + ahead, self.start + ahead
            window = min(max(self.near, _REACH * ahead), longest)
            self.budget.spend(window)
            if start + _ANCHOR <= stop:
                anchor = self.source[start : start + _ANCHOR]
                found = self.data.find(anchor, self.at, min(end, self.at + window))
                if found >= 0:
                    yield found, start, ahead
            if at + _ANCHOR <= end:
                anchor = self.data[at : at + _ANCHOR]
                found = self.source.find(anchor, self.start, min(stop, self.start + window))
                if found >= 0:
                    yield at, found, ahead
            ahead += ahead//2 + _STRIDE

    def extended(self, at: int, start: int) -> Match:
        """The longest match around a place where the two agree."""
        before = self.same_before(at, start)
        return Match(at - before, start - before, before + self.same_from(at, start))

    def same_from(self, at: int, start: int) -> int:
        """How many bytes from here on are the same."""
        data, source = self.data, self.source
        return _measured(
            min(self.end - at, self.stop - start),
            lambda same, more: data.startswith(source[start + same : start + same + more], at + same),
        )

    def same_before(self, at: int, start: int) -> int:
        """How many bytes up to here are the same."""
        data, source = self.data, self.source
        return _measured(
            min(at - self.at, start - self.start),
            lambda same, more: data.endswith(source[start - same - more : start - same], 0, at - same),
        )


def _measured(most: int, equal: Callable[[int, int], bool]) -> int:
    """How many bytes are the same, where `equal(same, more)` tells it of the `more` bytes after the first `same`."""
    same, stride = 0, _GALLOP
    while same < most and equal(same, min(stride, most - same)):
        same += min(stride, most - same)
        stride = min(2 * stride, _LONGEST)
    while stride > 1 and same < most:
        stride //= 2
        if equal(same, min(stride, most - same)):
            same += min(stride, most - same)
    return same
