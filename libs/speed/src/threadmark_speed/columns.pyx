# cython: language_level=3
"""Rows from columns, compiled: what `threadmark_sqlite.columns` makes of the columns of a query, for the usual ones.

Usual are text without escapes, ids that are UUIDs, and numbers and bytes where they belong. For a row with anything
else, a function of the reference is called, which makes some value of whatever a damaged file holds.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memcmp

from threadmark_speed.tuples cimport named_tuple

from threadmark.ids import UUID_BYTES
from threadmark.store.contract import CheckpointRow, Found, Outline, WriteRow
from threadmark.names import ESCAPES

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
assert UUID_BYTES == UUID

NO_SEGMENTS = {}  # of those that come along with a checkpoint: none do

cdef const char *DIGITS = b"0123456789abcdef"


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


def write_rows(list columns not None, reference):
    """Return rows of writes from columns that begin with namespace and checkpoint."""
    cdef list rows = []
    known_checkpoint = checkpoint_id = known_task = task_id = None
    for each in columns:
        ns, checkpoint, task, idx, path, channel, value, check = each
        checkpoint_id = identifier(checkpoint, known_checkpoint, checkpoint_id)
        task_id = identifier(task, known_task, task_id)
        known_checkpoint, known_task = checkpoint, task
        if checkpoint_id is not None and is_text(ns) and is_write(task_id, idx, path, channel, value, check):
            rows.append(named_tuple(WriteRow, (ns, checkpoint_id, task_id, idx, path, channel, value, check)))
        else:
            rows.append(reference(each))
    return rows


def writes_of(ns, checkpoint_id, list columns not None, reference):
    """Return rows of a checkpoint's writes from columns without those two, the first and those from the eighth aside."""
    cdef list rows = []
    cdef tuple each
    known_task = task_id = None
    for each in columns:
        task, idx, path, channel, value, check = each[1], each[2], each[3], each[4], each[5], each[6]
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
    return reference(thread_id, (ns, checkpoint_id, rank, parent, created_at, metadata))


def outline(thread_id, columns, reference):
    """Return a checkpoint's outline."""
    ns, checkpoint_id, rank, parent, created_at, metadata = columns
    return outlined(thread_id, ns, checkpoint_id, rank, parent, created_at, metadata, reference)


def checkpoint_row(thread_id, columns, reference):
    """Return a checkpoint's row. `reference` makes the outline of unusual columns."""
    ns, checkpoint_id, rank, parent, created_at, metadata, header, check = columns
    return named_tuple(
        CheckpointRow,
        (
            outlined(thread_id, ns, checkpoint_id, rank, parent, created_at, metadata, reference),
            header if type(header) is bytes else b"",
            check if type(check) is bytes else b"",
            None,
        ),
    )


def found_of(thread_id, ns, list rows not None, bint with_head, any_outline, any_write_of, any_text, any_number):
    """Return a checkpoint and its writes, whose rows come behind its own. The last four are of the reference."""
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
    row = checkpoint_row(thread_id, of_checkpoint, any_outline)
    writes = writes_of(ns, row[0][2], rows[1:], any_write_of)
    if type(epoch) is not int:
        epoch = any_number(epoch)
    return tuple.__new__(Found, (epoch, row, writes, NO_SEGMENTS, head, owner, expires_at))
