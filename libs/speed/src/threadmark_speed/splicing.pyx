# cython: language_level=3
"""A header made of its parent's encoding: what has not changed is copied in long runs, and only the rest is packed.

To pack all of it would touch several objects for each channel, which have left the processor's caches since the step
before. The parent's encoding is one piece of memory that has to be read anyway, to find what is new in it.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Next
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t

from threadmark_speed.packing cimport Packer

from threadmark_speed.packing import CannotPackError

cdef extern from "Python.h":
    Py_ssize_t PyTuple_GET_SIZE(object items)
    PyObject *PyTuple_GET_ITEM(object items, Py_ssize_t index)

cdef enum:
    FIELDS = 0x94  # the header of a list of four
    NIL = 0xC0
    STORED_FIELDS = 4  # of `stored.Stored`
    BODY = 3
    LONGER = 1024  # bytes that a header may get longer before room has to be made again


def _refuse():
    """What a packer asks for where it meets anything but builtin types."""
    raise CannotPackError


cdef class _Old:
    """The parent's encoding, and how far it has been read. None of it is copied until the run that it is in ends."""

    cdef bytes encoding
    cdef const uint8_t *data
    cdef Py_ssize_t begun, at, end  # of the run, of what comes next, and of the encoding

    cdef bint pass_one(self) noexcept:
        """Pass a text, a number or bytes. Returns whether it is one, and all of it is there."""
        cdef Py_ssize_t left = self.end - self.at, size = 1
        cdef uint8_t header
        if left < 1:
            return False
        header = self.data[self.at]
        if 0xA0 <= header <= 0xBF:
            size += header - 0xA0
        elif header == 0xC4 or header == 0xD9:
            size += 1 + self.number(1)
        elif header == 0xC5 or header == 0xDA:
            size += 2 + self.number(2)
        elif header == 0xC6 or header == 0xDB:
            size += 4 + self.number(4)
        elif header == 0xCC or header == 0xD0:
            size += 1
        elif header == 0xCD or header == 0xD1:
            size += 2
        elif header == 0xCE or header == 0xD2:
            size += 4
        elif header == 0xCB or header == 0xCF or header == 0xD3:
            size += 8
        elif 0x80 <= header <= 0xDF:
            return False
        if left < size:
            return False
        self.at += size
        return True

    cdef Py_ssize_t number(self, int width) noexcept:
        """Return the number behind a header, more than there can be where it is cut off."""
        cdef Py_ssize_t number = 0
        cdef int index
        if self.end - self.at <= width:
            return self.end
        for index in range(1, width + 1):
            number = number << 8 | self.data[self.at + index]
        return number

    cdef bint pass_count(self, Py_ssize_t count) noexcept:
        """Pass the header of a dictionary. Returns whether it is one of so many entries."""
        cdef uint8_t header = self.data[self.at] if self.at < self.end else NIL
        if 0x80 <= header <= 0x8F:
            self.at += 1
            return count == header - 0x80
        if header != 0xDE or self.number(2) != count:  # more than 65,535 are left to the packer
            return False
        self.at += 3
        return True

    cdef int copy_run(self, Packer packer) except -1:
        """Copy what was passed since the last run ended."""
        packer.write(<const char *>self.data + self.begun, self.at - self.begun)
        self.begun = self.at
        return 0


cdef bytes spliced_header(dict versions, dict values, bytes plain, dict held, dict stored, bytes encoding):
    """Return what `header.Header.to_bytes` does for one without further fields.

    `encoding` is that of its parent, which has these versions and values and no further fields either. Returns None
    where the two differ in more than a few versions and values: in a channel, or in the order of channels.
    """
    cdef _Old old = _Old.__new__(_Old)
    cdef Packer packer
    if len(versions) != len(held) or len(values) != len(stored):
        return None
    old.encoding, old.data = encoding, <const uint8_t *>PyBytes_AS_STRING(encoding)
    old.at, old.end = 1, PyBytes_GET_SIZE(encoding)
    if old.end < 1 or old.data[0] != FIELDS or not old.pass_one():
        return None
    packer = Packer(_refuse)
    packer.reserve(old.end + PyBytes_GET_SIZE(plain) + LONGER)
    packer.byte(FIELDS)
    packer.value(plain, 1, False)
    old.begun = old.at
    if not _splice(packer, old, versions, held, False) or not _splice(packer, old, values, stored, True):
        return None
    if old.end - old.at != 1 or old.data[old.at] != NIL:
        return None
    old.at += 1
    old.copy_run(packer)
    return packer.finished()


cdef bint _splice(Packer packer, _Old old, dict own, dict before, bint are_stored) except -1:
    """Write a dictionary. Returns whether its keys are those of the one before. No other code runs meanwhile."""
    cdef Py_ssize_t position = 0, position_before = 0
    cdef PyObject *key
    cdef PyObject *key_before
    cdef PyObject *value
    cdef PyObject *value_before
    if not old.pass_count(len(own)):
        return False
    while PyDict_Next(own, &position, &key, &value):
        if not PyDict_Next(before, &position_before, &key_before, &value_before) or key != key_before:
            return False
        if not old.pass_one():
            return False
        if value == value_before:
            if not old.pass_one():
                return False
            continue
        old.copy_run(packer)
        if not old.pass_one():
            return False
        old.begun = old.at
        packer.value(stored_field(<object>value, BODY) if are_stored else <object>value, 2, False)
    return True


cdef object stored_field(stored, int index):
    """Return a field of a `stored.Stored` that is bytes."""
    if not isinstance(stored, tuple) or PyTuple_GET_SIZE(stored) != STORED_FIELDS:
        raise CannotPackError
    found = <object>PyTuple_GET_ITEM(stored, index)
    if type(found) is not bytes:
        raise CannotPackError
    return found
