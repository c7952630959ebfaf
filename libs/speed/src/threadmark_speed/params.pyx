# cython: language_level=3
"""The parameters of Postgres' statements, compiled: those of one checkpoint, of what one task wrote, and their binary
form. The references are in `threadmark_postgres.columns` and `threadmark_postgres.arrays`.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcpy

from threadmark_speed.texts cimport UUID_BYTES, ascii_text, is_column, pack_uuid
from threadmark_speed.tuples cimport fields

from threadmark.store import FIRST_RECORD, PACK
from threadmark.text import to_column

cdef extern from "Python.h":
    object PyUnicode_AsUTF8String(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)

cdef enum:
    TEXT = 25  # the server's numbers of types
    BYTES = 17
    NUMBER = 20
    LENGTH_SIZE = 4
    NUMBER_SIZE = 8
    EMPTY_SIZE = 12
    HEAD_SIZE = 20
    MOST_BYTES = 0x40000000  # of an item, with which the server takes no message
    ROWS_ALONE = 2  # a pack and the record of it

cdef int FIRST_OF_RECORDS = FIRST_RECORD, PACKED = PACK


cdef inline object column(object text):
    """What the reference makes of text, or of None."""
    return text if text is None or is_column(text) else to_column(text)


cdef inline tuple about(change):
    """What both begin with."""
    return (
        column(change.thread_id),
        change.epoch,
        change.token,
        column(change.beginning.owner) if change.only_owner else None,
        column(change.continues),
    )


def checkpoint_alone(change, type blobs not None, run_number):
    """Return the parameters of a change that is one checkpoint, ranked by its id. None for any other change."""
    if len(change.checkpoints) != 1 or change.writes:
        return None
    outline, header, check, run_id = fields(change.checkpoints[0])
    _, ns, checkpoint_id, rank, parent, created_at, metadata = fields(outline)
    if rank != checkpoint_id:
        return None
    made = about(change) + (
        column(ns),
        column(checkpoint_id),
        column(parent),
        created_at,
        column(metadata),
        header,
        check,
        None if run_id is None else run_number(run_id),
        blobs(change.needs()),
    )
    segments = change.segments
    return made + (blobs(segments.keys()), blobs(segments.values())) if segments else made


def writes_alone(change, type blobs not None, id_column):
    """Return the parameters of a change that is the pack of one task and its record. None for any other change."""
    cdef char packed[UUID_BYTES]
    writes = change.writes
    if len(writes) != ROWS_ALONE or change.checkpoints:
        return None
    pack, record = writes
    ns, checkpoint_id, task_id, idx, path, channel, value, check = fields(pack)
    record_ns, recorded, record_task, record_idx, record_path, record_channel, listed, record_check = fields(record)
    if idx != PACKED or record_idx < FIRST_OF_RECORDS:
        return None
    if ns != record_ns or checkpoint_id != recorded or task_id != record_task:
        return None
    if channel or record_channel or record_path or checkpoint_id != change.continues:
        return None
    made = about(change) + (
        column(ns),
        PyBytes_FromStringAndSize(packed, UUID_BYTES) if pack_uuid(task_id, packed) else id_column(task_id),
        column(path),
        value,
        check,
        record_idx,
        listed,
        record_check,
    )
    segments = change.segments
    return made + (blobs(segments.keys()), blobs(segments.values())) if segments else made


def size_of(params):
    """Return about how many bytes are sent."""
    cdef Py_ssize_t size = 0
    for param in params:
        if type(param) is str or type(param) is bytes:
            size += len(param)
        elif isinstance(param, list) and param.element != NUMBER:
            for item in <list>param:
                if item is not None:
                    size += len(item)
    return size


def packed(params, pack):
    """Return parameters in their binary form. `pack` is the reference for one of them, for the unusual."""
    cdef list found = []
    for param in params:
        if param is None or type(param) is bytes:
            found.append(param)
        elif type(param) is str:
            found.append(encoded(param))
        elif type(param) is int and is_number(param):
            found.append(number(param))
        elif isinstance(param, list) and is_usual(<list>param, param.element):
            found.append(array(<list>param, param.element))
        else:
            found.append(pack(param))
    return found


cdef inline object encoded(text):
    """Text in UTF-8."""
    cdef const char *start = ascii_text(text)
    if start is NULL:
        return PyUnicode_AsUTF8String(text)
    return PyBytes_FromStringAndSize(start, PyUnicode_GET_LENGTH(text))


cdef inline bint is_number(given) except -1:
    return -0x8000000000000000 <= given <= 0x7FFFFFFFFFFFFFFF


cdef inline bytes number(long long given):
    cdef bytes made = PyBytes_FromStringAndSize(NULL, NUMBER_SIZE)
    write(<unsigned char *>PyBytes_AS_STRING(made), given, NUMBER_SIZE)
    return made


cdef inline void write(unsigned char *at, long long given, int size) noexcept:
    """Write a number of so many bytes, the greatest first."""
    cdef int place
    for place in range(size - 1, -1, -1):
        at[place] = <unsigned char>(given & 0xFF)
        given >>= 8


cdef bint is_usual(list items, int element) except -1:
    """Whether `array` can write all of them."""
    for item in items:
        if item is None:
            continue
        if element == BYTES and (type(item) is not bytes or PyBytes_GET_SIZE(item) > MOST_BYTES):
            return False
        if element == TEXT and (type(item) is not str or PyUnicode_GET_LENGTH(item) > MOST_BYTES // 4):
            return False
        if element == NUMBER and (type(item) is not int and type(item) is not bool or not is_number(item)):
            return False
    return True


cdef bytes array(list items, int element):
    """Return an array in the server's binary form."""
    cdef list parts = [encoded(item) if type(item) is str else item for item in items]
    cdef Py_ssize_t size = HEAD_SIZE if items else EMPTY_SIZE
    cdef bytes made
    cdef unsigned char *at
    for item in parts:
        size += LENGTH_SIZE
        if type(item) is bytes:
            size += PyBytes_GET_SIZE(item)
        elif item is not None:
            size += NUMBER_SIZE
    made = PyBytes_FromStringAndSize(NULL, size)
    at = <unsigned char *>PyBytes_AS_STRING(made)
    write(at, 1 if items else 0, 4)  # dimensions
    write(at + 4, 1 if None in items else 0, 4)
    write(at + 8, element, 4)
    if not items:
        return made
    write(at + 12, len(items), 4)
    write(at + 16, 1, 4)  # the number of the first item
    at += HEAD_SIZE
    for item in parts:
        if item is None:
            write(at, -1, LENGTH_SIZE)
            at += LENGTH_SIZE
        elif type(item) is bytes:
            write(at, PyBytes_GET_SIZE(item), LENGTH_SIZE)
            memcpy(at + LENGTH_SIZE, PyBytes_AS_STRING(item), PyBytes_GET_SIZE(item))
            at += LENGTH_SIZE + PyBytes_GET_SIZE(item)
        else:
            write(at, NUMBER_SIZE, LENGTH_SIZE)
            write(at + LENGTH_SIZE, item, NUMBER_SIZE)
            at += LENGTH_SIZE + NUMBER_SIZE
    return made
