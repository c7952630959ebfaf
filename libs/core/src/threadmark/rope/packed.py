"""The stored form of a manifest.

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
           1          in step: as far on from there as the value has come since, as if bytes had been replaced
           2          moved: the distance from where it was left follows as a zigzag varint
           3          (place 3 alone, no index) the next `amount` segments not yet used, each of them whole

An edited value alternates between an old segment and a newer one that holds the edits, so most slices need
neither an index nor a start; and segments that are used whole and in order need nothing beside their keys and
sizes.
"""

from threadmark.errors import CorruptDataError
from threadmark.rope.manifest import KEY_SIZE, Manifest, Part, Slice

_LITERAL, _LAST, _OTHER, _NUMBERED = range(4)
_LEFT, _IN_STEP, _MOVED, _WHOLE = range(4)
_RUN = _WHOLE << 2 | _NUMBERED
_MORE = 0x80
_WIDEST = 63  # bits in the largest number that a reader accepts


def pack(manifest: Manifest) -> bytes:
    """The stored form of a manifest; equal manifests pack to equal bytes."""
    sizes = {part.key: part.size for part in manifest if isinstance(part, Slice)}
    packed = bytearray([len(sizes)])
    packed += b"".join(sizes)
    for size in sizes.values():
        _put_varint(packed, size)
    index_of = {key: index for index, key in enumerate(sizes)}
    trail = _Trail(len(sizes))
    run = 0
    for part in manifest:
        whole = isinstance(part, Slice) and part.length == part.size and index_of[part.key] == trail.used
        if run and not whole:
            _put_varint(packed, run << 4 | _RUN)
            run = 0
        if not isinstance(part, Slice):
            _put_varint(packed, len(part) << 4 | _LITERAL)
            packed += part
            trail.position += len(part)
            continue
        if whole:
            run += 1
        else:
            _put_slice(packed, trail, index_of[part.key], part)
        trail.follow(index_of[part.key], part.start, part.length)
    if run:
        _put_varint(packed, run << 4 | _RUN)
    return bytes(packed)


def unpack(packed: bytes) -> Manifest:
    """The manifest whose stored form this is; CorruptDataError for bytes that cannot be one."""
    try:
        return _Unpacking(packed).manifest()
    except IndexError:
        raise CorruptDataError("a manifest is cut short") from None


class _Trail:
    """Where each segment was left. Writer and reader both know it, so it need not be written."""

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


def _put_slice(packed: bytearray, trail: _Trail, index: int, part: Slice) -> None:
    place = _LAST if index == trail.last else _OTHER if index == trail.other else _NUMBERED
    shift = part.start - trail.left[index]
    start = _LEFT if not shift else _IN_STEP if part.start == trail.in_step(index) else _MOVED
    _put_varint(packed, part.length << 4 | start << 2 | place)
    if place == _NUMBERED:
        _put_varint(packed, index)
    if start == _MOVED:
        _put_varint(packed, shift << 1 if shift > 0 else ~shift << 1 | 1)


def _put_varint(packed: bytearray, number: int) -> None:
    if number < _MORE:  # most are
        packed.append(number)
        return
    while number >= _MORE:
        packed.append(number % _MORE | _MORE)
        number >>= 7
    packed.append(number)


class _Unpacking:
    """One pass over a packed manifest. It trusts nothing; the bytes it is given bound what it builds."""

    def __init__(self, packed: bytes) -> None:
        self.packed = packed
        self.at = 1 + packed[0] * KEY_SIZE
        self.keys = [packed[at : at + KEY_SIZE] for at in range(1, self.at, KEY_SIZE)]
        self.sizes = [self.varint() for _ in self.keys]
        self.trail = _Trail(len(self.keys))

    def manifest(self) -> Manifest:
        parts: list[Part] = []
        while self.at < len(self.packed):
            head = self.varint()
            amount, start, place = head >> 4, head >> 2 & 3, head & 3
            if not amount:
                raise CorruptDataError("a manifest has an empty part")
            if place == _LITERAL:
                parts.append(self.literal(start, amount))
            elif start == _WHOLE:
                parts += self.run(place, amount)
            else:
                parts.append(self.slice(place, start, amount))
        if self.trail.used < len(self.keys) or len(set(self.keys)) < len(self.keys):
            raise CorruptDataError("a manifest lists segments that it does not use, or lists one twice")
        return tuple(parts)

    def literal(self, start: int, length: int) -> bytes:
        literal = self.packed[self.at : self.at + length]
        if start or len(literal) < length:
            raise CorruptDataError("a manifest's literal is damaged")
        self.at += length
        self.trail.position += length
        return literal

    def run(self, place: int, amount: int) -> list[Part]:
        first = self.trail.used
        if place != _NUMBERED or amount > len(self.keys) - first:
            raise CorruptDataError("a manifest names segments that it does not list")
        return [self.slice_of(index, 0, self.sizes[index]) for index in range(first, first + amount)]

    def slice(self, place: int, start: int, length: int) -> Slice:
        trail = self.trail
        index = trail.last if place == _LAST else trail.other if place == _OTHER else self.varint()
        if not 0 <= index <= trail.used or index == len(self.keys):
            raise CorruptDataError("a manifest names a segment that it does not list")
        begin = trail.in_step(index) if start == _IN_STEP else trail.left[index]
        if start == _MOVED:
            shift = self.varint()
            begin += ~(shift >> 1) if shift & 1 else shift >> 1
        return self.slice_of(index, begin, length)

    def slice_of(self, index: int, start: int, length: int) -> Slice:
        size = self.sizes[index]
        if not 0 <= start < start + length <= size:
            raise CorruptDataError("a manifest's slice is not inside its segment")
        self.trail.follow(index, start, length)
        return Slice(self.keys[index], size, start, length)

    def varint(self) -> int:
        at = self.at
        byte = self.packed[at]
        number, shift = byte % _MORE, 7
        while byte >= _MORE:
            at += 1
            byte = self.packed[at]
            number |= byte % _MORE << shift
            shift += 7
            if shift > _WIDEST:
                raise CorruptDataError("a manifest holds a number that is too large")
        self.at = at + 1
        return number
