"""What other modules need of putting."""

cdef bytes scalar_bytes(value)
cdef int mark_of(object idx) except -1
