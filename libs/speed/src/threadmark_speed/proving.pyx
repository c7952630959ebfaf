# cython: language_level=3
"""Proving rows, compiled: the counterpart of `threadmark.saver.proving` for the sound rows of a checkpoint.

The write rows of a checkpoint are proven, compared with the records of their batches, unpacked, opened and sorted in
one call. Whatever is unusual (damage, a write that has a row and is in a pack, text with
surrogates) is left to the reference, which alone raises errors: nothing here says more than that rows are sound.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from threadmark_speed.checks cimport Packer
from threadmark_speed.plain cimport Bytes, read_value
from threadmark_speed.putting cimport mark_of
from threadmark_speed.tuples cimport named_tuple

from operator import attrgetter

from threadmark.errors import CorruptDataError
from threadmark.store.contract import WriteRow
from threadmark.format.packs import FIRST_RECORD, PACK
from threadmark.format.stored import Stored
from threadmark_speed.plain import NeedsReferenceError

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass

    PyTypeObject PyUnicode_Type, PyLong_Type, PyBytes_Type
    PyTypeObject *Py_TYPE(PyObject *found)
    Py_ssize_t PyTuple_GET_SIZE(object items)
    PyObject *PyTuple_GET_ITEM(object items, Py_ssize_t index)
    long long PyLong_AsLongLongAndOverflow(PyObject *number, int *overflow) except? -1
    int PyUnicode_Compare(PyObject *one, PyObject *other) except? -1
    object PyUnicode_DecodeUTF8(const char *content, Py_ssize_t size, const char *errors)

cdef enum:  # the fields of a `threadmark.store.contract.WriteRow`
    NS = 0
    CHECKPOINT
    TASK
    INDEX
    PATH
    CHANNEL
    VALUE
    ROW_CHECK
    FIELDS

cdef enum:
    MEMBER_FIELDS = 3  # of a write in a pack: its index, channel and value
    KEY_SIZE = 12  # `threadmark.format.digests.KEY_SIZE`

cdef object from_bytes = Stored.from_bytes
cdef object order = attrgetter("row.task_path", "row.task_id", "row.idx")
cdef int64_t first_record = FIRST_RECORD
cdef int64_t pack_index = PACK


def proven_writes(type write_class not None, thread_id, rows):
    """Return the proven writes among all write rows of some checkpoints, sorted, or None if the reference has to look.

    `write_class` is that of a pair of a row and its value.
    """
    if type(rows) is not list:
        return None
    try:
        return proven(thread_id, rows, write_class)
    except (NeedsReferenceError, UnicodeError, OverflowError, CorruptDataError):
        return None


cdef list proven(thread_id, list rows, type write_class):
    cdef Packer packer = Packer()
    cdef Py_ssize_t index
    cdef int overflow = 0
    cdef int64_t idx
    cdef list writes = [], recorded = [], records = []
    cdef bint is_sorted = True, has_packs = False, has_others = False
    for each in rows:
        if type(each) is not WriteRow or PyTuple_GET_SIZE(each) != FIELDS:
            raise NeedsReferenceError
        packer.begin(FIELDS + 1)
        packer.integer(mark_of(<object>PyTuple_GET_ITEM(each, INDEX)))
        packer.field(<PyObject *>thread_id)
        for index in range(ROW_CHECK):
            packer.field(PyTuple_GET_ITEM(each, index))
        if not packer.agrees(PyTuple_GET_ITEM(each, ROW_CHECK)):
            raise NeedsReferenceError
        expect_types(each)
        idx = PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(each, INDEX), &overflow)
        if idx >= first_record:
            records.append(each)
            continue
        recorded.append(each)
        last = <object>PyTuple_GET_ITEM(writes[-1], 0) if writes else None
        if idx >= pack_index:
            has_packs = True
            has_others |= idx > pack_index  # which may hold the same writes as the first of its task
            first = unpack(each, writes, write_class)
        else:
            has_others |= idx >= 0
            writes.append(named_tuple(write_class, (each, stored(<object>PyTuple_GET_ITEM(each, VALUE)))))
            first = each
        if last is not None and is_sorted:
            is_sorted = not follows(last, first)
    expect_recorded(recorded, records)
    if has_packs and has_others and len({write[0][:INDEX + 1] for write in writes}) < len(writes):
        raise NeedsReferenceError
    if not is_sorted:
        writes.sort(key=order)
    return writes


cdef object unpack(pack, list writes, type write_class):
    """Append the writes in a pack. Returns the row of the first."""
    cdef Py_ssize_t position, before = -1, index
    cdef list fields = packed_fields(<bytes>PyTuple_GET_ITEM(pack, VALUE))
    cdef object first = None
    ns, checkpoint_id, task, _, path, _, _, _ = <tuple>pack
    if not fields or len(fields) % MEMBER_FIELDS:
        raise NeedsReferenceError
    for position in range(0, len(fields), MEMBER_FIELDS):
        number, channel, body = fields[position], fields[position + 1], fields[position + 2]
        if type(number) is not int or type(channel) is not str or type(body) is not bytes:
            raise NeedsReferenceError
        index = number
        if index <= before:
            raise NeedsReferenceError
        before = index
        row = named_tuple(WriteRow, (ns, checkpoint_id, task, number, path, channel, body, b""))
        writes.append(named_tuple(write_class, (row, stored(body))))
        if first is None:
            first = row
    return first


cdef int expect_types(row) except -1:
    """Raise for a row that has other types than a write's: only the reference can handle it."""
    cdef int index
    for index in (NS, CHECKPOINT, TASK, PATH, CHANNEL):
        if Py_TYPE(PyTuple_GET_ITEM(row, index)) is not &PyUnicode_Type:
            raise NeedsReferenceError
    if Py_TYPE(PyTuple_GET_ITEM(row, INDEX)) is not &PyLong_Type:
        raise NeedsReferenceError
    if Py_TYPE(PyTuple_GET_ITEM(row, VALUE)) is not &PyBytes_Type:
        raise NeedsReferenceError
    return 0


