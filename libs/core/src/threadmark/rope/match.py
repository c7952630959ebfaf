"""Finding what two byte strings share, at the speed of C: no loop here runs over bytes.

Equal stretches are measured by comparing slices of doubling length, then by bisection. Where the two part, anchors
(short pieces) of either are looked for in the other with `find`, ever further ahead and in ever wider windows, so
that a small edit costs a small search. A budget bounds the whole, whatever the bytes are.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

_ANCHOR = 32  # bytes that must agree before a place is looked at: shorter ones meet by chance in any structure
_LEAST = 16  # a shorter match is not worth a slice
_NEAR = 4096  # the smallest window: an edit usually leaves its surroundings where they were
_REACH = 16  # a window is this much wider than the distance ahead of the anchor that is looked for
_STRIDE = 16  # how far ahead the second anchor lies; the distances then grow by half
_ENOUGH = 4  # a match is taken at once if it skips at most this many times its own length
_ANCHORS = 3000  # tried in one source at most: each costs a microsecond even where it is found at once
_GALLOP = 64  # the first stretch compared
_LONGEST = 1 << 16  # and the longest: a difference inside it is bisected


class Gap(NamedTuple):
    """data[start:end], of which nothing is known yet."""

    start: int
    end: int


class Match(NamedTuple):
    """data[at:][:length] equals source[start:][:length]."""

    at: int
    start: int
    length: int


class Budget:
    """What a search may still spend: bytes looked at, and anchors tried."""

    def __init__(self, scan: int) -> None:
        self.scan = scan
        self.anchors = _ANCHORS

    def __bool__(self) -> bool:
        return self.scan > 0 and self.anchors > 0

    def spend(self, scanned: int) -> None:
        """Account for one anchor that was looked for in so many bytes."""
        self.scan -= scanned
        self.anchors -= 1


def matches(data: bytes, gap: Gap, source: bytes, budget: Budget, near: int = _NEAR) -> list[Match]:
    """What a stretch of `data` shares with `source`, in ascending order and disjoint in both.

    `near` is the window that even the nearest anchors are looked for in.
    """
    walk = _Walk(data, gap, source, budget, near)
    return [match for match in walk.matches() if match.length >= _LEAST]


def gaps(gap: Gap, found: list[Match], least: int) -> list[Gap]:
    """The stretches of at least so many bytes that matches inside a gap leave open."""
    edges = [gap.start]
    for match in found:
        edges += match.at, match.at + match.length
    edges.append(gap.end)
    return [Gap(*edge) for edge in zip(edges[::2], edges[1::2], strict=True) if edge[1] - edge[0] >= least]


class _Walk:
    """Two byte strings walked side by side: data[at:end] and source[start:stop] are still to be compared."""

    def __init__(self, data: bytes, gap: Gap, source: bytes, budget: Budget, near: int) -> None:
        self.data, self.at, self.end = data, gap.start, gap.end
        self.source, self.start, self.stop = source, 0, len(source)
        self.budget, self.near = budget, near

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
        ahead = 0
        furthest = max(end - self.at, stop - self.start) - _ANCHOR
        while ahead <= furthest and self.budget:
            window = max(self.near, _REACH * ahead)
            for look in (self.inserted, self.removed):
                match = look(ahead, window, end, stop)
                if match and (best is None or match.length > best.length):
                    best = match
                    if match.at - self.at + match.start - self.start <= _ENOUGH * match.length:
                        return match
            ahead += ahead // 2 + _STRIDE
        return best

    def inserted(self, ahead: int, window: int, end: int, stop: int) -> Match | None:
        """A match through an anchor of the source, found further on in the data."""
        start = self.start + ahead
        if start + _ANCHOR > stop:
            return None
        end = min(end, self.at + window)
        at = self.data.find(self.source[start : start + _ANCHOR], self.at, end)
        self.budget.spend((end if at < 0 else at) - self.at)
        return None if at < 0 else self.extended(at, start)

    def removed(self, ahead: int, window: int, end: int, stop: int) -> Match | None:
        """A match through an anchor of the data, found further on in the source."""
        at = self.at + ahead
        if at + _ANCHOR > end:
            return None
        stop = min(stop, self.start + window)
        start = self.source.find(self.data[at : at + _ANCHOR], self.start, stop)
        self.budget.spend((stop if start < 0 else start) - self.start)
        return None if start < 0 else self.extended(at, start)

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
