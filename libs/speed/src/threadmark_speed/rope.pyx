"""Storing a value, compiled: the rules are explained in `threadmark.format.rope.deduplicating`.

The matches may differ from those that Python finds, because the search does. The decisions about them are the same.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc, qsort, realloc
from libc.string cimport memcmp, memcpy

from threadmark_speed.manifests cimport KEY_SIZE, LITERALS, MOST_PARTS, MOST_SEGMENTS, Layout, Part, layout, packed_form
from threadmark_speed.matches cimport Match, Matches, found

from threadmark.format.digests import segment_key

cdef enum:
    RAW = -1  # the segment of bytes that are not stored yet: bytes of the value itself
    SLACK = 1024
    MOST_LITERAL = 64
    MOST_LITERAL_OF_HEADER = 640
    TIMES_NEW = 4
    KEPT = 24
    PART_COST = 5
    SEGMENT_COST = 14
    ROW_COST = 60
    COSTLY = 5
    COSTLY_OF_HEADER = 7
    SIMPLIFIED = 8
    SHORT = 2048
    PATCH_COST = 12
    FEW_SEGMENTS = 2
    MOSTLY_NEW = 12
    MOST_REPEATED = 4

ctypedef struct Segment:
    uint8_t key[KEY_SIZE]
    int64_t size
    int64_t used  # how many of its bytes the value uses
    double share  # how much of it that is
    int number
    int rank  # the place of its first piece among those of other segments
    bint beside
    bint dropped

cdef object Deduplicated = None


def deduplicate(bytes data not None, sources, key=segment_key, *, beside=()):
    """Express a value by slices of the segments of its sources."""
    cdef Value value
    if PyBytes_GET_SIZE(data) <= MOST_LITERAL or not sources:
        return _whole(data, key)
    value = _compared(data, list(sources), beside)
    value.tidy(COSTLY, MOST_LITERAL)
    return value.stored(key, MOST_LITERAL)


def patch(bytes data not None, source, key=segment_key):
    """Express a value by the one before it, if only its successor will be compared with it."""
    cdef Value value
    cdef Py_ssize_t total = PyBytes_GET_SIZE(data)
    cdef int64_t new, most_literal
    cdef bint is_cheap
    if source is None:
        return _whole(data, key)
    value = _compared(data, [source], ())
    new = value.raw
    if value.origins[0] is not None:
        new -= (<Origin>value.origins[0]).literals()
    if total > SHORT:
        most_literal = max(MOST_LITERAL, min(MOST_LITERAL_OF_HEADER, TIMES_NEW * new))
        value.tidy(COSTLY_OF_HEADER, most_literal)
        return value.stored(key, most_literal)
    is_cheap = value.used_count and value.raw + value.cost() <= PATCH_COST * _root(total)
    if is_cheap and value.excess() <= 0 and not value.repeats():
        return value.stored(key, value.raw)
    if value.used_count < FEW_SEGMENTS or new * MOSTLY_NEW > total:
        value.tidy(COSTLY, MOST_LITERAL)
        return value.stored(key, MOST_LITERAL)
    return _whole(data, key)


cdef object _whole(bytes data, object key):
    """Store a value without comparing it."""
    cdef Value value = Value.__new__(Value)
    value.data = data
    if PyBytes_GET_SIZE(data):
        value.add(RAW, 0, PyBytes_GET_SIZE(data))
    value.count_used()
    return value.stored(key, MOST_LITERAL)


cdef bytes _encoding(object source):
    """Return a source's bytes, which are kept until the comparison is over."""
    encoding = source.data
    if type(encoding) is not bytes:
        raise TypeError(f"a source's data is bytes, not {type(encoding).__name__}")
    return encoding


