# cython: language_level=3
"""The parts of the reader of plain values that other compiled modules use."""

cdef struct Bytes:
    const unsigned char *next
    const unsigned char *end

cdef object read_value(Bytes *left, int depth)

cdef object whole(bytes encoded)
