# cython: language_level=3
"""The parts of the checks of rows that other compiled modules use."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

cdef enum:
    CHECK = 12  # bytes of a check
    RECORDED = 2  # `threadmark.saver.proving.RECORDED`
    PACKED = 3  # and `PACKED`: either is one packed byte


cdef class Packer:
    cdef unsigned char *start
    cdef Py_ssize_t used, room
    cdef unsigned char check[CHECK]

    cdef int begin(self, int count) except -1
    cdef int field(self, PyObject *value) except -1
    cdef bint hold(self, list fields) except -1
    cdef bint agrees(self, PyObject *check) except -1
    cdef int reserve(self, Py_ssize_t more) except -1
    cdef int header(self, unsigned char first, uint64_t number, int width) except -1
    cdef int integer(self, int64_t number) except -1
    cdef int length(self, unsigned char first, Py_ssize_t size) except -1

cdef bytes check_of_bytes(const unsigned char *data, Py_ssize_t size)