cdef Value _compared(bytes data, list sources, object beside):
    """Return the value as slices of the segments of its sources, and raw ones between them."""
    cdef Value value = Value.__new__(Value)
    cdef Py_ssize_t index, at = 0, total = PyBytes_GET_SIZE(data)
    cdef list encodings = [_encoding(source) for source in sources]
    cdef Matches matches = found(data, encodings)
    cdef Match *match
    value.data = data
    value.beside = beside if isinstance(beside, (set, frozenset)) else frozenset(beside)
    value.origins = [None] * len(sources)
    for index in range(matches.count):
        match = &matches.items[index]
        if match.at > at:
            value.add(RAW, at, match.at - at)
        origin = value.origins[match.source]
        if origin is None:
            origin = value.origins[match.source] = _origin(sources[match.source].packed, encodings[match.source])
        value.take(origin, match)
        at = match.at + match.length
    if at < total:
        value.add(RAW, at, total - at)
    value.count_used()
    return value


cdef class Origin:
    """A source's manifest, and which of the value's segments its segments are."""

    cdef Layout layout  # None if no segment holds any of the source
    cdef int numbers[MOST_SEGMENTS]

    cdef int64_t literals(self):
        """How many bytes of the source stand in its manifest."""
        return self.layout.literals() if self.layout is not None else 0


cdef Origin _origin(bytes packed, bytes data):
    cdef Origin origin = Origin.__new__(Origin)
    cdef int index
    if not packed:
        return origin
    origin.layout = layout(packed)
    if origin.layout.length != PyBytes_GET_SIZE(data):
        raise ValueError(f"a source of {len(data)} bytes has a manifest of {origin.layout.length}")
    for index in range(origin.layout.count):
        origin.numbers[index] = RAW
    return origin


