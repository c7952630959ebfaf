# cython: language_level=3
"""The rows of what a task wrote, compiled: the pack and the record of its batch, with their checks.

The references are `threadmark.packs.pack_writes` and `threadmark.saver.proving.batches.rows_of_batch`. What only they
can judge is left to them: CannotPackError says so.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE

from threadmark_speed.checks cimport PACKED, RECORDED, check_of_bytes
from threadmark_speed.packing cimport Packer
from threadmark_speed.tuples cimport named_tuple

from threadmark.store import PACK
from threadmark_speed.packing import CannotPackError

cdef extern from "Python.h":
    Py_ssize_t PyTuple_GET_SIZE(object items)

cdef enum:
    ROW_FIELDS = 8  # of a `threadmark.store.WriteRow`
    FIELDS = 3  # of a write: its index, channel and value
    KEY_SIZE = 12  # `threadmark.digests.KEY_SIZE`
    MOST_KEYS = 255  # `threadmark.packs.MOST_KEYS`


def _refuse():
    """What a packer asks for where it meets anything but builtin types."""
    raise CannotPackError


def rows_of_pack(
    type cls not None, tuple record not None, thread_id, ns, checkpoint_id, task_id, task_path,
    list written not None,
):
    """Return what `batches.rows_of_batch` does of ordinary writes: their pack, and its record.

    `record` is what `batches.batch_record` returns of a pack. Raises CannotPackError where only the reference can tell.
    """
    cdef bytes pack = pack_of(written)
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


cdef bytes pack_of(list written):
    """Return what `packs.pack_writes` does."""
    cdef Packer packer = Packer(_refuse)
    cdef dict keys = named_keys(written)
    packer.byte(<unsigned char>len(keys))
    for key in keys:
        packer.write(PyBytes_AS_STRING(key), KEY_SIZE)
    packer.length(0x90, 16, 0xDC, False, FIELDS * len(written))
    for each in written:
        if type(each) is not tuple or PyTuple_GET_SIZE(each) != FIELDS:
            raise CannotPackError
        index, channel, body = <tuple>each
        if type(index) is not int or index < 0 or type(channel) is not str or type(body) is not bytes:
            raise CannotPackError
        packer.value(index, 1, False)
        packer.value(channel, 1, False)
        packer.value(body, 1, False)
    return packer.finished()


cdef dict named_keys(list written):
    """Return the keys of segments with which the values of these writes begin, as many as a pack names."""
    cdef dict keys = {}
    cdef Py_ssize_t position, count
    for each in written:
        body = each[2]
        if type(body) is not bytes or not body:
            raise CannotPackError
        count = (<unsigned char *>PyBytes_AS_STRING(body))[0]
        if PyBytes_GET_SIZE(body) <= count * KEY_SIZE:
            raise CannotPackError
        for position in range(count):
            if len(keys) < MOST_KEYS:
                keys[PyBytes_FromStringAndSize(PyBytes_AS_STRING(body) + 1 + position * KEY_SIZE, KEY_SIZE)] = None
    return keys
