"""The parts of packed manifests that the other modules need."""

from libc.stdint cimport int64_t, uint8_t

cdef enum:
    KEY_SIZE = 12
    MOST_SEGMENTS = 48
    MOST_PARTS = 512
    LITERALS = -1  # the index that stands for the bytes in which literals are


ctypedef struct Part:
    int64_t at  # its place in the value
    int64_t start  # its beginning in its segment, or in the bytes with the literals
    int64_t length
    int index  # of its segment


cdef class Layout:
    cdef readonly bytes packed
    cdef readonly int64_t length  # of the value
    cdef int count  # of segments
    cdef int64_t numbers[MOST_SEGMENTS]  # their lengths
    cdef Part *items
    cdef Py_ssize_t items_count
    cdef tuple names


cpdef Layout layout(bytes packed)

cdef bytes packed_form(
    const uint8_t *keys, const int64_t *sizes, int segments, const Part *parts, Py_ssize_t count, const uint8_t *literals
)