cdef class Value:
    """A value as slices of segments and raw slices, in its order, and the totals of them.

    Slices are parts whose index is that of one of `segments`, or RAW; two that continue each other are one.
    """

    cdef bytes data
    cdef object beside
    cdef list origins
    cdef Part *pieces
    cdef Py_ssize_t count, room
    cdef Segment *segments
    cdef int segment_count, segment_room
    cdef int64_t raw  # how many bytes would be stored again
    cdef int used_count  # how many segments are used

    def __cinit__(self):
        self.pieces = NULL
        self.segments = NULL

    def __dealloc__(self):
        free(self.pieces)
        free(self.segments)

    cdef int add(self, int index, int64_t start, int64_t length) except -1:
        """Append a slice."""
        cdef Part *last
        if self.count:
            last = &self.pieces[self.count - 1]
            if last.index == index and last.start + last.length == start:
                last.length += length
                return 0
        if self.count == self.room:
            last = <Part *>realloc(self.pieces, (2 * self.room + 32) * sizeof(Part))
            if last == NULL:
                raise MemoryError
            self.pieces, self.room = last, 2 * self.room + 32
        self.pieces[self.count] = Part(0, start, length, index)
        self.count += 1
        return 0

    cdef int take(self, Origin origin, const Match *match) except -1:
        """Append the slices that make up the matched bytes. Literals become raw, as nothing else holds them."""
        cdef Py_ssize_t low = 0, high, middle
        cdef int64_t begin, length, start = match.start, end = match.start + match.length
        cdef Part *part
        if origin.layout is None:
            return self.add(RAW, match.at, match.length)
        high = origin.layout.items_count
        while high - low > 1:  # the last part that begins at the match's start or before it
            middle = (low + high) // 2
            if origin.layout.items[middle].at <= start:
                low = middle
            else:
                high = middle
        while start < end:  # all of it is in the manifest, which is as long as the source
            part = &origin.layout.items[low]
            begin = start - part.at
            length = min(part.length - begin, end - start)
            if part.index == LITERALS:
                self.add(RAW, match.at + start - match.start, length)
            else:
                self.add(self.number(origin, part.index), part.start + begin, length)
            start += length
            low += 1
        return 0

    cdef int number(self, Origin origin, int index) except -1:
        """Return which of the value's segments one of a source is."""
        if origin.numbers[index] == RAW:
            origin.numbers[index] = self.segment(
                <const uint8_t *>PyBytes_AS_STRING(origin.layout.packed) + 1 + index * KEY_SIZE,
                origin.layout.numbers[index],
            )
        return origin.numbers[index]

    cdef int segment(self, const uint8_t *key, int64_t size) except -1:
        """Return the number of a segment among those of the value."""
        cdef int index
        cdef Segment *segment
        for index in range(self.segment_count):
            if not memcmp(self.segments[index].key, key, KEY_SIZE):
                self.segments[index].size = size
                return index
        if self.segment_count == self.segment_room:
            segment = <Segment *>realloc(self.segments, (2 * self.segment_room + 16) * sizeof(Segment))
            if segment == NULL:
                raise MemoryError
            self.segments, self.segment_room = segment, 2 * self.segment_room + 16
        segment = &self.segments[self.segment_count]
        memcpy(segment.key, key, KEY_SIZE)
        segment.size, segment.number = size, self.segment_count
        segment.beside = self.beside and PyBytes_FromStringAndSize(<const char *>key, KEY_SIZE) in self.beside
        self.segment_count += 1
        return self.segment_count - 1

    cdef int count_used(self) except -1:
        """Count the used bytes of each segment again."""
        cdef Py_ssize_t at
        cdef Segment *segment
        self.raw = self.used_count = 0
        for at in range(self.segment_count):
            self.segments[at].used, self.segments[at].dropped = 0, False
        for at in range(self.count):
            if self.pieces[at].index == RAW:
                self.raw += self.pieces[at].length
                continue
            segment = &self.segments[self.pieces[at].index]
            if not segment.used:
                segment.rank = self.used_count
                self.used_count += 1
            segment.used += self.pieces[at].length
        return 0

    cdef int64_t cost(self) noexcept:
        """The cost of the manifest, in bytes."""
        return PART_COST * self.count + SEGMENT_COST * self.used_count

    cdef int64_t sizes(self, bint without_beside) noexcept:
        """How long the segments are together."""
        cdef int index
        cdef int64_t total = 0
        for index in range(self.segment_count):
            if self.segments[index].used and not (without_beside and self.segments[index].beside):
                total += self.segments[index].size
        return total

    cdef int64_t excess(self) noexcept:
        """How many bytes more than allowed are read for the value."""
        return self.sizes(True) + self.raw - 2 * PyBytes_GET_SIZE(self.data) - SLACK

    cdef bint repeats(self) noexcept:
        """Whether the value is longer than `MOST_REPEATED` allows."""
        return PyBytes_GET_SIZE(self.data) > MOST_REPEATED * (self.sizes(False) + self.raw)

    cdef int make_raw(self, int64_t shorter) except -1:
        """Make slices raw: those of segments that are dropped, and all that are shorter."""
        cdef Py_ssize_t index, count = self.count
        cdef int64_t at = 0
        cdef Part piece
        self.count = 0
        for index in range(count):  # there are at most as many as were read
            piece = self.pieces[index]
            if piece.index == RAW or piece.length < shorter or self.segments[piece.index].dropped:
                self.add(RAW, at, piece.length)
            else:
                self.add(piece.index, piece.start, piece.length)
            at += piece.length
        return self.count_used()

    cdef int tidy(self, int64_t costly, int64_t most_literal) except -1:
        """Bring the slices within the limits of storage."""
        cdef int index
        self.without_fragments(costly)
        self.without_waste()
        self.with_fewer_segments(most_literal)
        if self.repeats():
            for index in range(self.segment_count):
                self.segments[index].dropped = True
            self.make_raw(0)
        return 0

    cdef int without_fragments(self, int64_t costly) except -1:
        """Make the shortest slices raw if the manifest, put after put, costs more than storing them again."""
        cdef int64_t most = min(costly * _root(PyBytes_GET_SIZE(self.data)), MOST_PARTS * PART_COST), shortest = 16
        if self.cost() <= most:
            return 0
        while self.count > 1 and self.cost() > most // SIMPLIFIED:
            shortest *= 2
            self.make_raw(shortest)
        return 0

    cdef int without_waste(self) except -1:
        """Make segments raw, the least used first, until reading takes no more than twice the value."""
        cdef int64_t excess = self.excess()
        cdef int index
        cdef Segment *chosen
        cdef Segment *segment
        if excess <= 0:
            return 0
        for index in range(self.segment_count):
            self.segments[index].share = <double>self.segments[index].used / <double>self.segments[index].size
        chosen = self.ascending(&_less_used)
        try:
            for index in range(self.segment_count):
                if chosen[index].used and not chosen[index].beside and excess > 0:
                    segment = &self.segments[chosen[index].number]
                    segment.dropped = True
                    excess -= segment.size - segment.used
        finally:
            free(chosen)
        return self.make_raw(0)

    cdef int with_fewer_segments(self, int64_t most_literal) except -1:
        """Merge the smallest segments if there are more than the value should have."""
        cdef bint all_count = self.used_count >= MOST_SEGMENTS
        cdef int index, merged = 0
        cdef Segment *chosen
        if not self.used_count:
            return 0
        chosen = self.ascending(&_smaller)
        try:
            index = 0
            for merged in range(self.segment_count):
                if chosen[merged].used and (all_count or not chosen[merged].beside):
                    chosen[index] = chosen[merged]
                    index += 1
            merged = _merged(chosen, index, self.raw > most_literal)
            for index in range(merged):
                self.segments[chosen[index].number].dropped = True
        finally:
            free(chosen)
        return self.make_raw(0) if merged else 0

    cdef Segment *ascending(self, int (*order)(const void *, const void *) noexcept nogil) except NULL:
        """Return a sorted copy of the segments, for the caller to free."""
        cdef Segment *copied = <Segment *>malloc((self.segment_count + 1) * sizeof(Segment))
        if copied == NULL:
            raise MemoryError
        if self.segment_count:
            memcpy(copied, self.segments, self.segment_count * sizeof(Segment))
            qsort(copied, self.segment_count, sizeof(Segment), order)
        return copied

    cdef object stored(self, object key, int64_t most_literal):
        """Return the packed manifest, and the one new segment that it may need.

        Raw slices become literals, or slices of a new segment if they are too long for that.
        """
        cdef int64_t shortest = self.shortest_gathered(most_literal), length = 0
        cdef Py_ssize_t index
        cdef bytes name, segment = None
        cdef int fresh = LITERALS
        for index in range(self.count):
            if self.pieces[index].index == RAW and self.pieces[index].length >= shortest:
                length += self.pieces[index].length
        if length:
            segment = self.gathered(shortest, length)
            name = key(segment)
            if name is None:
                raise TypeError("the key of a segment is bytes")
            if PyBytes_GET_SIZE(name) != KEY_SIZE:
                raise ValueError(f"the key of a segment has {len(name)} bytes, not {KEY_SIZE}")
            fresh = self.segment(<const uint8_t *>PyBytes_AS_STRING(name), length)
            self.refer_to(fresh, shortest)
        return _result(self.packed(), {name: segment} if segment is not None else {})

    cdef int64_t shortest_gathered(self, int64_t most_literal) except -1:
        """Return the length from which on raw slices go into a new segment, if there is enough for one."""
        cdef int64_t lengths[KEPT + 1]  # how many raw slices have each length up to KEPT
        cdef int64_t length, longest = 0, shortest = 0, taken = 0
        cdef Py_ssize_t index
        if self.raw <= most_literal:
            return self.raw + 1
        for length in range(KEPT + 1):
            lengths[length] = 0
        for index in range(self.count):
            if self.pieces[index].index == RAW:
                length = self.pieces[index].length
                if length <= KEPT:
                    lengths[length] += 1
                elif not longest or length < longest:
                    longest = length  # the shortest of those that are too long to be kept
        for length in range(1, KEPT + 1):
            if not lengths[length]:
                continue
            if taken + length * lengths[length] > KEPT:
                return length  # if some of one length do not fit, none is kept
            taken += length * lengths[length]
        return longest

    cdef bytes gathered(self, int64_t shortest, int64_t length):
        """Return the bytes of all raw slices that are long enough."""
        cdef bytes segment = PyBytes_FromStringAndSize(NULL, length)
        cdef char *into = PyBytes_AS_STRING(segment)
        cdef Py_ssize_t index
        cdef Part *piece
        for index in range(self.count):
            piece = &self.pieces[index]
            if piece.index == RAW and piece.length >= shortest:
                memcpy(into, PyBytes_AS_STRING(self.data) + piece.start, piece.length)
                into += piece.length
        return segment

    cdef int refer_to(self, int fresh, int64_t shortest) noexcept:
        """Turn the gathered bytes into slices of the new segment."""
        cdef int64_t position = 0
        cdef Py_ssize_t index
        cdef Part *piece
        for index in range(self.count):
            piece = &self.pieces[index]
            if piece.index == RAW and piece.length >= shortest:
                piece.index, piece.start = fresh, position
                position += piece.length
        return 0

    cdef bytes packed(self):
        """Return the packed manifest, in which segments are numbered as they are first named."""
        cdef uint8_t keys[MOST_SEGMENTS * KEY_SIZE]
        cdef int64_t sizes[MOST_SEGMENTS]
        cdef Py_ssize_t at
        cdef int index, named = 0
        cdef Segment *segment
        for index in range(self.segment_count):
            self.segments[index].rank = -1
        for at in range(self.count):
            if self.pieces[at].index == RAW:
                self.pieces[at].index = LITERALS
                continue
            segment = &self.segments[self.pieces[at].index]
            if segment.rank < 0:
                if named == MOST_SEGMENTS:
                    raise ValueError(f"a manifest of more than {MOST_SEGMENTS} segments")
                memcpy(keys + named * KEY_SIZE, segment.key, KEY_SIZE)
                sizes[named] = segment.size
                segment.rank = named
                named += 1
            self.pieces[at].index = segment.rank
        return packed_form(
            keys, sizes, named, self.pieces, self.count, <const uint8_t *>PyBytes_AS_STRING(self.data)
        )


