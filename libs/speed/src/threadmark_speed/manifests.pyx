"""Packed manifests, compiled: the counterpart of `threadmark.format.rope.packed`, with the same results and errors.

Nothing in the bytes is trusted. They are read through pointers, but each position is compared with their length first,
and each number is at most 2^56, so that no sum of them overflows (there are 512 parts at most, and one whole run).
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

from threadmark.errors import CorruptDataError

cdef enum:  # the meanings of a part's first number
    LITERAL = 0
    LAST = 1
    OTHER = 2
    NUMBERED = 3
    LEFT = 0
    IN_STEP = 1
    MOVED = 2
    WHOLE = 3

cdef enum:
    WIDEST = 49  # the position of the last seven bits that a reader accepts
    LONGEST_NUMBER = 9  # bytes of the longest number that is written
    ROOM = MOST_PARTS + MOST_SEGMENTS  # the number of parts is checked after a run of whole segments

cdef enum:  # the possible faults of a manifest
    CUT_SHORT = 1
    TOO_LARGE
    EMPTY_PART
    DAMAGED_LITERAL
    UNLISTED_SEGMENTS
    UNLISTED_SEGMENT
    OUTSIDE
    TOO_MANY_PARTS
    UNUSED

cdef dict PROBLEMS = {
    CUT_SHORT: "a manifest is cut short",
    TOO_LARGE: "a manifest holds a number that is too large",
    EMPTY_PART: "a manifest has an empty part",
    DAMAGED_LITERAL: "a manifest's literal is damaged",
    UNLISTED_SEGMENTS: "a manifest names segments that it does not list",
    UNLISTED_SEGMENT: "a manifest names a segment that it does not list",
    OUTSIDE: "a manifest's slice is not inside its segment",
    TOO_MANY_PARTS: f"a manifest has more than {MOST_PARTS} parts",
    UNUSED: "a manifest lists segments that it does not use, or an empty one, or one twice",
}


cdef class Layout:
    """A manifest as numbers, which is all that reading the value takes."""

    def __cinit__(self):
        self.items = NULL

    def __dealloc__(self):
        free(self.items)

    @property
    def keys(self):
        """The keys of the segments."""
        if self.names is None:
            self.names = _keys(self.packed, self.count)
        return self.names

    @property
    def sizes(self):
        """The lengths of the segments."""
        return [self.numbers[index] for index in range(self.count)]

    @property
    def parts(self):
        """For each part the index of its segment (-1 for the packed form itself), its start in that, and its length."""
        cdef Py_ssize_t number
        return [
            (self.items[number].index, self.items[number].start, self.items[number].length)
            for number in range(self.items_count)
        ]

    def literals(self):
        """How many bytes of the value stand in the packed form itself."""
        cdef Py_ssize_t number
        cdef int64_t total = 0
        for number in range(self.items_count):
            if self.items[number].index == LITERALS:
                total += self.items[number].length
        return total


def keys_in(bytes packed not None):
    """Return the keys of the segments that a packed manifest names, in order. Raises IndexError if it is cut short."""
    return _keys(packed, _count(packed))


cpdef Layout layout(bytes packed):
    """Return the segments and parts of a packed manifest. Raises CorruptDataError for bytes that cannot be one."""
    cdef Part parts[ROOM]
    cdef Layout read = Layout.__new__(Layout)
    cdef int problem
    if packed is None:
        raise TypeError("a packed manifest is bytes")
    try:
        read.count = _count(packed)
    except IndexError:
        raise CorruptDataError(PROBLEMS[CUT_SHORT]) from None
    read.packed = packed
    problem = _read(<const uint8_t *>PyBytes_AS_STRING(packed), PyBytes_GET_SIZE(packed), read, parts)
    if problem:
        raise CorruptDataError(PROBLEMS[problem])
    if read.items_count:
        read.items = <Part *>malloc(read.items_count * sizeof(Part))
        if read.items == NULL:
            raise MemoryError
        memcpy(read.items, parts, read.items_count * sizeof(Part))
    return read


def join(manifest, segments):
    """Return the bytes of the value. Raises CorruptDataError if a segment is missing or has the wrong length."""
    cdef Layout read = manifest if isinstance(manifest, Layout) else layout(manifest.packed)
    cdef const uint8_t *held[MOST_SEGMENTS + 1]
    cdef const uint8_t **literals = held + 1  # so that the index of literals is that of their bytes
    cdef Py_ssize_t number
    cdef Part *part
    cdef bytes joined
    cdef uint8_t *into
    cdef list kept = []  # holds the segments while their bytes are copied
    for number, key in enumerate(read.keys):
        segment = segments.get(key)
        if segment is None:
            raise CorruptDataError(f"segment {key.hex()} is missing")
        if not isinstance(segment, bytes):
            segment = bytes(segment)
        if PyBytes_GET_SIZE(segment) != read.numbers[number]:
            raise CorruptDataError(
                f"segment {key.hex()} has {len(segment)} bytes where {read.numbers[number]} were stored"
            )
        kept.append(segment)
    if read.items_count == 1 and read.count and read.length == read.numbers[0]:
        return kept[0]
    joined = PyBytes_FromStringAndSize(NULL, read.length)
    held[0] = <const uint8_t *>PyBytes_AS_STRING(read.packed)
    for number in range(read.count):
        literals[number] = <const uint8_t *>PyBytes_AS_STRING(kept[number])
    into = <uint8_t *>PyBytes_AS_STRING(joined)
    for number in range(read.items_count):
        part = &read.items[number]  # inside its segment, of the length that was just compared
        memcpy(into + part.at, literals[part.index] + part.start, part.length)
    return joined


cdef int _count(bytes packed) except -1:
    """Return how many keys the manifest begins with, which are all there."""
    cdef int count
    if not PyBytes_GET_SIZE(packed):
        raise IndexError("index out of range")
    count = <uint8_t>PyBytes_AS_STRING(packed)[0]
    if count > MOST_SEGMENTS:
        raise CorruptDataError(f"a manifest lists {count} segments, where {MOST_SEGMENTS} are the most")
    if PyBytes_GET_SIZE(packed) <= count * KEY_SIZE:
        raise IndexError
    return count


cdef tuple _keys(bytes packed, int count):
    cdef const char *first = PyBytes_AS_STRING(packed) + 1
    cdef int index
    return tuple([PyBytes_FromStringAndSize(first + index * KEY_SIZE, KEY_SIZE) for index in range(count)])


cdef int _number(const uint8_t *packed, Py_ssize_t length, Py_ssize_t *at, int64_t *number) noexcept:
    """Read a number and move on behind it."""
    cdef uint64_t value = 0
    cdef uint8_t byte
    cdef int shift = 0
    while shift <= WIDEST:
        if at[0] >= length:
            return CUT_SHORT
        byte = packed[at[0]]
        at[0] += 1
        value |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            number[0] = <int64_t>value
            return 0
        shift += 7
    return TOO_LARGE


cdef int _read(const uint8_t *packed, Py_ssize_t length, Layout read, Part *parts) noexcept:
    """Read all that follows the keys. There is room for `ROOM` parts."""
    cdef Py_ssize_t at = 1 + read.count * KEY_SIZE, count = 0
    cdef int64_t left[MOST_SEGMENTS]
    cdef int64_t left_at[MOST_SEGMENTS]
    cdef int64_t head, amount, index, start, shift, position = 0
    cdef int way, place, used = 0, last = -1, other = -1, problem
    for index in range(read.count):
        left[index] = left_at[index] = 0
        problem = _number(packed, length, &at, &read.numbers[index])
        if problem:
            return problem
    while at < length:
        problem = _number(packed, length, &at, &head)
        if problem:
            return problem
        amount, way, place = head >> 4, head >> 2 & 3, head & 3
        if not amount:
            return EMPTY_PART
        if place == LITERAL:
            if way or amount > length - at:
                return DAMAGED_LITERAL
            _set(&parts[count], LITERALS, position, at, amount)
            count += 1
            at += amount
            position += amount
        elif way == WHOLE:
            if place != NUMBERED or amount > read.count - used:
                return UNLISTED_SEGMENTS
            for index in range(used, used + amount):
                _set(&parts[count], <int>index, position, 0, read.numbers[index])
                count += 1
                position += read.numbers[index]
                left[index], left_at[index] = read.numbers[index], position
                last, other = <int>index, last
            used += <int>amount
        else:
            if place == NUMBERED:
                problem = _number(packed, length, &at, &index)
                if problem:
                    return problem
            else:
                index = last if place == LAST else other
            if not 0 <= index <= used or index == read.count:
                return UNLISTED_SEGMENT
            start = left[index]
            if way == IN_STEP:
                start += position - left_at[index]
            elif way == MOVED:
                problem = _number(packed, length, &at, &shift)
                if problem:
                    return problem
                start += ~(shift >> 1) if shift & 1 else shift >> 1
            if not 0 <= start < start + amount <= read.numbers[index]:
                return OUTSIDE
            _set(&parts[count], <int>index, position, start, amount)
            count += 1
            position += amount
            left[index], left_at[index] = start + amount, position
            if index != last:
                last, other = <int>index, last
                used += index == used
        if count > MOST_PARTS:
            return TOO_MANY_PARTS
    read.length = position
    read.items_count = count
    return UNUSED if used < read.count or not _distinct(packed + 1, read) else 0


cdef void _set(Part *part, int index, int64_t at, int64_t start, int64_t length) noexcept:
    part.index = index
    part.at = at
    part.start = start
    part.length = length


cdef bint _distinct(const uint8_t *keys, Layout read) noexcept:
    """Whether no segment is empty or listed twice."""
    cdef int one, other
    cdef uint64_t begun[MOST_SEGMENTS]
    for one in range(read.count):
        if not read.numbers[one]:
            return False
        memcpy(&begun[one], keys + one * KEY_SIZE, sizeof(uint64_t))
        for other in range(one):
            if begun[one] == begun[other] and not memcmp(keys + one * KEY_SIZE, keys + other * KEY_SIZE, KEY_SIZE):
                return False
    return True


cdef uint8_t *_write(uint8_t *into, uint64_t number) noexcept:
    """Write a number. Returns the place behind it."""
    while number >= 0x80:
        into[0] = number & 0x7F | 0x80
        number >>= 7
        into += 1
    into[0] = <uint8_t>number
    return into + 1


cdef bytes packed_form(
    const uint8_t *keys, const int64_t *sizes, int segments, const Part *parts, Py_ssize_t count, const uint8_t *literals
):
    """Return the result of `threadmark.format.rope.packed.pack`.

    Segments are numbered as the parts first name them, and there are 48 at most. Literals begin at their start in
    `literals`.
    """
    cdef Py_ssize_t most = 1 + segments * (KEY_SIZE + LONGEST_NUMBER), number
    cdef int64_t left[MOST_SEGMENTS]
    cdef int64_t left_at[MOST_SEGMENTS]
    cdef int64_t position = 0, shift
    cdef uint64_t run = 0
    cdef int index, used = 0, last = -1, other = -1, place, way
    cdef uint8_t *packed
    cdef uint8_t *into
    cdef const Part *part
    if not 0 <= segments <= MOST_SEGMENTS:
        raise ValueError(f"a manifest of {segments} segments")
    for number in range(count):
        most += 3 * LONGEST_NUMBER + (parts[number].length if parts[number].index == LITERALS else 0)
    packed = into = <uint8_t *>malloc(most)
    if packed == NULL:
        raise MemoryError
    into[0] = <uint8_t>segments
    memcpy(into + 1, keys, segments * KEY_SIZE)
    into += 1 + segments * KEY_SIZE
    for index in range(segments):
        into = _write(into, sizes[index])
        left[index] = left_at[index] = 0
    for number in range(count):
        part = &parts[number]
        index = part.index
        if index != LITERALS and index == used and part.length == sizes[index]:
            run += 1
        else:
            if run:
                into = _write(into, run << 4 | WHOLE << 2 | NUMBERED)
                run = 0
            if index == LITERALS:
                into = _write(into, <uint64_t>part.length << 4)
                memcpy(into, literals + part.start, part.length)
                into += part.length
                position += part.length
                continue
            place = LAST if index == last else OTHER if index == other else NUMBERED
            shift = part.start - left[index]
            way = LEFT if not shift else IN_STEP if shift == position - left_at[index] else MOVED
            into = _write(into, <uint64_t>part.length << 4 | way << 2 | place)
            if place == NUMBERED:
                into = _write(into, index)
            if way == MOVED:
                into = _write(into, <uint64_t>shift << 1 if shift > 0 else <uint64_t>~shift << 1 | 1)
        position += part.length
        left[index], left_at[index] = part.start + part.length, position
        if index != last:
            last, other = index, last
            used += index == used
    if run:
        into = _write(into, run << 4 | WHOLE << 2 | NUMBERED)
    try:
        return PyBytes_FromStringAndSize(<const char *>packed, into - packed)
    finally:
        free(packed)
