# cython: language_level=3
"""What the other compiled modules use of the reader of plain values."""

cdef struct Bytes:
    const unsigned char *next
    const unsigned char *end

cdef object read_value(Bytes *left, int depth)

cdef object whole(bytes encoded)
