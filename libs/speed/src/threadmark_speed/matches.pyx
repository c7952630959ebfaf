"""Finding the matches of a value with stored ones: compiled, a plainer search than `threadmark.format.rope.match`.

Bytes at the same places are compared first, eight at a time. The rest is looked up in an index of the source:
blocks of 16 bytes, 8,192 of them at most and evenly spread, in a table that keeps one position for each. If a source
is much longer than the bytes to find, few blocks are indexed first: mostly all of them stand there in long pieces. An
entry is a guess, so it is compared before it is used, and one that was lost costs a match at most. Each search has a
budget of bytes, whatever they are. Matches are of equal bytes and do not overlap; a source's bytes may occur in several.

Pointers are to the bytes of objects that the caller holds, and nothing of Python is called while they are used. The
interpreter's lock is held: two equal values of 300 KB are compared in 10 microseconds, and a thread may keep the lock
for 5,000.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, qsort, realloc
from libc.string cimport memcmp, memcpy

cdef enum:
    WORD = 8
    BLOCK = 16  # bytes of an anchor
    STRIDE = 16  # from one anchor of the source to the next, at least
    MOST_BLOCKS = 8192
    COARSE = 256  # the stride of the first index of a source that is much longer than the bytes to find
    MUCH_LONGER = 16  # times
    MANY = 4096  # bytes that are looked for must be as many
    LEAST = 16  # a match of fewer bytes is not worth a slice
    JUMP = 48  # a match somewhere else must have as many: a version of LangGraph has 31 zeros, as any other has
    SURE = 1024  # a match of as many is the right one, however far away it is
    PATIENCE = 8  # a doubtful match is accepted once the search has gone this many times as far as it skips
    MOST_PATIENCE = 4096  # but no further than this
    HURRY = 2048  # after as many bytes without a match the search takes longer steps
    ABREAST = 256  # bytes that are compared position by position after two strings part
    SHIFTED = 256  # a gap of as many bytes in a value of the same length is searched for shifted bytes
    WORTH = 64  # fewer bytes are worth neither another search nor naming another segment
    SMALL = 2048  # a value must be longer than this to be searched for moved bytes
    MOVED = 32  # and the gap at least one part in this many of it


cdef class Matches:
    """A list of matches."""

    def __cinit__(self):
        self.items = NULL

    def __dealloc__(self):
        free(self.items)

    cdef int add(self, Py_ssize_t at, Py_ssize_t start, Py_ssize_t length, Py_ssize_t source) except -1:
        cdef Match *more
        if self.count == self.room:
            more = <Match *>realloc(self.items, (2 * self.room + 16) * sizeof(Match))
            if more == NULL:
                raise MemoryError
            self.items, self.room = more, 2 * self.room + 16
        self.items[self.count] = Match(at, start, length, source)
        self.count += 1
        return 0

    cdef void sort(self, Py_ssize_t first) noexcept:
        """Bring all in ascending order, if any were added after the `first` ones."""
        if self.count > first:
            qsort(self.items, self.count, sizeof(Match), &_later)


cdef int _later(const void *one, const void *other) noexcept nogil:
    cdef Py_ssize_t first = (<const Match *>one).at, second = (<const Match *>other).at
    return (first > second) - (first < second)


cdef Matches found(bytes data, list sources):
    """Return the matches of a value with its sources (at least one, all bytes), in ascending order.

    The first is its most likely origin; each other one serves the gaps that are left.
    """
    cdef Matches matches = Matches.__new__(Matches)
    cdef Py_ssize_t number, total = PyBytes_GET_SIZE(data)
    cdef Walk walk = _walk(matches, data, sources[0], 0, LEAST)
    if total != walk.source_length:
        walk.along(0, total, 0, walk.source_length)
        matches.sort(0)
    else:
        walk.abreast()
        walk.fill(SHIFTED, True)
    for number in range(1, len(sources)):
        if not _walk(matches, data, sources[number], number, WORTH).fill(WORTH, False):
            return matches
    if matches.count and total > SMALL:
        _walk(matches, data, sources[0], 0, WORTH).fill(max(WORTH, -(-total // MOVED)), False)
    return matches


cdef Walk _walk(Matches matches, bytes data, bytes source, Py_ssize_t number, Py_ssize_t least):
    cdef Walk walk = Walk.__new__(Walk)
    walk.matches, walk.number, walk.least = matches, number, least
    walk.data, walk.data_length = <const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data)
    walk.source, walk.source_length = <const uint8_t *>PyBytes_AS_STRING(source), PyBytes_GET_SIZE(source)
    walk.budget = 4 * walk.data_length + (1 << 20)
    return walk


cdef class Walk:
    """A walk through a value and one of its sources, side by side. Matches of at least `least` bytes are kept."""

    cdef Matches matches
    cdef Py_ssize_t number, least
    cdef const uint8_t *data
    cdef const uint8_t *source
    cdef Py_ssize_t data_length, source_length
    cdef Py_ssize_t budget  # bytes that may still be looked at
    cdef uint32_t *table  # the index: the beginning of a block in the source, and 1 more; 0 is an empty entry
    cdef int shift
    cdef bint is_coarse  # whether it could have more blocks
    cdef Py_ssize_t first, stop  # the indexed part of the source

    def __cinit__(self):
        self.table = NULL

    def __dealloc__(self):
        free(self.table)

    cdef int keep(self, Py_ssize_t at, Py_ssize_t start, Py_ssize_t length) except -1:
        if length >= self.least:
            self.matches.add(at, start, length, self.number)
        return 0

    cdef int abreast(self) except -1:
        """Keep the equal bytes of two strings of one length at the same places."""
        cdef Py_ssize_t at = 0, begin, length
        while _next_run(self.data + at, self.source + at, self.data_length - at, &begin, &length):
            self.keep(at + begin, at + begin, length)
            at += begin + length
        return 0

    cdef bint fill(self, Py_ssize_t least_gap, bint beside) except -1:
        """Search for the gaps between the matches, in the whole source (`beside`: at the same places of it).

        Returns whether there was a gap of so many bytes.
        """
        cdef Py_ssize_t index, known = self.matches.count, at = 0, end
        cdef bint any_gap = False
        for index in range(known + 1):
            end = self.matches.items[index].at if index < known else self.data_length
            if end - at >= least_gap:
                any_gap = True
                if beside:
                    self.along(at, end, at, end)
                else:
                    self.between(at, end, -1, 0, self.source_length)
            if index < known:
                at = end + self.matches.items[index].length
        self.matches.sort(known)
        return any_gap

    cdef int along(self, Py_ssize_t at, Py_ssize_t end, Py_ssize_t start, Py_ssize_t stop) except -1:
        """Compare data[at:end] with source[start:stop]: the beginnings, the ends, and the part between."""
        cdef Py_ssize_t same = _same_from(self.data + at, self.source + start, min(end - at, stop - start))
        self.keep(at, start, same)
        at, start = at + same, start + same
        same = _same_before(self.data + end, self.source + stop, min(end - at, stop - start))
        self.keep(end - same, stop - same, same)
        free(self.table)
        self.table = NULL
        return self.between(at, end - same, start, start, stop - same)

    cdef int between(
        self, Py_ssize_t at, Py_ssize_t end, Py_ssize_t start, Py_ssize_t first, Py_ssize_t stop
    ) except -1:
        """Compare data[at:end] with source[first:stop], beginning at `start` (-1: no place is likelier than another)."""
        cdef Match best
        while True:
            if start >= 0:
                self.replaced(&at, end, &start, stop)
            if self.table == NULL:
                first = max(first, start)  # the part passed until now, in order, is used
            if end - at < JUMP or stop - first < JUMP or self.budget <= 0:
                return 0
            if self.table == NULL:
                self.make_index(first, stop, end - at >= MANY and stop - first > MUCH_LONGER * (end - at))
            best = self.jump(at, end, start)
            if self.is_coarse and (not best.length or best.at - at >= COARSE):  # short pieces may have been skipped
                self.make_index(self.first, self.stop, False)
                best = self.jump(at, end, start)
            if not best.length:
                return 0
            self.keep(best.at, best.start, best.length)
            at, start = best.at + best.length, best.start + best.length

    cdef int replaced(self, Py_ssize_t *at, Py_ssize_t end, Py_ssize_t *start, Py_ssize_t stop) except -1:
        """Keep the next matches, as long as each comes after a few bytes that were replaced by as many others.

        A match that is shorter than the bytes it skips is left to a search.
        """
        cdef Py_ssize_t begin, length
        while True:
            length = min(end - at[0], stop - start[0], ABREAST)
            self.budget -= max(length, 0)
            if not _next_run(self.data + at[0], self.source + start[0], length, &begin, &length):
                return 0
            at[0], start[0] = at[0] + begin, start[0] + begin
            length += _same_from(
                self.data + at[0] + length,
                self.source + start[0] + length,
                min(end - at[0], stop - start[0]) - length,
            )
            if length < 2 * begin:
                at[0], start[0] = at[0] - begin, start[0] - begin
                return 0
            self.keep(at[0], start[0], length)
            at[0], start[0] = at[0] + length, start[0] + length

    cdef int make_index(self, Py_ssize_t first, Py_ssize_t stop, bint coarse) except -1:
        """Index the blocks of source[first:stop]. The first of those that share an entry has it."""
        cdef Py_ssize_t stride = STRIDE, at
        cdef uint32_t *entry
        cdef int bits = 6
        while (stop - first) // stride > MOST_BLOCKS:
            stride *= 2
        self.is_coarse = coarse and stride < COARSE
        if self.is_coarse:
            stride = COARSE
        while (stop - first) // stride * 2 > 1 << bits:
            bits += 1
        free(self.table)
        self.table = <uint32_t *>calloc(1 << bits, sizeof(uint32_t))
        if self.table == NULL:
            raise MemoryError
        self.shift, self.first, self.stop = 64 - bits, first, stop
        stop = min(stop, first + <Py_ssize_t>0xFFFFFFF0)  # an entry has 32 bits
        at = first
        while at + BLOCK <= stop:
            entry = self.table + _hashed(self.source + at, self.shift)
            if not entry[0]:
                entry[0] = <uint32_t>(at - first + 1)
            at += stride
        return 0

    cdef Match jump(self, Py_ssize_t at, Py_ssize_t end, Py_ssize_t start) noexcept:
        """Return the next match of data[at:end] with the indexed part, of length 0 if there is none.

        A match that skips more than it shares is doubtful: records of one shape agree in their shape wherever they are
        compared, while the record that is really the same one comes later.
        """
        cdef Match best = Match(0, 0, 0, 0)
        cdef Py_ssize_t here = at, since = at, limit = end, before, length, skipped, there
        cdef uint32_t entry
        while here + BLOCK <= end and here < limit:
            entry = self.table[_hashed(self.data + here, self.shift)]
            if not entry or memcmp(self.data + here, self.source + self.first + entry - 1, BLOCK):
                here += 2 * ((here - since) // HURRY) + 1  # an odd step meets every place of a stride in the end
                continue
            there = self.first + entry - 1
            before = _same_before(self.data + here, self.source + there, min(here - at, there - self.first))
            length = before + BLOCK + _same_from(
                self.data + here + BLOCK,
                self.source + there + BLOCK,
                min(end - here, self.stop - there) - BLOCK,
            )
            self.budget -= length
            if length >= JUMP and length > best.length:
                best = Match(here - before, there - before, length, self.number)
                skipped = best.at - at
                if start >= 0:
                    skipped += max(best.start - start, start - best.start)
                if length >= min(skipped, SURE):
                    break
                limit = min(end, at + min(PATIENCE * skipped, MOST_PATIENCE))
            if self.budget <= 0:
                break
            here += length - before
            since = here
        self.budget -= here - at
        return best


cdef uint64_t _word(const uint8_t *at) noexcept:
    cdef uint64_t word
    memcpy(&word, at, WORD)
    return word


cdef uint64_t _hashed(const uint8_t *at, int shift) noexcept:
    """Return the number of a block's entry."""
    return ((_word(at) * 0x9E3779B97F4A7C15ULL + _word(at + WORD)) * 0xC2B2AE3D27D4EB4FULL) >> shift


