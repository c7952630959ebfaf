# cython: language_level=3
"""Rows as columns of SQLite and back, compiled: the counterparts of functions of `threadmark_sqlite.columns`.

The usual columns of read rows are handled here: text without escapes, ids that are UUIDs, and numbers and bytes
in their places. For a row with anything else, a function of the reference is called, which makes some value of
whatever a damaged file holds.
"""

from cpython.bytearray cimport PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from libc.string cimport memcmp

from threadmark_speed.texts cimport UUID_BYTES, is_column, pack_uuid
from threadmark_speed.tuples cimport fields, named_tuple

from threadmark.store.contract import CheckpointRow, Found, Outline, WriteRow
from threadmark.names import ESCAPES, to_column

cdef extern from "Python.h":
    object PyUnicode_New(Py_ssize_t size, Py_UCS4 greatest)
    void *PyUnicode_DATA(object text)
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    Py_ssize_t PyUnicode_FindChar(object text, Py_UCS4 found, Py_ssize_t start, Py_ssize_t end, int step) except -2

cdef enum:
    UUID = 16  # bytes
    UUID_TEXT = 36  # characters

cdef Py_UCS4 LOW, HIGH
LOW, HIGH = ESCAPES

NO_SEGMENTS = {}  # of those that come along with a checkpoint: none do

cdef const char *DIGITS = b"0123456789abcdef"


cdef inline object text_column(object text):
    """The counterpart of `threadmark.names.to_column`."""
    return text if is_column(text) else to_column(text)


cpdef object id_column(object text):
    """An id that is only compared for equality."""
    cdef char packed[UUID_BYTES]
    if pack_uuid(text, packed):
        return PyByteArray_FromStringAndSize(packed, UUID_BYTES)
    return text_column(text)


