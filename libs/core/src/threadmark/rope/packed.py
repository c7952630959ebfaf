"""The packed form of a manifest, which is stored.

A varint is little-endian base 128; the high bit of a byte says that more follow.

    1 byte            n, the number of distinct segments
    n x 12 bytes      their keys, in the order in which the parts first name them
    n varints         their sizes
    until the end     the parts

A part starts with the varint `amount << 4 | start << 2 | place`:

    place  0          a literal of `amount` bytes, which follow
           1          a slice of the segment that the last slice was of
           2          a slice of the segment that was in use before that one
           3          a slice of the segment whose index follows as a varint
    start  0          where the segment was left (a segment not yet used: its beginning)
           1          in step: after as many bytes from there as the value has had since, as if some were replaced
           2          moved: the distance from where it was left follows as a zigzag varint
           3          (place 3 alone, no index) the next `amount` segments not yet used, each of them whole

An edited value alternates between an old segment and a newer one that holds the edits, so most slices need neither an
index nor a start. Segments that are used whole and in order need nothing but their keys and sizes.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import accumulate, repeat
from struct import Struct
from typing import NamedTuple

from threadmark.digests import KEY_SIZE
from threadmark.errors import CorruptDataError
from threadmark.rope.manifest import MOST_PARTS, MOST_SEGMENTS, Manifest, Slice

_LITERAL, _LAST, _OTHER, _NUMBERED = range(4)
_LEFT, _IN_STEP, _MOVED, _WHOLE = range(4)
_RUN = _WHOLE << 2 | _NUMBERED

_LITERALS = -1
"""The index that stands for the packed bytes themselves, where literals are."""

_MORE = 0x80
"""The bit of a varint's byte that says that another follows."""

_WIDEST = 63
"""Bits in the largest number that a reader accepts."""


def pack(manifest: Manifest) -> bytes:
    """Return the packed form of a manifest. Equal manifests give equal bytes."""
    sizes = {part[0]: part[1] for part in manifest if isinstance(part, Slice)}
    packed = bytearray([len(sizes)])
    packed += b"".join([*sizes, *map(_varint_of, sizes.values())])
    index_of = {key: index for index, key in enumerate(sizes)}
    trail = _Trail(len(sizes))
    run: list[int] = []  # the sizes of consecutive whole segments that are still to be written
    for part in manifest:
        if isinstance(part, bytes):
            run = _end_run(packed, trail, run)
            packed += _varint_of(len(part) << 4 | _LITERAL)
            packed += part
            trail.position += len(part)
            continue
        key, size, start, length = part
        index = index_of[key]
        if length == size and index == trail.used + len(run):
            run.append(size)
        else:
            run = _end_run(packed, trail, run)
            _put_slice(packed, trail, index, start, length)
            trail.follow(index, start, length)
    _end_run(packed, trail, run)
    return bytes(packed)


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


