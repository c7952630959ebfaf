"""Which stored slices make up a value: what it shares with its sources, read through their manifests.

Here the bytes that no slice covers are slices too, of the value itself, under the key RAW. So a value is one
list of slices, whatever becomes of them, and two that continue each other are one.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from threadmark.rope.manifest import Manifest, Slice
from threadmark.rope.match import Budget, Gap, Match, matches
from threadmark.rope.packed import pack, unpack

RAW = b""

_WORTH = 64  # bytes; a shorter stretch is worth neither a further search nor the name of a further segment
_MOVED = 32  # a stretch of one in so many bytes, or more, is worth another search of the whole first source
_SMALL = 2048  # except in values shorter than this


class Source:
    """An encoding that the thread stores already, with its manifest, which is unpacked when somebody asks for it."""

    __slots__ = ("_manifest", "_packed", "data")

    def __init__(self, data: bytes, manifest: Manifest | None = None, *, packed: bytes = b"") -> None:
        self.data = data
        self._manifest = manifest
        self._packed = packed

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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and (self.data, self.manifest) == (other.data, other.manifest)

    def __hash__(self) -> int:
        return hash(self.data)


def reused(data: bytes, sources: Sequence[Source]) -> list[Slice]:
    """The value as slices of what its sources are made of, and raw between them."""
    slices: list[Slice] = []
    layouts: dict[int, _Layout] = {}
    at = 0
    for match, number in _found(data, sources):
        if number not in layouts:
            layouts[number] = _Layout(sources[number].manifest)
        slices.append(Slice(RAW, len(data), at, match.at - at))
        slices += layouts[number].slices(match, len(data))
        at = match.at + match.length
    slices.append(Slice(RAW, len(data), at, len(data) - at))
    return coalesced(piece for piece in slices if piece.length)


def made_raw(slices: list[Slice], chosen: Iterable[bool]) -> list[Slice]:
    """The same value with the chosen slices raw."""
    total = sum(piece.length for piece in slices)
    starts = accumulate((piece.length for piece in slices), initial=0)
    return coalesced(
        Slice(RAW, total, at, piece.length) if raw else piece
        for at, piece, raw in zip(starts, slices, chosen, strict=False)
    )


def coalesced(slices: Iterable[Slice]) -> list[Slice]:
    """The same value with neighbours joined that continue each other."""
    joined: list[Slice] = []
    key, end = None, 0
    for piece in slices:
        if piece.start == end and piece.key == key:
            joined[-1] = joined[-1]._replace(length=joined[-1].length + piece.length)
        else:
            joined.append(piece)
            key = piece.key
        end = piece.start + piece.length
    return joined


def _found(data: bytes, sources: Sequence[Source]) -> list[tuple[Match, int]]:
    """Disjoint matches in ascending order, each with the number of its source."""
    if not sources:
        return []
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
    """Adds to `found` what a source has of the gaps; returns the gaps that stay."""
    budget = Budget(2 * len(data) + (1 << 16))
    rest: list[Gap] = []
    for gap in gaps:
        worthy = [match for match in matches(data, gap, source, budget) if match.length >= _WORTH]
        found += ((match, number) for match in worthy)
        rest += (gap for gap in gap.without(worthy) if gap.length >= _WORTH)
    return rest


class _Layout:
    """Where the parts of a manifest stand in the value that it makes."""

    def __init__(self, manifest: Manifest) -> None:
        lengths = (part.length if isinstance(part, Slice) else len(part) for part in manifest)
        self.parts = manifest
        self.starts = list(accumulate(lengths, initial=0))

    def slices(self, match: Match, total: int) -> Iterator[Slice]:
        """What the matched bytes are made of. A literal is raw again: it is stored in that manifest alone."""
        ahead = match.at - match.start
        end = match.start + match.length
        for index in range(bisect_right(self.starts, match.start) - 1, len(self.parts)):
            first, last = max(match.start, self.starts[index]), min(end, self.starts[index + 1])
            if first >= last:
                break
            part = self.parts[index]
            if not isinstance(part, Slice):
                yield Slice(RAW, total, first + ahead, last - first)
            elif last - first == part.length:
                yield part
            else:
                yield Slice(part.key, part.size, part.start + first - self.starts[index], last - first)