cdef int _merged(const Segment *ascending, int count, bint fresh) noexcept:
    """Return how many of the smallest segments to merge: those costing least for the square of the places it frees."""
    cdef int index, smaller = (count + 1) // 2, least, best = 0
    cdef int64_t cost = 0
    cdef double each, lowest = 0
    if not count:
        return 0
    for index in range(smaller):
        cost += ascending[index].used
    if count + fresh <= min(_root(cost // smaller), MOST_SEGMENTS - 1):
        return 0
    least = max(count + 2 - MOST_SEGMENTS, 2 - fresh)
    cost = 0 if fresh else ROW_COST
    for index in range(count + 1):
        if index >= least:
            each = <double>cost / <double>((index - 1 + fresh) * (index - 1 + fresh))
            if not best or each < lowest:
                best, lowest = index, each
        if index < count:
            cost += ascending[index].used
    return best


cdef inline int _order(int64_t one, int64_t other) noexcept nogil:
    """The order for `qsort`: for equals 0, since an order that is none may lead it astray."""
    return (one > other) - (one < other)


cdef int _less_used(const void *one, const void *other) noexcept nogil:
    cdef double difference = (<const Segment *>one).share - (<const Segment *>other).share
    if difference:
        return 1 if difference > 0 else -1
    return _order((<const Segment *>one).rank, (<const Segment *>other).rank)


cdef int _smaller(const void *one, const void *other) noexcept nogil:
    cdef int64_t difference = (<const Segment *>one).used - (<const Segment *>other).used
    if difference:
        return 1 if difference > 0 else -1
    return memcmp((<const Segment *>one).key, (<const Segment *>other).key, KEY_SIZE)


cdef int64_t _root(int64_t number) noexcept:
    """Return the integer square root."""
    cdef int64_t root = <int64_t>sqrt(<double>number)
    while root * root > number:
        root -= 1
    while (root + 1) * (root + 1) <= number:
        root += 1
    return root


cdef object _result(bytes packed, dict fresh):
    global Deduplicated
    if Deduplicated is None:  # not before, because that package imports this module
        from threadmark.format.rope.packed import Deduplicated as imported
        Deduplicated = imported
    return Deduplicated(packed, fresh)