cdef bint follows(one, other) except -1:
    """Whether the first of two rows belongs behind the second."""
    cdef int found = compared(one, other, PATH)
    cdef int overflow = 0
    if found == 0:
        found = compared(one, other, TASK)
    if found:
        return found > 0
    return (
        PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(one, INDEX), &overflow)
        > PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(other, INDEX), &overflow)
    )


cdef inline int compared(one, other, int field) except -2:
    cdef PyObject *this = PyTuple_GET_ITEM(one, field)
    cdef PyObject *that = PyTuple_GET_ITEM(other, field)
    return 0 if this is that else PyUnicode_Compare(this, that)


cdef object stored(bytes body):
    """Return the stored form that a row holds. A literal's is made here."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(body), start
    cdef unsigned char *content = <unsigned char *>PyBytes_AS_STRING(body)
    if size < 2 or content[0] != 0 or size < 2 + content[1]:
        return from_bytes(body)
    start = 2 + content[1]
    tag = PyUnicode_DecodeUTF8(<char *>content + 2, start - 2, "surrogatepass")
    return named_tuple(Stored, (tag, PyBytes_FromStringAndSize(<char *>content + start, size - start), b"", body))


cdef int expect_recorded(list rows, list records) except -1:
    """Raise unless the records of batches list these rows, and no other."""
    cdef Py_ssize_t position = 0
    cdef bint in_step = True
    listed = []
    for record in records:
        for index in indexes(<bytes>PyTuple_GET_ITEM(record, VALUE)):
            listed.append((record, index))
    if len(listed) == len(rows):
        for position in range(len(rows)):
            record, index = listed[position]
            each = rows[position]
            in_step = (
                <object>PyTuple_GET_ITEM(each, INDEX) == index and compared(each, record, TASK) == 0
                and compared(each, record, CHECKPOINT) == 0 and compared(each, record, NS) == 0
            )
            if not in_step:
                break
        if in_step:
            return 0
    there = {row[:INDEX + 1] for row in rows}
    if there != {(*record[:INDEX], index) for record, index in listed}:
        raise NeedsReferenceError
    return 0


cdef list packed_fields(bytes body):
    """Return the fields of the writes in the value of a pack: the keys of segments, and an array."""
    cdef Bytes left
    left.next = <const unsigned char *>PyBytes_AS_STRING(body)
    left.end = left.next + PyBytes_GET_SIZE(body)
    if left.next == left.end or left.end - left.next <= 1 + left.next[0] * KEY_SIZE:
        raise NeedsReferenceError
    left.next += 1 + left.next[0] * KEY_SIZE
    found = read_value(&left, 0)
    if type(found) is not list or left.next != left.end:
        raise NeedsReferenceError
    return found


cdef list indexes(bytes body):
    """Return the indexes that a record's body lists: a literal without a tag, an array of integers."""
    cdef Bytes left
    left.next = <const unsigned char *>PyBytes_AS_STRING(body)
    left.end = left.next + PyBytes_GET_SIZE(body)
    if left.end - left.next < 2 or left.next[0] or left.next[1]:
        raise NeedsReferenceError
    left.next += 2
    found = read_value(&left, 0)
    if type(found) is not list or left.next != left.end:
        raise NeedsReferenceError
    for index in <list>found:
        if type(index) is not int:
            raise NeedsReferenceError
    return found
