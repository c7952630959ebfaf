"""Finding the stored slices that make up a value: the bytes it shares with its sources, by their manifests.

Bytes that are not stored yet are slices here as well, of the value itself, with the key RAW. So a value is one list of
slices, in which two that continue each other are joined.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from threadmark.format.digests import Proof
from threadmark.format.rope.match import Budget, Gap, Match, abreast, matches, stretch
from threadmark.format.rope.packed import Manifest, Slice, unpack

RAW = b""
"""The key of slices of the value itself."""

_WORTH = 64
"""Fewer bytes are worth neither another search nor naming another segment."""

_MOVED = 32
"""A gap of at least one part in this many of the value is worth another search of the whole first source."""

_SHIFTED = 256
"""A gap of this many bytes in a value of the same length is searched for bytes that were only shifted."""

_SMALL = 2048
"""But not in values shorter than this. Shorter sources are searched for as a whole."""


class Source:
    """An encoding that the thread stores already, with its packed manifest: empty if no segment holds any of it.

    The manifest itself is unpacked when it is first needed, unless it was at hand.
    """

    __slots__ = ("_manifest", "_positions", "data", "packed", "proof")

    def __init__(
        self, data: bytes, packed: bytes = b"", manifest: Manifest | None = None, *, proof: Proof | None = None
    ) -> None:
        self.data = data
        self.packed = packed
        self.proof = proof  # of the data, if it is known, which makes proving a similar value cheap
        self._manifest = manifest
        self._positions: _Positions | None = None

    @property
    def manifest(self) -> Manifest:
        """The slices and literals that make up the data."""
        if self._manifest is None:
            literal = (self.data,) if self.data else ()
            self._manifest = unpack(self.packed) if self.packed else literal
        return self._manifest

    def slices(self, match: Match, total: int) -> list[Slice]:
        """Return the slices that make up the matched bytes of a value of `total` bytes."""
        if self._positions is None:
            self._positions = _Positions(self.manifest, len(self.data))
        return self._positions.slices(match, total)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and (self.data, self.packed) == (other.data, other.packed)

    def __hash__(self) -> int:
        return hash(self.data)


def reused(data: bytes, sources: Sequence[Source]) -> list[Slice]:
    """Return the value as slices of the segments of its sources (at least one), and raw slices between them."""
    slices: list[Slice] = []
    total, at = len(data), 0
    for match, number in _found(data, sources):
        if match.at > at:
            _add(slices, [Slice(RAW, total, at, match.at - at)])
        _add(slices, sources[number].slices(match, total))
        at = match.at + match.length
    if at < total:
        _add(slices, [Slice(RAW, total, at, total - at)])
    return slices


def made_raw(slices: list[Slice], chosen: Iterable[bool]) -> list[Slice]:
    """Return the slices of the same value with the chosen ones raw."""
    total = sum(piece.length for piece in slices)
    starts = accumulate((piece.length for piece in slices), initial=0)
    made: list[Slice] = []
    for at, piece, raw in zip(starts, slices, chosen, strict=False):
        _add(made, [Slice(RAW, total, at, piece.length) if raw else piece])
    return made


def _add(slices: list[Slice], more: list[Slice]) -> None:
    """Append slices. If the first of them continues the last slice there is, the two are joined."""
    if slices:
        (key, size, begin, length), first = slices[-1], more[0]
        if first.key == key and first.start == begin + length:
            slices[-1] = Slice(key, size, begin, length + first.length)
            more = more[1:]
    slices += more


def _found(data: bytes, sources: Sequence[Source]) -> list[tuple[Match, int]]:
    """Return disjoint matches in ascending order, each with the number of its source."""
    whole = Gap(0, len(data))
    edited = _edited(data, whole, sources[0].data)
    found = [(match, 0) for match in edited]
    gaps = [gap for gap in whole.without(edited) if gap.length >= _WORTH]
    for number, source in enumerate(sources[1:], start=1):
        if not gaps:
            break
        gaps = _filled(gaps, data, number, source.data, found)
    moved = [gap for gap in gaps if max(gap.length, _SMALL) < len(data) <= gap.length * _MOVED]
    _filled(moved, data, 0, sources[0].data, found)
    return sorted(found)


def _edited(data: bytes, whole: Gap, source: bytes) -> list[Match]:
    """Return the matches of a value with its most likely origin, in ascending order in both."""
    budget = Budget(4 * len(data) + (1 << 20))
    if len(data) != len(source):
        return matches(data, whole, source, budget)
    edited = abreast(data, source)
    for gap in [gap for gap in whole.without(edited) if gap.length >= _SHIFTED]:
        moved = matches(data, gap, source[gap.start : gap.end], budget)
        edited += [Match(at, start + gap.start, length) for at, start, length in moved]
    return sorted(edited)


def _filled(gaps: list[Gap], data: bytes, number: int, source: bytes, found: list[tuple[Match, int]]) -> list[Gap]:
    """Add the matches of a source with the gaps to `found`. Returns the remaining gaps."""
    budget = Budget(2 * len(data) + (1 << 16))
    rest: list[Gap] = []
    for gap in gaps:
        shared = stretch(data, gap, source) if len(source) < _SMALL else matches(data, gap, source, budget)
        worthy = [match for match in shared if match.length >= _WORTH]
        found += ((match, number) for match in worthy)
        rest += (gap for gap in gap.without(worthy) if gap.length >= _WORTH)
    return rest


class _Positions:
    """The positions of a manifest's parts in its value."""

    __slots__ = ("literals", "parts", "starts")

    def __init__(self, manifest: Manifest, total: int) -> None:
        lengths = [len(part) if isinstance(part, bytes) else part.length for part in manifest]
        self.parts = manifest
        # Tuples, because this is kept with its source, and the garbage collector would look at a list again and again.
        self.literals = tuple([index for index, part in enumerate(manifest) if isinstance(part, bytes)])
        self.starts = tuple(accumulate(lengths, initial=0))
        if self.starts[-1] != total:
            raise ValueError(f"a source of {total} bytes has a manifest of {self.starts[-1]}")

    def slices(self, match: Match, total: int) -> list[Slice]:
        """Return the slices that make up the matched bytes. Literals become raw, as nothing else holds them."""
        at, start, length = match
        first = bisect_right(self.starts, start) - 1
        last = bisect_left(self.starts, start + length) - 1
        pieces: list[Any] = list(self.parts[first : last + 1])
        for index in self.literals[bisect_left(self.literals, first) : bisect_right(self.literals, last)]:
            begin = self.starts[index]
            pieces[index - first] = Slice(RAW, total, begin + at - start, self.starts[index + 1] - begin)
        before, after = start - self.starts[first], self.starts[last + 1] - start - length
        if after:
            key, size, begin, whole = pieces[-1]
            pieces[-1] = Slice(key, size, begin, whole - after)
        if before:
            key, size, begin, whole = pieces[0]
            pieces[0] = Slice(key, size, begin + before, whole - before)
        return pieces
