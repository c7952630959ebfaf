# cython: language_level=3
"""Reading usual msgpack of builtin types: the compiled counterpart of `threadmark.serde.wire.unpack_plain`.

A state of small channels is a few numbers and short texts, each in a separate encoding: to call an unpacker for each
takes longer than to read it. A large value is read in place, and need not be copied to find its end.
Whatever is unusual (marks, odd keys, deep nesting, damage) is left to the reference, which alone raises errors.

Nothing in the bytes is trusted: each length is compared with the rest before anything is read or allocated.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.float cimport PyFloat_FromDouble
from cpython.long cimport PyLong_FromLong, PyLong_FromLongLong, PyLong_FromUnsignedLongLong
from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy

cdef extern from *:
    """
    /* Whether all bytes are ASCII: asked for 32 at once, which is most of the work for a long text. */
    static int all_ascii(const unsigned char *next, size_t size) {
        const unsigned char *end = next + size;
        uint64_t some[4];
        for (; end - next >= 32; next += 32) {
            memcpy(some, next, 32);
            if ((some[0] | some[1] | some[2] | some[3]) & 0x8080808080808080ULL) return 0;
        }
        for (; end - next >= 8; next += 8) {
            memcpy(some, next, 8);
            if (some[0] & 0x8080808080808080ULL) return 0;
        }
        some[0] = 0;
        memcpy(some, next, end - next);
        return !(some[0] & 0x8080808080808080ULL);
    }
    """
    bint all_ascii(const unsigned char *next, size_t size) noexcept nogil

cdef extern from "Python.h":
    object PyUnicode_New(Py_ssize_t size, Py_UCS4 greatest)
    void *PyUnicode_DATA(object text)
    bint PyUnicode_IS_ASCII(object text)
    PyObject *PyList_GET_ITEM(list items, Py_ssize_t index)
    object PyUnicode_DecodeUTF8(const char *content, Py_ssize_t size, const char *errors)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)

cdef enum:
    DEEPEST = 32  # levels; a state's small values have one or two
    KEYS = 256  # that are known; a power of two

cdef list known_keys = [""] * KEYS
"""Keys of dictionaries, each at the place that its bytes give: the items of a list mostly have the same ones."""


class NeedsReferenceError(Exception):
    """The bytes hold something that only the reference reads, or reports."""


cdef inline int expect(Bytes *left, uint64_t size) except -1:
    """Raise unless so many bytes are left."""
    if <uint64_t>(left.end - left.next) < size:
        raise NeedsReferenceError
    return 0


cdef inline uint64_t number(Bytes *left, int width) except? 0xFFFFFFFFFFFFFFFF:
    """Read a number of so many bytes, the most significant first."""
    cdef uint64_t found = 0
    cdef int index
    expect(left, width)
    for index in range(width):
        found = found << 8 | left.next[index]
    left.next += width
    return found


cdef object text(Bytes *left, uint64_t size):
    cdef const unsigned char *start
    expect(left, size)
    start = left.next
    left.next += size
    if size < 2 or not all_ascii(start, size):  # a text of one letter is there already
        return PyUnicode_DecodeUTF8(<const char *>start, <Py_ssize_t>size, NULL)
    found = PyUnicode_New(<Py_ssize_t>size, 127)
    memcpy(PyUnicode_DATA(found), start, size)
    return found


cdef object key(Bytes *left, int depth):
    """Read a key: text mostly, and mostly one that was read before."""
    cdef uint8_t first
    cdef Py_ssize_t size, at
    cdef const unsigned char *start
    expect(left, 1)
    first = left.next[0]
    size = first & 0x1F
    if not 0xA0 < first < 0xC0 or left.end - left.next <= size:
        found = read_value(left, depth)
        if type(found) is list or type(found) is dict:  # the reference decides about other keys
            raise NeedsReferenceError
        return found
    start = left.next + 1
    at = (size + 7 * start[0] + 31 * start[size >> 1] + 127 * start[size - 1]) & (KEYS - 1)
    found = <object>PyList_GET_ITEM(known_keys, at)
    if PyUnicode_GET_LENGTH(found) == size and memcmp(PyUnicode_DATA(found), start, size) == 0:
        left.next += 1 + size
        return found
    left.next += 1
    found = text(left, size)
    if PyUnicode_IS_ASCII(found):  # its bytes are then those that are compared
        known_keys[at] = found
    return found


cdef inline object real(Bytes *left):
    cdef uint64_t bits = number(left, 8)
    cdef double found
    memcpy(&found, &bits, 8)
    return PyFloat_FromDouble(found)


cdef object array(Bytes *left, uint64_t count, int depth):
    cdef list found = []
    expect(left, count)  # each item takes a byte at least
    for _ in range(<Py_ssize_t>count):
        found.append(read_value(left, depth + 1))  # no room is made for announced items
    return found


cdef object mapping(Bytes *left, uint64_t count, int depth):
    cdef dict found = {}
    expect(left, 2 * count)
    for _ in range(<Py_ssize_t>count):
        name = key(left, depth + 1)
        found[name] = read_value(left, depth + 1)
    return found


cdef object read_value(Bytes *left, int depth):
    """Read one value of builtin types. Raises NeedsReferenceError, or UnicodeDecodeError, for anything else."""
    cdef uint8_t first
    cdef uint64_t size
    expect(left, 1)
    first = left.next[0]
    left.next += 1
    if first < 0x80:
        return PyLong_FromLong(first)
    if first >= 0xE0:
        return PyLong_FromLong(<int8_t>first)
    if 0xA0 <= first < 0xC0:
        return text(left, first & 0x1F)
    if first == 0xC0:
        return None
    if first == 0xC2 or first == 0xC3:
        return first == 0xC3
    if first == 0xCB:
        return real(left)
    if 0xCC <= first <= 0xCF:
        return PyLong_FromUnsignedLongLong(number(left, 1 << (first - 0xCC)))
    if first == 0xD0:
        return PyLong_FromLong(<int8_t>number(left, 1))
    if first == 0xD1:
        return PyLong_FromLong(<int16_t>number(left, 2))
    if first == 0xD2:
        return PyLong_FromLong(<int32_t>number(left, 4))
    if first == 0xD3:
        return PyLong_FromLongLong(<int64_t>number(left, 8))
    if 0xD9 <= first <= 0xDB:
        return text(left, number(left, 1 << (first - 0xD9)))
    if 0xC4 <= first <= 0xC6:
        size = number(left, 1 << (first - 0xC4))
        expect(left, size)
        left.next += size
        return PyBytes_FromStringAndSize(<const char *>left.next - size, <Py_ssize_t>size)
    if depth == DEEPEST:
        raise NeedsReferenceError
    if first < 0x90:
        return mapping(left, first & 0x0F, depth)
    if first < 0xA0:
        return array(left, first & 0x0F, depth)
    if first == 0xDC or first == 0xDD:
        return array(left, number(left, 2 if first == 0xDC else 4), depth)
    if first == 0xDE or first == 0xDF:
        return mapping(left, number(left, 2 if first == 0xDE else 4), depth)
    raise NeedsReferenceError  # an extension, half a float, or no msgpack


cdef object whole(bytes encoded):
    """Read a value that is all of the bytes. Raises as `read_value` does."""
    cdef Bytes left
    left.next = <const unsigned char *>PyBytes_AS_STRING(encoded)
    left.end = left.next + PyBytes_GET_SIZE(encoded)
    found = read_value(&left, 0)
    if left.next != left.end:
        raise NeedsReferenceError
    return found


def unpack(encoded):
    """Return the value. Raises NeedsReferenceError if the reference has to read it."""
    if type(encoded) is not bytes:
        raise NeedsReferenceError
    try:
        return whole(encoded)
    except UnicodeDecodeError:
        raise NeedsReferenceError from None