cdef bint _next_run(
    const uint8_t *one, const uint8_t *other, Py_ssize_t length, Py_ssize_t *begin, Py_ssize_t *run
) noexcept:
    """Find the next run of at least `LEAST` bytes that are the same at the same places."""
    cdef Py_ssize_t at = 0, edge = 0, start
    while at + WORD <= length:
        if _word(one + at) != _word(other + at):
            at += WORD
            continue
        start = at - _same_before(one + at, other + at, at - edge)
        at += WORD + _same_from(one + at + WORD, other + at + WORD, length - at - WORD)
        if at - start >= LEAST:
            begin[0], run[0] = start, at - start
            return True
        edge = at  # the byte here differs
        at += 1
    return False


cdef Py_ssize_t _same_from(const uint8_t *one, const uint8_t *other, Py_ssize_t most) noexcept:
    """Return how many bytes are the same from here on."""
    cdef Py_ssize_t same = 0
    while same + WORD <= most:
        if _word(one + same) != _word(other + same):
            break
        same += WORD
        if same == 16 * WORD:  # long enough for the faster comparison of the C library
            while same + 4096 <= most and not memcmp(one + same, other + same, 4096):
                same += 4096
            while same + 256 <= most and not memcmp(one + same, other + same, 256):
                same += 256
    while same < most and one[same] == other[same]:
        same += 1
    return same


cdef Py_ssize_t _same_before(const uint8_t *one, const uint8_t *other, Py_ssize_t most) noexcept:
    """Return how many bytes are the same up to here."""
    cdef Py_ssize_t same = 0
    while same + WORD <= most:
        if _word(one - same - WORD) != _word(other - same - WORD):
            break
        same += WORD
        if same == 16 * WORD:
            while same + 4096 <= most and not memcmp(one - same - 4096, other - same - 4096, 4096):
                same += 4096
            while same + 256 <= most and not memcmp(one - same - 256, other - same - 256, 256):
                same += 256
    while same < most and one[-same - 1] == other[-same - 1]:
        same += 1
    return same