cdef object blob(object data):
    """A bytearray with the same bytes."""
    if PyBytes_CheckExact(data):
        return PyByteArray_FromStringAndSize(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    return bytearray(data)


def checkpoint_columns(thread, row):
    """The number of a thread and the columns of `sql.expressions.CHECKPOINT`."""
    outline, header, check, _ = fields(row)
    _, ns, checkpoint_id, rank, parent, created_at, metadata = fields(outline)
    return (
        thread,
        text_column(ns),
        text_column(rank),
        None if checkpoint_id == rank else text_column(checkpoint_id),
        None if parent is None else text_column(parent),
        created_at,
        text_column(metadata),
        blob(header),
        blob(check),
    )


def write_columns(thread, rows):
    """The number of a thread and the columns of `sql.expressions.WRITE`, for one row after the other."""
    cdef list every = []
    cdef object of_ns = None, of_checkpoint = None, of_task = None  # those of the row before: mostly all have one task
    cdef object ns_column = None, checkpoint_column = None, task_column = None
    for row in rows:
        ns, checkpoint_id, task_id, idx, task_path, channel, value, check = fields(row)
        if ns is not of_ns:
            of_ns, ns_column = ns, text_column(ns)
        if checkpoint_id is not of_checkpoint:
            of_checkpoint, checkpoint_column = checkpoint_id, id_column(checkpoint_id)
        if task_id is not of_task:
            of_task, task_column = task_id, id_column(task_id)
        every.append(thread)
        every.append(ns_column)
        every.append(checkpoint_column)
        every.append(task_column)
        every.append(text_column(task_path))
        every.append(idx)
        every.append(text_column(channel))
        every.append(blob(value))
        every.append(blob(check))
    return every


cdef inline bint is_text(column) except -1:
    """Whether a column is text that stands for itself."""
    cdef Py_ssize_t size
    if type(column) is not str:
        return False
    size = PyUnicode_GET_LENGTH(column)
    if not size:
        return True
    if PyUnicode_FindChar(column, LOW, 0, size, 1) >= 0:
        return False
    return PyUnicode_IS_COMPACT_ASCII(column) or PyUnicode_FindChar(column, HIGH, 0, size, 1) < 0


cdef object identifier(column, known_column, known):
    """Return the text of an id, or None for an unusual column. `known` is that of another column, perhaps the same."""
    cdef int index, at = 0
    cdef unsigned char *content
    cdef char *text
    if type(column) is not bytes or PyBytes_GET_SIZE(column) != UUID:
        return column if is_text(column) else None
    content = <unsigned char *>PyBytes_AS_STRING(column)
    if type(known_column) is bytes and PyBytes_GET_SIZE(known_column) == UUID:
        if memcmp(content, PyBytes_AS_STRING(known_column), UUID) == 0:
            return known
    found = PyUnicode_New(UUID_TEXT, 127)
    text = <char *>PyUnicode_DATA(found)
    for index in range(UUID):
        if index == 4 or index == 6 or index == 8 or index == 10:
            text[at] = c"-"
            at += 1
        text[at] = DIGITS[content[index] >> 4]
        text[at + 1] = DIGITS[content[index] & 15]
        at += 2
    return found


cdef bint is_write(task_id, idx, path, channel, value, check) except -1:
    return (
        task_id is not None and type(idx) is int and is_text(path) and is_text(channel) and type(value) is bytes
        and type(check) is bytes
    )


cdef list writes_of(ns, checkpoint_id, list columns, reference):
    """Return rows of a checkpoint's writes from columns without those two, the first and those from the eighth aside."""
    cdef list rows = []
    cdef tuple each
    known_task = task_id = None
    for each in columns:
        task, path, idx, channel, value, check = each[1], each[2], each[3], each[4], each[5], each[6]
        task_id = identifier(task, known_task, task_id)
        known_task = task
        if is_write(task_id, idx, path, channel, value, check):
            rows.append(named_tuple(WriteRow, (ns, checkpoint_id, task_id, idx, path, channel, value, check)))
        else:
            rows.append(reference(ns, checkpoint_id, each[1:7]))
    return rows


cdef object outlined(thread_id, ns, checkpoint_id, rank, parent, created_at, metadata, reference):
    if (
        is_text(ns) and is_text(rank) and is_text(metadata) and (parent is None or is_text(parent))
        and (checkpoint_id is None or is_text(checkpoint_id)) and type(created_at) is int
    ):
        if checkpoint_id is None:
            checkpoint_id = rank
        return named_tuple(Outline, (thread_id, ns, checkpoint_id, rank, parent, created_at, metadata))
    return reference(thread_id, (ns, rank, checkpoint_id, parent, created_at, metadata))


def write_rows(any_write, list columns not None):
    """Return pending writes with their keys. The first is of the reference."""
    cdef list rows = []
    cdef tuple each
    known_checkpoint = checkpoint_id = known_task = task_id = None
    for each in columns:
        ns, checkpoint, task, path, idx, channel, value, check = each
        checkpoint_id = identifier(checkpoint, known_checkpoint, checkpoint_id)
        task_id = identifier(task, known_task, task_id)
        known_checkpoint, known_task = checkpoint, task
        if is_text(ns) and checkpoint_id is not None and is_write(task_id, idx, path, channel, value, check):
            rows.append(named_tuple(WriteRow, (ns, checkpoint_id, task_id, idx, path, channel, value, check)))
        else:
            rows.append(any_write(each))
    return rows


def checkpoint_row(any_outline, thread_id, columns):
    """Return a checkpoint's row. The first is of the reference: it makes the outline of unusual columns."""
    return row_of(thread_id, columns, any_outline)


cdef object row_of(thread_id, columns, reference):
    ns, rank, checkpoint_id, parent, created_at, metadata, header, check = columns
    return named_tuple(
        CheckpointRow,
        (
            outlined(thread_id, ns, checkpoint_id, rank, parent, created_at, metadata, reference),
            header if type(header) is bytes else b"",
            check if type(check) is bytes else b"",
            None,
        ),
    )


def found_of(any_outline, any_write_of, any_text, any_number, thread_id, ns, list rows not None, bint with_head=True):
    """Return a checkpoint and its writes, whose rows come behind its own. The first four are of the reference."""
    head, _, epoch, owner, expires_at, *of_checkpoint = rows[0]
    if not with_head:
        head = None
    if head is not None and not is_text(head):
        head = any_text(head)
    if owner is not None and not is_text(owner):
        owner = any_text(owner)
    if expires_at is not None and type(expires_at) is not int:
        expires_at = any_number(expires_at)
    if of_checkpoint[0] is None:
        return tuple.__new__(Found, (0, None, (), NO_SEGMENTS, head, owner, expires_at))
    row = row_of(thread_id, of_checkpoint, any_outline)
    writes = writes_of(ns, row[0][2], rows[1:], any_write_of)
    if type(epoch) is not int:
        epoch = any_number(epoch)
    return tuple.__new__(Found, (epoch, row, writes, NO_SEGMENTS, head, owner, expires_at))
