# cython: language_level=3
"""The work of a put for each channel, compiled: finding the unchanged values, and packing the header.

The references are `threadmark.saver.storing.lay_out` and `threadmark.format.header.Header.to_bytes`. Cases that only
they can judge are left to them: CannotPackError, or None, says so.

Users' dictionaries may change whenever other code runs. If that is possible, only our own references are held.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Next
from cpython.object cimport Py_EQ, PyObject, PyObject_RichCompareBool
from libc.string cimport memcpy

from threadmark_speed.checks cimport PACKED, RECORDED
from threadmark_speed.packing cimport Packer
from threadmark_speed.tuples cimport named_tuple

from threadmark.format.packs import FIRST_RECORD, PACK
from threadmark_speed.packing import CannotPackError

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass

    PyTypeObject *Py_TYPE(object found)
    PyTypeObject PyUnicode_Type, PyLong_Type, PyBool_Type, PyFloat_Type, PyBytes_Type
    PyObject *PyDict_GetItemWithError(object mapping, object key) except? NULL
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    void *PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    Py_ssize_t PyTuple_GET_SIZE(object items)
    PyObject *PyTuple_GET_ITEM(object items, Py_ssize_t index)

cdef enum:
    LITERAL_LIMIT = 96
    DIGEST = 2  # the place in a `stored.Stored`
    BODY = 3
    STORED_FIELDS = 4
    GUESSED = 64  # bytes of a name with its version or value
    PLAIN_TAG = 3  # bytes before a literal

cdef str plain_tag = "m"
cdef bytes no_digest = b""
cdef bytes before_plain = b"\x00\x01m"


def _refuse():
    """The packer's request for anything but builtin types: refuse."""
    raise CannotPackError


cdef object stored_field(stored, int index):
    """Return a field of a `stored.Stored` that is bytes."""
    if not isinstance(stored, tuple) or PyTuple_GET_SIZE(stored) != STORED_FIELDS:
        raise CannotPackError
    found = <object>PyTuple_GET_ITEM(stored, index)
    if type(found) is not bytes:
        raise CannotPackError
    return found


cdef bytes _packed_header(dict versions, dict values, bytes plain, rest):
    cdef Packer packer = Packer(_refuse)
    cdef Py_ssize_t position = 0, count = len(values), written = 0
    cdef PyObject *key
    cdef PyObject *value
    packer.reserve(PyBytes_GET_SIZE(plain) + (len(versions) + count) * GUESSED)
    packer.byte(0x94)
    packer.value(plain, 1, False)
    packer.mapping(versions, 1, False)
    packer.length(0x80, 16, 0xDE, False, count)
    while PyDict_Next(values, &position, &key, &value):
        channel, body = <object>key, stored_field(<object>value, BODY)
        if not _add_short(packer, channel, body):
            packer.value(channel, 2, False)
            packer.length(0, 0, 0xC4, True, PyBytes_GET_SIZE(body))
            packer.write(PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body))
        written += 1
        if len(values) != count:
            raise CannotPackError
    if written != count:
        raise CannotPackError
    packer.value(list(rest) if rest else None, 1, False)
    return packer.finished()


