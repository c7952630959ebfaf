"""Manifests: a value as slices of stored segments and literals."""

from collections.abc import Mapping
from functools import cache, lru_cache
from struct import Struct
from typing import NamedTuple

from threadmark.errors import CorruptDataError
from threadmark.format.digests import KEY_SIZE
from threadmark.runtime.compiled import counterpart

MOST_SEGMENTS = 48
"""The most segments that a manifest may name."""

MOST_PARTS = 512
"""The most parts that a manifest may have."""

MOST_REPEATED = 4
"""A value is at most this many times as long as its segments and its literals together."""


class Slice(NamedTuple):
    """`length` bytes of a stored segment, from `start`. `size` is the length of the whole segment."""

    key: bytes
    size: int
    start: int
    length: int


Part = Slice | bytes
Manifest = tuple[Part, ...]


class Deduplicated(NamedTuple):
    """A value's packed manifest, and the segments that must be added for it, by key."""

    packed: bytes
    fresh: dict[bytes, bytes]
    manifest: Manifest | None = None
    """The manifest, if it was at hand, so that it need not be unpacked."""


def segment_keys(manifest: Manifest) -> tuple[bytes, ...]:
    """Return the keys of the segments that a manifest names, each once, in order of first appearance."""
    return tuple(dict.fromkeys(part.key for part in manifest if isinstance(part, Slice)))


_LITERAL, _LAST, _OTHER, _NUMBERED = range(4)
_LEFT, _IN_STEP, _MOVED, _WHOLE = range(4)
_RUN = _WHOLE << 2 | _NUMBERED

_LITERALS = -1
"""The index that stands for the packed bytes themselves, which hold the literals."""

_MORE = 0x80
"""The bit of a varint's byte that says that another follows."""

_WIDEST = 49
"""The position of the last seven bits that a reader accepts in a number. So it has 56 bits; sums have 63."""


def pack(manifest: Manifest) -> bytes:
    """Return the packed form of a manifest. Equal manifests give equal bytes."""
    sizes = {part[0]: part[1] for part in manifest if isinstance(part, Slice)}
    index_of = {key: index for index, key in enumerate(sizes)}
    packed = [bytes([len(sizes)]), *sizes, *map(_varint_of, sizes.values())]
    # The end of each segment's last slice, in the segment and in the value: the reader knows it, too. It is kept
    # in local names, here and in `_parts`, because both go through every part of a value with every put and get.
    left, left_at = [0] * len(sizes), [0] * len(sizes)
    position = used = run = 0  # `used` segments were seen so far; a run of whole ones is still to be written
    last = other = -1
    for part in manifest:
        if not isinstance(part, Slice):
            if run:
                packed.append(_varint_of(run << 4 | _RUN))
                run = 0
            packed += [_varint_of(len(part) << 4 | _LITERAL), part]
            position += len(part)
            continue
        key, size, start, length = part
        index = index_of[key]
        if length == size and index == used:
            run += 1
        else:
            if run:
                packed.append(_varint_of(run << 4 | _RUN))
                run = 0
            place = _LAST if index == last else _OTHER if index == other else _NUMBERED
            shift = start - left[index]
            way = _LEFT if not shift else _IN_STEP if shift == position - left_at[index] else _MOVED
            packed.append(_varint_of(length << 4 | way << 2 | place))
            if place == _NUMBERED:
                packed.append(_varint_of(index))
            if way == _MOVED:
                packed.append(_varint_of(shift << 1 if shift > 0 else ~shift << 1 | 1))
        position += length
        left[index], left_at[index] = start + length, position
        if index != last:
            last, other = index, last
            used += index == used
    if run:
        packed.append(_varint_of(run << 4 | _RUN))
    return b"".join(packed)


class Layout(NamedTuple):
    """A manifest as numbers, which is all that reading the value takes."""

    keys: tuple[bytes, ...]
    sizes: list[int]
    parts: list[tuple[int, int, int]]
    """For each part the index of its segment (-1 for the packed form itself), its start in that, and its length."""
    packed: bytes
    length: int
    """The length of the value."""

    def literals(self) -> int:
        """How many bytes of the value stand in the packed form itself."""
        return sum(length for index, _, length in self.parts if index == _LITERALS)


@counterpart("manifests.keys_in", is_whole=True)
def keys_in(packed: bytes) -> tuple[bytes, ...]:
    """Return the keys of the segments that a packed manifest names, in order. Raises IndexError if it is cut short."""
    count = packed[0]
    if count > MOST_SEGMENTS:
        raise CorruptDataError(f"a manifest lists {count} segments, where {MOST_SEGMENTS} are the most")
    if len(packed) <= count * KEY_SIZE:
        raise IndexError
    return _keys(count).unpack_from(packed, 1)


@cache
def _keys(count: int) -> Struct:
    return Struct(f"{KEY_SIZE}s" * count)


