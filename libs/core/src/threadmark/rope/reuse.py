"""Which stored slices make up a value: what it shares with its sources, read through their manifests.

Here the bytes that no slice covers are slices too, of the value itself, under the key RAW. So a value is one
list of slices, whatever becomes of them, and two that continue each other are one.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from threadmark.digests import Proof
from threadmark.rope.manifest import Manifest, Slice
from threadmark.rope.match import Budget, Gap, Match, matches, stretch
from threadmark.rope.packed import pack, unpack

RAW = b""

_WORTH = 64  # bytes; a shorter stretch is worth neither a further search nor the name of a further segment
_MOVED = 32  # a stretch of one in so many bytes, or more, is worth another search of the whole first source
_SMALL = 2048  # except in values shorter than this


class Source:
    """An encoding that the thread stores already, with its manifest, which is unpacked when somebody asks for it."""

    __slots__ = ("_manifest", "_packed", "_ruler", "data", "proof")

    def __init__(
        self, data: bytes, manifest: Manifest | None = None, *, packed: bytes = b"", proof: Proof | None = None
    ) -> None:
        self.data = data
        self.proof = proof  # of the data, where somebody has it: it makes that of a value that resembles this one cheap
        self._manifest = manifest
        self._packed = packed
        self._ruler: _Ruler | None = None

    @property
    def manifest(self) -> Manifest:
        """The slices that make up the data."""
        if self._manifest is None:
            self._manifest = unpack(self._packed)
        return self._manifest

    @property
    def packed(self) -> bytes:
        """The manifest's stored form."""
        return self._packed or pack(self.manifest)

    def slices(self, match: Match, total: int) -> list[Slice]:
        """What the matched bytes of a value with `total` bytes are made of."""
        if self._ruler is None:
            self._ruler = _Ruler(self.manifest)
        return self._ruler.slices(match, total)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and (self.data, self.manifest) == (other.data, other.manifest)

    def __hash__(self) -> int:
        return hash(self.data)


def reused(data: bytes, sources: Sequence[Source]) -> list[Slice]:
    """The value as slices of what its sources (one at least) are made of, and raw between them."""
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
    """The same value with the chosen slices raw."""
    total = sum(piece.length for piece in slices)
    starts = accumulate((piece.length for piece in slices), initial=0)
    made: list[Slice] = []
    for at, piece, raw in zip(starts, slices, chosen, strict=False):
        _add(made, [Slice(RAW, total, at, piece.length) if raw else piece])
    return made


def _add(slices: list[Slice], more: list[Slice]) -> None:
    """Append slices of which at most the first continues the last one there is."""
    if slices:
        (key, size, begin, length), first = slices[-1], more[0]
        if first.key == key and first.start == begin + length:
            slices[-1] = Slice(key, size, begin, length + first.length)
            more = more[1:]
    slices += more


def _found(data: bytes, sources: Sequence[Source]) -> list[tuple[Match, int]]:
    """Disjoint matches in ascending order, each with the number of its source."""
    whole = Gap(0, len(data))
    edited = matches(data, whole, sources[0].data, Budget(4 * len(data) + (1 << 20)))
    found = [(match, 0) for match in edited]
    gaps = [gap for gap in whole.without(edited) if gap.length >= _WORTH]
    for number, source in enumerate(sources[1:], start=1):
        gaps = _filled(gaps, data, number, source.data, found)
    moved = [gap for gap in gaps if max(gap.length, _SMALL) < len(data) <= gap.length * _MOVED]
    _filled(moved, data, 0, sources[0].data, found)
    return sorted(found)


def _filled(gaps: list[Gap], data: bytes, number: int, source: bytes, found: list[tuple[Match, int]]) -> list[Gap]:
    """Add to `found` what a source has of the gaps. Returns the remaining gaps."""
    budget = Budget(2 * len(data) + (1 << 16))
    rest: list[Gap] = []
    for gap in gaps:
        shared = stretch(data, gap, source) if len(source) < _SMALL else matches(data, gap, source, budget)
        worthy = [match for match in shared if match.length >= _WORTH]
        found += ((match, number) for match in worthy)
        rest += (gap for gap in gap.without(worthy) if gap.length >= _WORTH)
    return rest


class _Ruler:
    """Where the parts of a manifest stand in the value that it makes."""

    __slots__ = ("literals", "parts", "starts")

    def __init__(self, manifest: Manifest) -> None:
        lengths = [len(part) if isinstance(part, bytes) else part.length for part in manifest]
        self.parts = manifest
        # Tuples, because it is kept with its source, and the garbage collector looks at a list again and again.
        self.literals = tuple([index for index, part in enumerate(manifest) if isinstance(part, bytes)])
        self.starts = tuple(accumulate(lengths, initial=0))

    def slices(self, match: Match, total: int) -> list[Slice]:
        """What the matched bytes are made of. A literal is raw again: it is stored in that manifest alone."""
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
