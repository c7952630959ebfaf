"""Which stored slices make up a value: the matches with its sources, read through the sources' manifests.

Here the bytes that no slice covers are slices too, of the value itself, under the key RAW. So a value is one list of
slices, whatever becomes of them, and what stands side by side in a segment, or in the value, is one slice.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from threadmark.rope.manifest import Manifest, Slice
from threadmark.rope.match import Budget, Gap, Match, matches

RAW = b""

_WL = 64
_GAP = 48  # a shorter stretch is not looked for in further sources
_MOVED = 32  # a stretch this many times shorter than the value, or longer, is looked for in the first source twice
_PASSES = 4  # over the value, that a search in one source may cost,
_FAR = 64  # or over what is still open, if that is less
_NEAR = 16


class Source(NamedTuple):
    """An encoding that the thread stores already."""

    data: bytes
    manifest: Manifest


def reused(data: bytes, sources: Sequence[Source]) -> list[Slice]:
    """The value as slices of what its sources are made of, and raw between them."""
    slices: list[Slice] = []
    at = 0
    layouts = [_Layout(source.manifest) for source in sources]
    for match, number in _found(data, sources):
        if match.at > at:
            slices.append(Slice(RAW, len(data), at, match.at - at))
        slices += layouts[number].slices(match, len(data))
        at = match.at + match.length
    if at < len(data):
        slices.append(Slice(RAW, len(data), at, len(data) - at))
    return coalesced(slices)


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
    found: list[tuple[Match, int]] = []
    gaps = [Gap(0, len(data))]
    for number, source in enumerate(sources):
        gaps = _fill(gaps, found, data, number, source.data, wide=number > 0)
    if found:
        large = [gap for gap in gaps if gap.length * _MOVED >= len(data)]
        _fill(large, found, data, 0, sources[0].data, wide=True)
    return sorted(found)


def _fill(
    gaps: list[Gap], found: list[tuple[Match, int]], data: bytes, number: int, source: bytes, *, wide: bool
) -> list[Gap]:
    """Add to `found` what a source has of the gaps; returns the gaps that stay."""
    wanted = sum(gap.length for gap in gaps)
    budget = Budget(min(_FAR * wanted, 2*len(data)) + (1<<16) if wide else _PASSES * wanted + (1<<20))
    still: list[Gap] = []
    for gap in gaps:
        matched = matches(data, gap, source, budget, near=_NEAR * gap.length if wide else 0)
        if wide: matched = [m for m in matched if m.length >= _WL]
        found += ((match, number) for match in matched)
        still += (rest for rest in gap.without(matched) if rest.length >= _GAP)
    return still


class _Layout:
    """Where the parts of a manifest stand in the value it makes."""

    def __init__(self, manifest: Manifest) -> None:
        lengths = (part.length if isinstance(part, Slice) else len(part) for part in manifest)
        self.manifest = manifest
        self.starts = list(accumulate(lengths, initial=0))

    def slices(self, match: Match, total: int) -> Iterator[Slice]:
        """What the matched bytes are made of; literals are raw bytes of the new value."""
        at, start, length = match
        shift, end = at - start, start + length
        for index in range(bisect_right(self.starts, start) - 1, len(self.manifest)):
            begin, stop = max(start, self.starts[index]), min(end, self.starts[index + 1])
            if begin >= stop:
                break
            part = self.manifest[index]
            if not isinstance(part, Slice):
                yield Slice(RAW, total, begin + shift, stop - begin)
            elif stop - begin == part.length:
                yield part
            else:
                yield Slice(part.key, part.size, part.start + begin - self.starts[index], stop - begin)
