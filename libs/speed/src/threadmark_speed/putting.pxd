"""The parts of putting that other modules need."""

cdef bytes scalar_bytes(value)
cdef int mark_of(object idx) except -1