@counterpart("manifests.layout", is_whole=True)
def layout(packed: bytes) -> Layout:
    """Return the segments and parts of a packed manifest. Raises CorruptDataError for bytes that cannot be one.

    Nothing is trusted: the result is limited by the length of the bytes, not by the numbers in them.
    """
    try:
        keys = keys_in(packed)
        at = 1 + len(keys) * KEY_SIZE
        sizes = []
        for _ in keys:
            size, at = _varint(packed, at)
            sizes.append(size)
        parts, used, length = _parts(packed, at, sizes)
    except IndexError:
        raise CorruptDataError("a manifest is cut short") from None
    if used < len(keys) or len(set(keys)) < len(keys) or 0 in sizes:
        raise CorruptDataError("a manifest lists segments that it does not use, or an empty one, or one twice")
    return Layout(keys, sizes, parts, packed, length)


def unpack(packed: bytes) -> Manifest:
    """Return the manifest whose packed form this is."""
    found = layout(packed)
    keys, sizes = found.keys, found.sizes
    return tuple(
        packed[start : start + length] if index == _LITERALS else Slice(keys[index], sizes[index], start, length)
        for index, start, length in found.parts
    )


@counterpart("manifests.join", is_whole=True)
def join(manifest: Layout, segments: Mapping[bytes, bytes]) -> bytes:
    """Return the bytes of the value. Raises CorruptDataError if a segment is missing or has the wrong length."""
    held = []
    for key, size in zip(manifest.keys, manifest.sizes, strict=True):
        segment = segments.get(key)
        if segment is None:
            raise CorruptDataError(f"segment {key.hex()} is missing")
        if len(segment) != size:
            raise CorruptDataError(f"segment {key.hex()} has {len(segment)} bytes where {size} were stored")
        held.append(segment)
    held.append(manifest.packed)  # the last, which the index of literals means
    return b"".join([held[index][start : start + length] for index, start, length in manifest.parts])


@lru_cache(4096)  # a put repeats most of the numbers of the one before
def _varint_of(number: int) -> bytes:
    spelled = bytearray()
    while number >= _MORE:
        spelled.append(number % _MORE | _MORE)
        number >>= 7
    spelled.append(number)
    return bytes(spelled)


def _parts(  # noqa: C901, PLR0912 - one loop, because a call for each part would take longer than the rest
    packed: bytes, at: int, sizes: list[int]
) -> tuple[list[tuple[int, int, int]], int, int]:
    """The parts, which are all that follows, how many segments they use, and how long they are together."""
    parts: list[tuple[int, int, int]] = []
    left, left_at = [0] * len(sizes), [0] * len(sizes)
    position = used = 0
    last = other = -1
    while at < len(packed):
        head, at = _varint(packed, at)
        amount, way, place = head >> 4, head >> 2 & 3, head & 3
        if not amount:
            raise CorruptDataError("a manifest has an empty part")
        if place == _LITERAL:
            if way or amount > len(packed) - at:
                raise CorruptDataError("a manifest's literal is damaged")
            parts.append((_LITERALS, at, amount))
            at += amount
            position += amount
        elif way == _WHOLE:
            if place != _NUMBERED or amount > len(sizes) - used:
                raise CorruptDataError("a manifest names segments that it does not list")
            for index in range(used, used + amount):
                length = left[index] = sizes[index]
                position += length
                left_at[index] = position
                parts.append((index, 0, length))
                last, other = index, last
            used += amount
        else:
            if place == _NUMBERED:
                index, at = _varint(packed, at)
            else:
                index = last if place == _LAST else other
            if not 0 <= index <= used or index == len(sizes):
                raise CorruptDataError("a manifest names a segment that it does not list")
            start = left[index]
            if way == _IN_STEP:
                start += position - left_at[index]
            elif way == _MOVED:
                shift, at = _varint(packed, at)
                start += ~(shift >> 1) if shift & 1 else shift >> 1
            end = start + amount
            if not 0 <= start < end <= sizes[index]:
                raise CorruptDataError("a manifest's slice is not inside its segment")
            parts.append((index, start, amount))
            position += amount
            left[index], left_at[index] = end, position
            if index != last:
                last, other = index, last
                used += index == used
        if len(parts) > MOST_PARTS:
            raise CorruptDataError(f"a manifest has more than {MOST_PARTS} parts")
    return parts, used, position


def _varint(packed: bytes, at: int) -> tuple[int, int]:
    """Read a number. Returns it, and the position after it."""
    byte = packed[at]
    at += 1
    if byte < _MORE:
        return byte, at
    number, shift = byte - _MORE, 7
    while (byte := packed[at]) >= _MORE:
        number |= byte - _MORE << shift
        shift += 7
        at += 1
        if shift > _WIDEST:
            raise CorruptDataError("a manifest holds a number that is too large")
    return number | byte << shift, at + 1