cdef bint _add_short(Packer packer, channel, body) except -1:
    """Write a short name and a short body at once, as most are. Returns whether they are."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(body), length
    cdef char *at
    if Py_TYPE(channel) is not &PyUnicode_Type or not PyUnicode_IS_COMPACT_ASCII(channel):
        return False
    length = PyUnicode_GET_LENGTH(channel)
    if length >= 32 or size > 0xFF:
        return False
    packer.reserve(3 + length + size)
    at = packer.start + packer.used
    at[0] = <char>(0xA0 + length)
    memcpy(at + 1, PyUnicode_DATA(channel), length)
    at[1 + length], at[2 + length] = <char>0xC4, <char>size
    memcpy(at + 3 + length, PyBytes_AS_STRING(body), size)
    packer.used += 3 + length + size
    return True


def lay_out(
    type cls not None,
    dict provided not None,
    list reads not None,
    new,
    dict versions not None,
    parent,
    bint has_manifests,
    bytes plain not None,
    rest,
    bint is_fast,
):
    """Find the values that a checkpoint has of its parent, as `storing.lay_out` does.

    If `is_fast`, short numbers and texts among the other values get their stored form, of the class `cls`. The last
    item returned is the header's encoding, None if there are other values still, or if only the reference can
    tell.
    """
    cdef bytes packed = None
    values, changed, has_manifests = _inherited(provided, reads, new, versions, parent, has_manifests)
    if is_fast:
        changed = _without_literals(cls, values, changed)
    if changed:
        return values, changed, has_manifests, None
    try:
        packed = _packed_header(versions, values, plain, rest)
    except CannotPackError:
        packed = None
    return values, changed, has_manifests, packed


cdef list _without_literals(type cls, dict values, list changed):
    """Give short numbers and texts their stored form. Returns the other channels."""
    cdef list others = []
    cdef Packer packer = Packer(_refuse)
    for channel in changed:
        stored = _literal(cls, values[channel], packer)
        if stored is None:
            others.append(channel)
        else:
            values[channel] = stored
    return others


cdef tuple _inherited(dict provided, list reads, new, dict versions, parent, bint has_manifests):
    found = _in_step(provided, reads, new, versions, parent, has_manifests)
    return found or _looked_up(provided, reads, new, versions, parent, has_manifests)


cdef tuple _in_step(dict provided, list reads, new, dict versions, parent, bint has_manifests):
    """Return the result of `inherit` if the parent has the same channels in the same order, as in most steps.

    Then nothing need be looked up, and an unchanged value is not even touched: that takes longer than all else if
    it has left the processor's caches. Returns None in any other case. All keys are the same objects, so no other
    code runs meanwhile but that which compares two versions.
    """
    cdef dict stored = parent.values, held = parent.versions
    cdef list changed = []
    cdef Py_ssize_t position = 0, position_stored = 0, position_version = 0, position_held = 0
    cdef bint inherits_one = not has_manifests  # then it is not read
    cdef PyObject *key
    cdef PyObject *key_stored
    cdef PyObject *key_version
    cdef PyObject *key_held
    cdef PyObject *found
    cdef PyObject *version
    cdef PyObject *before
    if len(provided) != len(stored) or len(versions) != len(held):
        return None
    while PyDict_Next(provided, &position, &key, NULL):
        if not PyDict_Next(stored, &position_stored, &key_stored, &found) or key_stored != key:
            return None
        key_version = NULL
        while key_version != key:  # some channels with a version have no value
            if not PyDict_Next(versions, &position_version, &key_version, &version):
                return None
            if not PyDict_Next(held, &position_held, &key_held, &before) or key_held != key_version:
                return None
        if version != before and not _are_equal(<object>version, <object>before):
            changed.append(<object>key)
        elif not inherits_one:
            inherits_one = PyBytes_GET_SIZE(stored_field(<object>found, DIGEST)) > 0
    known = set(changed)
    for channel in new:
        if channel in provided and channel not in known:  # it is new, though its version is the same
            return None
    values = stored.copy()
    for channel in changed:
        values[channel] = provided[channel]
    return values, reads if len(reads) >= len(changed) else changed, has_manifests and inherits_one


cdef bint _are_equal(version, before) except -1:
    return PyObject_RichCompareBool(version, before, Py_EQ)


cdef tuple _looked_up(dict provided, list reads, new, dict versions, parent, bint has_manifests):
    cdef dict values = provided.copy(), stored = parent.values, held = parent.versions
    cdef set fresh = set(new)
    cdef list changed = []
    cdef Py_ssize_t position = 0, met = 0
    cdef bint inherits_one = False
    cdef PyObject *key
    cdef PyObject *found
    while PyDict_Next(values, &position, &key, NULL):  # it has no other owner, and it keeps its keys
        channel = <object>key
        found = PyDict_GetItemWithError(stored, channel)
        if found is not NULL:
            met += 1
            own = <object>found
            if channel not in fresh and _is_unchanged(channel, versions, held):
                values[channel] = own
                inherits_one = inherits_one or PyBytes_GET_SIZE(stored_field(own, DIGEST)) > 0
                continue
        changed.append(channel)
    if met < len(stored):
        for channel in list(stored):
            if channel not in values and channel not in fresh and _is_unchanged(channel, versions, held):
                own = values[channel] = stored[channel]
                inherits_one = inherits_one or PyBytes_GET_SIZE(stored_field(own, DIGEST)) > 0
    return values, reads if len(reads) >= len(changed) else changed, has_manifests and inherits_one


cdef bint _is_unchanged(channel, dict versions, dict held) except -1:
    """Whether the channel has a version, which is that in the parent."""
    cdef PyObject *found = PyDict_GetItemWithError(versions, channel)
    if found is NULL:
        return False
    version = <object>found
    found = PyDict_GetItemWithError(held, channel)
    if found is NULL:
        return False
    if found is <PyObject *>version:
        return True
    before = <object>found
    return PyObject_RichCompareBool(version, before, Py_EQ)


cdef bint _is_scalar(value):
    cdef PyTypeObject *cls = Py_TYPE(value)
    return (
        cls is &PyUnicode_Type
        or cls is &PyLong_Type
        or cls is &PyFloat_Type
        or cls is &PyBool_Type
        or cls is &PyBytes_Type
    )


cdef bytes scalar_bytes(value):
    """Return the encoding of a number, a text or bytes; None for anything else."""
    cdef Packer packer
    if not _is_scalar(value):
        return None
    packer = Packer(_refuse)
    try:
        packer.value(value, 0, False)
    except CannotPackError:  # an int of more than 64 bits
        return None
    return packer.finished()


cdef _literal(type cls, value, Packer packer):
    """The packer is one that may be used again and again."""
    cdef bytes body, data
    if not _is_scalar(value):
        return None
    packer.used = 0
    packer.write(PyBytes_AS_STRING(before_plain), PLAIN_TAG)
    try:
        packer.value(value, 0, False)
    except CannotPackError:  # an int of more than 64 bits
        return None
    if packer.used > PLAIN_TAG + LITERAL_LIMIT:
        return None
    body = PyBytes_FromStringAndSize(packer.start, packer.used)
    data = PyBytes_FromStringAndSize(packer.start + PLAIN_TAG, packer.used - PLAIN_TAG)
    return named_tuple(cls, (plain_tag, data, no_digest, body))


cdef int mark_of(object idx) except -1:
    """The beginning of the check of a row of writes: the counterpart of `threadmark.saver.proving._mark`."""
    return PACKED if isinstance(idx, int) and PACK <= idx < FIRST_RECORD else RECORDED
