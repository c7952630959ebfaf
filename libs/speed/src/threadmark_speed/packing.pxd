"""The parts of the packer that other modules need."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint64_t


@cython.final
cdef class Packer:
    cdef object begin, new_writer, new_mark
    cdef dict writers, marks
    cdef PyObject *out  # bytes without another owner
    cdef char *start
    cdef Py_ssize_t used, room

    cdef int resize(self, Py_ssize_t room) except -1
    cdef int reserve(self, Py_ssize_t more) except -1
    cdef int grow(self, Py_ssize_t more) except -1
    cdef bytes finished(self)
    cdef int write(self, const char *content, Py_ssize_t size) except -1
    cdef int byte(self, uint8_t byte) except -1
    cdef int number(self, uint8_t header, uint64_t number, int width) except -1
    cdef int length(self, uint8_t short, Py_ssize_t below, uint8_t header, bint has_byte, Py_ssize_t length) except -1
    cdef int text(self, text) except -1
    cdef int integer(self, value, int depth) except -1
    cdef int real(self, value) except -1
    cdef int array(self, list items, int depth, bint opaque) except -1
    cdef int mapping(self, dict items, int depth, bint opaque) except -1
    cdef int buffer(self, value) except -1
    cdef int item(self, value, int depth) except -1
    cdef int value(self, value, int depth, bint opaque) except -1
