"""What a put stores of a value: slices of what the thread holds already, and one new segment at most."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from threadmark.rope.manifest import Manifest, Part, Slice, segment_key
from threadmark.rope.reuse import RAW, Source, reused
from threadmark.rope.tidy import MOST_LITERAL, raw_length, tidied

_SHORT = 24  # so many raw bytes stay literals even beside a new segment: the shortest pieces, mostly counts


class Woven(NamedTuple):
    """A value's manifest, and by key the segments that must be added for it."""

    manifest: Manifest
    fresh: dict[bytes, bytes]


def weave(
    data: bytes, sources: Sequence[Source], key: Callable[[bytes], bytes] = segment_key
) -> Woven:
    """Express a value by what its sources are made of.

    The first source should be what the value most likely came from; the further ones fill the gaps. A manifest
    names at most 48 segments, which together are at most 1 KiB longer than twice the value, in at most 512 parts.
    """
    if len(data) <= MOST_LITERAL:
        return Woven((data,) if data else (), {})
    return _laid(data, tidied(reused(data, sources)), key)


def _laid(data: bytes, slices: list[Slice], key: Callable[[bytes], bytes]) -> Woven:
    """Raw bytes as literals where they are few, else gathered in a new segment."""
    shortest = _shortest_gathered(slices)
    gathered = b"".join(
        data[start : start + length] for owner, _, start, length in slices if owner == RAW and length >= shortest
    )
    name = key(gathered) if gathered else RAW
    manifest: list[Part] = []
    laid = 0
    for piece in slices:
        if piece.key != RAW:
            manifest.append(piece)
        elif piece.length < shortest:
            manifest.append(data[piece.start : piece.start + piece.length])
        else:
            manifest.append(Slice(name, len(gathered), laid, piece.length))
            laid += piece.length
    return Woven(tuple(manifest), {name: gathered} if gathered else {})


def _shortest_gathered(slices: list[Slice]) -> int:
    raw = sorted(piece.length for piece in slices if piece.key == RAW)
    total = sum(raw)
    if total <= MOST_LITERAL:
        return MOST_LITERAL + 1
    kept = _SHORT
    for length in raw:
        kept -= length
        if kept < 0:
            return length
