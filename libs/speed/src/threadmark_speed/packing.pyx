# cython: language_level=3
"""Writing values as msgpack: builtin types, and objects as arrays of a mark and their state.

The reference is `threadmark.serde.encoder`. Its questions are asked here, too, in the same order; a value that
only it can judge (deeper than most, changed while it was written, a buffer in pieces) is left to it.

Unlike the packers that the reference has to work with, this one looks at the type of every value, so that nothing can
slip in as something else.

The user's code may run whenever an object is taken apart. So lists are read by index, and their length is looked at
again each time; the entries of a dictionary have our own references, and its length must stay the same.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Next
from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.list cimport PyList_GET_SIZE
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from threadmark_speed.objects cimport ObjectWriter

from functools import partial

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass

    PyTypeObject *Py_TYPE(object found)
    PyTypeObject PyUnicode_Type, PyLong_Type, PyBool_Type, PyFloat_Type, PyBytes_Type, PyDict_Type, PyList_Type
    PyObject *PyDict_GetItemWithError(object mapping, object key) except? NULL
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1
    unsigned long long PyLong_AsUnsignedLongLong(object number) except? 0xFFFFFFFFFFFFFFFF
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    void *PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    PyObject *new_bytes "PyBytes_FromStringAndSize"(const char *content, Py_ssize_t size) except NULL
    int _PyBytes_Resize(PyObject **content, Py_ssize_t size) except -1
    void Py_XDECREF(PyObject *found)

cdef enum:
    DEEPEST = 128  # levels; each takes a few hundred bytes of the C stack
    FIRST_ROOM = 256  # bytes
    LONG = 65536  # bytes from which on room is made for as much as the last long value took
    MOST_GUESSED = 1 << 23  # bytes of room made for that reason

cdef Py_ssize_t last_long = 0, most_kept = 0


cdef void keep_freed(Py_ssize_t room) noexcept:
    """Have the C library keep the memory of long values that are freed for the next ones.

    glibc gives large blocks back to the kernel, which must clear every page for the next value: a fourth of the time of
    a put of 1.3 MB. It keeps blocks shorter than the longest that was freed before (mallopt(3), M_MMAP_THRESHOLD), so
    a longer one, of which no page is touched, is freed here.
    """
    global most_kept
    if most_kept < room <= MOST_GUESSED:
        most_kept = room + room // 4
        PyMem_RawFree(PyMem_RawMalloc(most_kept))


class CannotPackError(Exception):
    """The value holds something that only the reference can judge."""


cdef class Packer:
    """Writes one value. `begin` returns the parts needed for the first object: known writers, a function that returns
    the writer of another class, known marks, and a function that returns the mark of another shape."""

    def __cinit__(self, begin):
        self.begin = begin
        self.out = NULL
        self.resize(FIRST_ROOM)

    def __dealloc__(self):
        Py_XDECREF(self.out)

    cdef int resize(self, Py_ssize_t room) except -1:
        if self.out is NULL:
            self.out = new_bytes(NULL, room)
        else:
            _PyBytes_Resize(&self.out, room)
        self.start, self.room = PyBytes_AS_STRING(<object>self.out), room
        return 0

    cdef int reserve(self, Py_ssize_t more) except -1:
        """Make room for more bytes."""
        return 0 if self.room - self.used >= more else self.grow(more)

    cdef int grow(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t room = max(2 * self.room, self.used + more)
        if room >= LONG:
            room = max(room, min(last_long + last_long // 16, MOST_GUESSED))
            keep_freed(room)
        return self.resize(room)

    cdef bytes finished(self):
        global last_long
        self.resize(self.used)
        if self.used >= LONG:
            last_long = self.used
        return <bytes>self.out

    cdef int write(self, const char *content, Py_ssize_t size) except -1:
        if size:
            self.reserve(size)
            memcpy(self.start + self.used, content, size)
            self.used += size
        return 0

    cdef int byte(self, uint8_t byte) except -1:
        self.reserve(1)
        self.start[self.used] = <char>byte
        self.used += 1
        return 0

    cdef int number(self, uint8_t header, uint64_t number, int width) except -1:
        """Write a header and a number of so many bytes, the most significant first."""
        cdef int index
        self.reserve(1 + width)
        self.start[self.used] = <char>header
        for index in range(width):
            self.start[self.used + width - index] = <char>(number >> (8 * index) & 0xFF)
        self.used += 1 + width
        return 0

    cdef int length(self, uint8_t short, Py_ssize_t below, uint8_t header, bint has_byte, Py_ssize_t length) except -1:
        """Write the header of something of this length. `header` is that of the least width."""
        if length < below:
            return self.byte(short + <uint8_t>length)
        if has_byte:
            if length <= 0xFF:
                return self.number(header, length, 1)
            header += 1
        if length <= 0xFFFF:
            return self.number(header, length, 2)
        if length <= 0xFFFFFFFF:
            return self.number(header + 1, length, 4)
        raise CannotPackError

    cdef int text(self, text) except -1:
        cdef Py_ssize_t size
        cdef const char *content
        if PyUnicode_IS_COMPACT_ASCII(text):
            content, size = <const char *>PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text)
        else:
            try:
                content = PyUnicode_AsUTF8AndSize(text, &size)
            except UnicodeEncodeError:
                text = (<str>text).encode("utf-8", "surrogatepass")
                content, size = PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)
        self.reserve(size + 5)
        self.length(0xA0, 32, 0xD9, True, size)
        memcpy(self.start + self.used, content, size)
        self.used += size
        return 0

    cdef int integer(self, value, int depth) except -1:
        cdef int overflow = 0
        cdef int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow < 0:
            return self.item(value, depth)
        if overflow > 0:
            try:
                return self.number(0xCF, PyLong_AsUnsignedLongLong(value), 8)
            except OverflowError:
                return self.item(value, depth)
        if number >= 0:
            if number < 0x80:
                return self.byte(<uint8_t>number)
            if number <= 0xFF:
                return self.number(0xCC, number, 1)
            if number <= 0xFFFF:
                return self.number(0xCD, number, 2)
            return self.number(0xCE, number, 4) if number <= 0xFFFFFFFF else self.number(0xCF, number, 8)
        if number >= -32:
            return self.byte(<uint8_t>number)
        if number >= -0x80:
            return self.number(0xD0, number, 1)
        if number >= -0x8000:
            return self.number(0xD1, number, 2)
        return self.number(0xD2, number, 4) if number >= -0x80000000LL else self.number(0xD3, number, 8)

    cdef int real(self, value) except -1:
        cdef double number = PyFloat_AS_DOUBLE(value)
        cdef uint64_t bits
        memcpy(&bits, &number, 8)
        return self.number(0xCB, bits, 8)

    cdef int array(self, list items, int depth, bint opaque) except -1:
        cdef Py_ssize_t count = PyList_GET_SIZE(items), index
        self.length(0x90, 16, 0xDC, False, count)
        for index in range(count):
            if index >= PyList_GET_SIZE(items):
                raise CannotPackError
            self.value(items[index], depth + 1, opaque)
        if count != PyList_GET_SIZE(items):
            raise CannotPackError
        return 0

    cdef int mapping(self, dict items, int depth, bint opaque) except -1:
        cdef Py_ssize_t position = 0, count = len(items), written = 0
        cdef PyObject *key
        cdef PyObject *value
        self.length(0x80, 16, 0xDE, False, count)
        while PyDict_Next(items, &position, &key, &value):
            own_key, own_value = <object>key, <object>value  # writing them may run code that changes the dictionary
            self.value(own_key, depth + 1, opaque)
            self.value(own_value, depth + 1, opaque)
            written += 1
            if len(items) != count:
                raise CannotPackError
        if written != count:
            raise CannotPackError
        return 0

    cdef int buffer(self, value) except -1:
        cdef Py_buffer view
        try:
            PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
        except BufferError:
            raise CannotPackError from None
        try:
            self.length(0, 0, 0xC4, True, view.len)
            self.write(<const char *>view.buf, view.len)
        finally:
            PyBuffer_Release(&view)
        return 0

    cdef int item(self, value, int depth) except -1:
        """Write an object: an array of its mark and its state."""
        cdef PyObject *found
        cdef Py_ssize_t index, count
        cdef bint opaque = False
        cdef list items
        if self.writers is None:
            self.writers, self.new_writer, self.marks, self.new_mark = self.begin()
        found = PyDict_GetItemWithError(self.writers, type(value))
        writer = self.new_writer(type(value)) if found is NULL else <object>found
        if type(writer) is ObjectWriter:
            items = (<ObjectWriter>writer).items(value)
        else:
            found_items = writer(value)
            if type(found_items) is not list or not found_items:
                raise CannotPackError
            items = found_items
        shape = items[0]
        if type(writer) is not ObjectWriter:
            opaque = shape.opaque
        count = PyList_GET_SIZE(items)
        self.length(0x90, 16, 0xDC, False, count)
        found = PyDict_GetItemWithError(self.marks, shape)
        mark = self.new_mark(shape) if found is NULL else <object>found
        self.write(PyBytes_AS_STRING(mark), PyBytes_GET_SIZE(mark))
        for index in range(1, count):
            if index >= PyList_GET_SIZE(items):
                raise CannotPackError
            self.value(items[index], depth + 1, opaque)
        return 0

    cdef int value(self, value, int depth, bint opaque) except -1:
        """Write any value. The state of an opaque shape may hold buffers, which are written as bytes."""
        cdef PyTypeObject *cls = Py_TYPE(value)
        if cls is &PyUnicode_Type:
            return self.text(value)
        if value is None:
            return self.byte(0xC0)
        if cls is &PyLong_Type:
            return self.integer(value, depth)
        if cls is &PyBool_Type:
            return self.byte(0xC3 if value is True else 0xC2)
        if cls is &PyFloat_Type:
            return self.real(value)
        if cls is &PyBytes_Type:
            self.length(0, 0, 0xC4, True, PyBytes_GET_SIZE(value))
            return self.write(PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
        if depth > DEEPEST:
            raise CannotPackError
        if cls is &PyDict_Type:
            return self.mapping(<dict>value, depth, opaque)
        if cls is &PyList_Type:
            return self.array(<list>value, depth, opaque)
        if opaque and (type(value) is memoryview or type(value) is bytearray):
            return self.buffer(value)
        return self.item(value, depth)


def pack(for_objects, value, dispatch):
    """Return the encoding, and whether there are marks in it. Raises CannotPackError if only the reference can tell.

    `for_objects(dispatch)` returns the packer's parts for objects; it is called at the first object.
    """
    packer = Packer(partial(for_objects, dispatch))
    packer.value(value, 0, False)
    return packer.finished(), packer.writers is not None