def layout(packed: bytes) -> Layout:
    """Return the segments and parts of a packed manifest. Raises CorruptDataError for bytes that cannot be one.

    Nothing is trusted: what is built is limited by the length of the bytes, not by the numbers in them.
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
    keys, sizes, parts, _, _ = layout(packed)
    return tuple(
        packed[start : start + length] if index == _LITERALS else Slice(keys[index], sizes[index], start, length)
        for index, start, length in parts
    )


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
    held.append(manifest.packed)  # the last, which is what the index of literals means
    return b"".join([held[index][start : start + length] for index, start, length in manifest.parts])


class _Trail:
    """Where the last slice of each segment ended. Writer and reader both know it, so it need not be written."""

    def __init__(self, segments: int) -> None:
        self.position = 0  # in the value
        self.used = 0  # the number of segments seen so far
        self.last = self.other = -1
        self.left = [0] * segments
        self.left_at = [0] * segments

    def in_step(self, index: int) -> int:
        return self.left[index] + self.position - self.left_at[index]

    def follow(self, index: int, start: int, length: int) -> None:
        self.position += length
        self.left[index] = start + length
        self.left_at[index] = self.position
        if index != self.last:
            self.last, self.other = index, self.last
        if index == self.used:
            self.used += 1

    def follow_whole(self, sizes: list[int]) -> None:
        """Like `follow`, for the next unused segments, each of them whole."""
        first, self.used = self.used, self.used + len(sizes)
        self.left[first : self.used] = sizes
        self.left_at[first : self.used] = ends = [self.position + so_far for so_far in accumulate(sizes)]
        self.position = ends[-1]
        self.last, self.other = self.used - 1, self.used - 2 if len(sizes) > 1 else self.last


def _end_run(packed: bytearray, trail: _Trail, run: list[int]) -> list[int]:
    """Write a run of whole segments, if there is one. Returns an empty run."""
    if not run:
        return run
    packed += _varint_of(len(run) << 4 | _RUN)
    trail.follow_whole(run)
    return []


def _put_slice(packed: bytearray, trail: _Trail, index: int, start: int, length: int) -> None:
    position = _LAST if index == trail.last else _OTHER if index == trail.other else _NUMBERED
    shift = start - trail.left[index]
    way = _LEFT if not shift else _IN_STEP if start == trail.in_step(index) else _MOVED
    packed += _varint_of(length << 4 | way << 2 | position)
    if position == _NUMBERED:
        packed += _varint_of(index)
    if way == _MOVED:
        packed += _varint_of(shift << 1 if shift > 0 else ~shift << 1 | 1)


@lru_cache(4096)  # a put repeats most of the numbers of the one before
def _varint_of(number: int) -> bytes:
    spelled = bytearray()
    while number >= _MORE:
        spelled.append(number % _MORE | _MORE)
        number >>= 7
    spelled.append(number)
    return bytes(spelled)


def _parts(packed: bytes, at: int, sizes: list[int]) -> tuple[list[tuple[int, int, int]], int, int]:
    """The parts, which are all that follows, how many segments they use, and how long they are together."""
    parts: list[tuple[int, int, int]] = []
    trail = _Trail(len(sizes))
    while at < len(packed):
        head, at = _varint(packed, at)
        amount, start, position = head >> 4, head >> 2 & 3, head & 3
        if not amount:
            raise CorruptDataError("a manifest has an empty part")
        if position == _LITERAL:
            if start or amount > len(packed) - at:
                raise CorruptDataError("a manifest's literal is damaged")
            parts.append((_LITERALS, at, amount))
            at += amount
            trail.position += amount
        elif start == _WHOLE:
            if position != _NUMBERED or amount > len(sizes) - trail.used:
                raise CorruptDataError("a manifest names segments that it does not list")
            first, end = trail.used, trail.used + amount
            parts += zip(range(first, end), repeat(0), sizes[first:end])
            trail.follow_whole(sizes[first:end])
        else:
            index, begin, at = _slice(packed, at, trail, position, start)
            if not 0 <= begin < begin + amount <= sizes[index]:
                raise CorruptDataError("a manifest's slice is not inside its segment")
            parts.append((index, begin, amount))
            trail.follow(index, begin, amount)
        if len(parts) > MOST_PARTS:
            raise CorruptDataError(f"a manifest has more than {MOST_PARTS} parts")
    return parts, trail.used, trail.position


def _slice(packed: bytes, at: int, trail: _Trail, position: int, start: int) -> tuple[int, int, int]:
    """Read a slice. Returns the index of its segment, its start in that, and the position after the slice."""
    if position == _NUMBERED:
        index, at = _varint(packed, at)
    else:
        index = trail.last if position == _LAST else trail.other
    if not 0 <= index <= trail.used or index == len(trail.left):
        raise CorruptDataError("a manifest names a segment that it does not list")
    if start == _IN_STEP:
        return index, trail.in_step(index), at
    begin = trail.left[index]
    if start == _MOVED:
        shift, at = _varint(packed, at)
        begin += ~(shift >> 1) if shift & 1 else shift >> 1
    return index, begin, at


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
