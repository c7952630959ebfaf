"""The parts of the search that the decisions need."""

ctypedef struct Match:
    Py_ssize_t at  # its beginning in the value
    Py_ssize_t start  # its beginning in the source
    Py_ssize_t length
    Py_ssize_t source  # the number of the source


cdef class Matches:
    cdef Match *items
    cdef Py_ssize_t count
    cdef Py_ssize_t room
    cdef int add(self, Py_ssize_t at, Py_ssize_t start, Py_ssize_t length, Py_ssize_t source) except -1
    cdef void sort(self, Py_ssize_t first) noexcept


cdef Matches found(bytes data, list sources)
