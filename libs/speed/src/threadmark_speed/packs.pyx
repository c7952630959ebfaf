# cython: language_level=3
"""The rows of numbers and short texts that a task wrote, compiled: the pack and the record of its batch, with checks.

`threadmark.saver.storing.encode_writes` and `threadmark.saver.batches.rows_of_batch` make the same rows of them.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from threadmark_speed.checks cimport PACKED, RECORDED, check_of_bytes
from threadmark_speed.packing cimport Packer
from threadmark_speed.tuples cimport named_tuple

from threadmark.format.packs import PACK
from threadmark_speed.packing import CannotPackError

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass

    PyTypeObject PyUnicode_Type, PyLong_Type, PyBool_Type, PyFloat_Type, PyBytes_Type
    PyTypeObject *Py_TYPE(object found)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    Py_ssize_t PyTuple_GET_SIZE(object items)

cdef enum:
    ROW_FIELDS = 8  # of a `threadmark.store.contract.WriteRow`
    FIELDS = 3  # of a write: its index, channel and value
    PAIR = 2
    SHORT = 42  # letters of a name that is short enough for any key, as in `threadmark.saver.arguments`
    LITERAL_LIMIT = 96  # `threadmark.format.stored.LITERAL_LIMIT`
    ONE_BYTE = 0x100  # a length below is spelled in one
    BYTES = 0xC4  # comes before it


def _refuse():
    """The packer's request for anything but builtin types: refuse."""
    raise CannotPackError


def rows_of_scalars(
    type cls not None, tuple record not None, dict special not None, bytes before not None,
    thread_id, ns, checkpoint_id, task_id, task_path, writes,
):
    """Return the rows of writes as a task gives them, if each value is a number, a text or bytes, and a literal.

    `special` has the channels that are not ordinary, and `before` comes before a literal of the serializer.
    Returns None for any other writes, and if the names of the task have to be looked at.
    """
    if type(task_id) is not str or PyUnicode_GET_LENGTH(task_id) > SHORT or type(task_path) is not str:
        return None
    try:
        pack = pack_of_scalars(writes, special, before)
        if pack is None:
            return None
        return rows_with(cls, record, thread_id, ns, checkpoint_id, task_id, task_path, pack)
    except CannotPackError:  # an int of more than 64 bits, text with lone surrogates
        return None


cdef list rows_with(
    type cls, tuple record, thread_id, ns, checkpoint_id, task_id, task_path, bytes pack
):
    """The rows of a pack and of its record."""
    cdef Packer packer = Packer(_refuse)
    cdef Py_ssize_t begun
    packer.byte(0x90 + 1 + ROW_FIELDS)
    packer.byte(PACKED)
    for field in (thread_id, ns, checkpoint_id, task_id):
        packer.value(field, 1, False)
    begun = packer.used
    rows = []
    for fields in ((PACK, task_path, "", pack), record):
        packer.used = begun
        for field in <tuple>fields:
            packer.value(field, 1, False)
        check = check_of_bytes(<unsigned char *>packer.start, packer.used)
        packer.start[1] = RECORDED  # the record's, which comes second
        rows.append(named_tuple(cls, (ns, checkpoint_id, task_id, *<tuple>fields, check)))
    return rows


cdef bytes pack_of_scalars(writes, dict special, bytes before):
    """The pack of the literals of these values, or None. No other code runs during it."""
    cdef Packer packer = Packer(_refuse), literal = Packer(_refuse)
    cdef Py_ssize_t index, begun = PyBytes_GET_SIZE(before), count
    if (type(writes) is not list and type(writes) is not tuple) or not writes:
        return None
    count = len(writes)
    packer.byte(0)  # a literal names no segments
    packer.length(0x90, 16, 0xDC, False, FIELDS * count)
    literal.write(PyBytes_AS_STRING(before), begun)
    for index in range(count):
        write = writes[index]
        if type(write) is not tuple or PyTuple_GET_SIZE(write) != PAIR:
            return None
        channel, value = <tuple>write
        if type(channel) is not str or channel in special or not is_short(value):
            return None
        literal.used = begun
        literal.value(value, 0, False)
        if literal.used - begun > LITERAL_LIMIT or literal.used >= ONE_BYTE:
            return None
        packer.value(index, 1, False)
        packer.value(channel, 1, False)
        packer.byte(BYTES)
        packer.byte(<unsigned char>literal.used)
        packer.write(literal.start, literal.used)
    return packer.finished()


cdef inline bint is_short(value):
    """Whether it is a number, or a text or bytes that may be a literal."""
    cdef PyTypeObject *cls = Py_TYPE(value)
    if cls is &PyUnicode_Type:
        return PyUnicode_GET_LENGTH(value) <= LITERAL_LIMIT
    if cls is &PyBytes_Type:
        return PyBytes_GET_SIZE(value) <= LITERAL_LIMIT
    return cls is &PyLong_Type or cls is &PyFloat_Type or cls is &PyBool_Type
