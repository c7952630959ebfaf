"""What other modules need of putting."""

cdef bytes scalar_bytes(value)
