# cython: language_level=3
"""Reading msgpack of builtin types, compiled: what `threadmark.serde.wire.unpack_fast` does, for the usual values.

A state of small channels is a few numbers and short texts, each in an encoding of its own: to call an unpacker for each
takes longer than to read it. Whatever is unusual (marks, odd keys, deep nesting, damage) is left to the reference,
which alone raises errors.

Nothing in the bytes is trusted: each length is compared with what is left before anything is read or allocated.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.float cimport PyFloat_FromDouble
from cpython.long cimport PyLong_FromLong, PyLong_FromLongLong, PyLong_FromUnsignedLongLong
from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char *content, Py_ssize_t size, const char *errors)
    PyObject *PyTuple_GET_ITEM(object items, Py_ssize_t index)
    bint PyTuple_Check(object found)
    Py_ssize_t PyTuple_GET_SIZE(object items)
    Py_UCS4 PyUnicode_READ_CHAR(object text, Py_ssize_t index)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)

cdef enum:
    DEEPEST = 32  # levels; a state's small values have one or two

cdef enum:  # the fields of a `threadmark.stored.Stored`
    TAG = 0
    PACKED = 1
    DIGEST = 2

cdef Py_UCS4 PLAIN = "m"  # `threadmark.serde.serializer.PLAIN`


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


cdef inline object text(Bytes *left, uint64_t size):
    expect(left, size)
    start = <const char *>left.next
    left.next += size
    return PyUnicode_DecodeUTF8(start, <Py_ssize_t>size, NULL)


cdef inline object real(Bytes *left):
    cdef uint64_t bits = number(left, 8)
    cdef double found
    memcpy(&found, &bits, 8)
    return PyFloat_FromDouble(found)


cdef object array(Bytes *left, uint64_t count, int depth):
    cdef list found = []
    expect(left, count)  # each item takes a byte at least
    for _ in range(<Py_ssize_t>count):
        found.append(read_value(left, depth + 1))  # no room is made for what is only announced
    return found


cdef object mapping(Bytes *left, uint64_t count, int depth):
    cdef dict found = {}
    expect(left, 2 * count)
    for _ in range(<Py_ssize_t>count):
        key = read_value(left, depth + 1)
        if type(key) is not str:  # what else may be a key is the reference's to say
            raise NeedsReferenceError
        found[key] = read_value(left, depth + 1)
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
    cdef Bytes left
    left.next = <const unsigned char *>PyBytes_AS_STRING(encoded)
    left.end = left.next + PyBytes_GET_SIZE(encoded)
    found = read_value(&left, 0)
    if left.next != left.end:
        raise NeedsReferenceError
    return found


def unpack(bytes encoded not None):
    """Return the value. Raises NeedsReferenceError where the reference has to read it."""
    try:
        return whole(encoded)
    except UnicodeDecodeError:
        raise NeedsReferenceError from None


cdef bint is_plain(stored) except -1:
    """Whether a `Stored` is a literal of builtin types: no digest, and the tag of plain values."""
    if not PyTuple_Check(stored) or PyTuple_GET_SIZE(stored) <= DIGEST:
        return False
    tag, packed, digest = (
        <object>PyTuple_GET_ITEM(stored, TAG), <object>PyTuple_GET_ITEM(stored, PACKED),
        <object>PyTuple_GET_ITEM(stored, DIGEST),
    )
    return (
        type(digest) is bytes and PyBytes_GET_SIZE(digest) == 0
        and type(tag) is str and PyUnicode_GET_LENGTH(tag) == 1 and PyUnicode_READ_CHAR(tag, 0) == PLAIN
        and type(packed) is bytes
    )


def values(dict stored not None, read):
    """Return the values of channels. `read` is called for one that is no plain literal, with its channel and it."""
    cdef dict found = {}
    for channel, value in stored.items():
        if is_plain(value):
            try:
                found[channel] = whole(<bytes>PyTuple_GET_ITEM(value, PACKED))
                continue
            except (NeedsReferenceError, UnicodeDecodeError):
                pass
        found[channel] = read(channel, value)
    return found


def pending_writes(list writes not None, read):
    """Return what tasks wrote as (task, channel, value). `read` is called for a write whose value is no plain literal.

    A write is a pair of its row, which begins with namespace, checkpoint, task, index, path and channel, and its value.
    """
    cdef list found = []
    for write in writes:
        row, value = write
        if is_plain(value):
            try:
                found.append((row[2], row[5], whole(<bytes>PyTuple_GET_ITEM(value, PACKED))))
                continue
            except (NeedsReferenceError, UnicodeDecodeError):
                pass
        found.append(read(write))
    return found
