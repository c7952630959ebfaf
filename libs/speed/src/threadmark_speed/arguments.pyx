# cython: language_level=3
"""The arguments of a put or a put_writes, checked in one call each: configurations, checkpoints, metadata, writes.

The references are the functions of `threadmark.config`, `threadmark.metadata`, `threadmark.format.header`,
`threadmark.saver.arguments` and `threadmark.saver.storing`. Each function here knows the arguments of engines, builtin
types throughout, and returns None for anything else, which only they can judge.

A user's arguments may change whenever other code runs. If that is possible, only our own references are held.
"""

from cpython.dict cimport PyDict_Next
from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.set cimport PySet_Contains
from libc.math cimport isfinite

from threadmark_speed.packing cimport Packer
from threadmark_speed.putting cimport scalar_bytes
from threadmark_speed.tuples cimport named_tuple, tracked_tuple

from threadmark_speed.packing import CannotPackError

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass

    PyTypeObject *Py_TYPE(object found)
    PyTypeObject PyUnicode_Type, PyLong_Type, PyBool_Type, PyFloat_Type, PyDict_Type, PyList_Type, PyTuple_Type
    PyObject *PyDict_GetItemWithError(object mapping, object key) except? NULL
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    Py_ssize_t PyUnicode_FindChar(object text, Py_UCS4 letter, Py_ssize_t start, Py_ssize_t end, int direction) except -2
    Py_ssize_t PyTuple_GET_SIZE(object items)
    PyObject *PyTuple_GET_ITEM(object items, Py_ssize_t index)

cdef enum:
    MOST_BYTES = 6  # of a letter, as in `threadmark.names`
    THREAD_ID_BYTES = 512
    NAMESPACE_BYTES = 1536
    ID_BYTES = 256
    DEEPEST = 32  # levels of metadata that are looked at here
    PAIR = 2

cdef str messages_namespace = "__messages__"
cdef object unusual = object()
cdef frozenset plain_names = frozenset({"v", "ts", "versions_seen", "updated_channels"})
cdef frozenset special_names = frozenset({"id", "channel_values", "channel_versions"})


def plain_config(type cls not None, config):
    """Return the `config.ParsedConfig` of a configuration whose names are short enough for the key of a row."""
    cdef PyObject *found
    if type(config) is not dict:
        return None
    found = PyDict_GetItemWithError(config, "configurable")
    if found is NULL or Py_TYPE(<object>found) is not &PyDict_Type:
        return None
    configurable = <object>found
    thread_id = _name(configurable, "thread_id", THREAD_ID_BYTES)
    ns = _name(configurable, "checkpoint_ns", NAMESPACE_BYTES)
    checkpoint_id = _name(configurable, "checkpoint_id", ID_BYTES)
    if thread_id is None or thread_id is unusual or ns is unusual or checkpoint_id is unusual:
        return None
    if PyDict_GetItemWithError(configurable, "lease_token") is not NULL or ns == messages_namespace:
        return None
    return named_tuple(cls, (thread_id, ns or "", checkpoint_id or None, None))


cdef object _name(configurable, str key, Py_ssize_t limit):
    """Return a name, None if there is none."""
    cdef PyObject *found = PyDict_GetItemWithError(configurable, key)
    if found is NULL:
        return None
    name = <object>found
    if name is None or (Py_TYPE(name) is &PyUnicode_Type and PyUnicode_GET_LENGTH(name) * MOST_BYTES <= limit):
        return name
    return unusual


def _refuse():
    """The packer's request for anything but builtin types: refuse."""
    raise CannotPackError


def plain_checkpoint(type cls not None, checkpoint, new):
    """Return the `storing.Draft` of a checkpoint with none but the usual fields, None for any other."""
    cdef PyObject *found
    if type(checkpoint) is not dict:
        return None
    checkpoint_id = _item(checkpoint, "id")
    if Py_TYPE(checkpoint_id) is not &PyUnicode_Type or not checkpoint_id:
        return None
    found = PyDict_GetItemWithError(checkpoint, "v")
    if PyUnicode_GET_LENGTH(checkpoint_id) * MOST_BYTES > ID_BYTES or (
        found is not NULL and Py_TYPE(<object>found) is not &PyLong_Type
    ):
        return None
    values, versions = _item(checkpoint, "channel_values"), _item(checkpoint, "channel_versions")
    if not are_plain(values, versions, new):
        return None
    plain = pack_fields(checkpoint)
    if plain is None:
        return None
    reads = [channel for channel in <dict>new if channel in <dict>values]
    fields = checkpoint_id, checkpoint, values, (<dict>versions).copy(), (<dict>new).keys(), reads, plain, {}
    return tracked_tuple(cls, fields)  # the caller's argument may lead back to it


cdef object _item(checkpoint, str key):
    cdef PyObject *found = PyDict_GetItemWithError(checkpoint, key)
    return None if found is NULL else <object>found


cdef bytes pack_fields(checkpoint):
    """Return the encoded fields of a checkpoint, as `header.split_fields` does if there are none but the usual ones.

    Returns None where only that can tell.
    """
    cdef Packer packer
    cdef Py_ssize_t position = 0, count
    cdef int written = 0
    cdef PyObject *key
    cdef PyObject *value
    if type(checkpoint) is not dict:
        return None
    packer, count = Packer(_refuse), len(<dict>checkpoint)
    packer.byte(0x80)
    try:
        while PyDict_Next(checkpoint, &position, &key, &value):
            name, own_value = <object>key, <object>value
            if type(name) is not str:
                return None
            if name in plain_names:
                packer.text(name)
                packer.value(own_value, 1, False)
                written += 1
            elif name not in special_names:
                return None
            if len(<dict>checkpoint) != count:
                return None
    except CannotPackError:
        return None
    packer.start[0] = <char>(0x80 + written)
    return packer.finished()


cdef bint are_plain(values, versions, new):
    """Whether these are dictionaries whose keys are of type str, the versions being of type str or int."""
    return _has_plain_keys(values) and _has_plain_keys(new) and _are_plain(versions)


cdef bint _has_plain_keys(mapping):
    cdef Py_ssize_t position = 0
    cdef PyObject *key
    if type(mapping) is not dict:
        return False
    while PyDict_Next(mapping, &position, &key, NULL):  # no other code runs in the loop
        if Py_TYPE(<object>key) is not &PyUnicode_Type:
            return False
    return True


cdef bint _are_plain(versions):
    cdef Py_ssize_t position = 0
    cdef PyObject *key
    cdef PyObject *version
    cdef PyTypeObject *cls
    if type(versions) is not dict:
        return False
    while PyDict_Next(versions, &position, &key, &version):
        cls = Py_TYPE(<object>version)
        if Py_TYPE(<object>key) is not &PyUnicode_Type or (cls is not &PyUnicode_Type and cls is not &PyLong_Type):
            return False
    return True


def plain_metadata(type cls not None, frozenset left_out not None, dumps, config, metadata):
    """Return metadata merged with a configuration's and checked, with its JSON text, as a `metadata.CheckedMetadata`.

    `left_out` are the keys of a configuration that are none of metadata, `dumps` is orjson's.
    """
    cdef PyObject *found
    if type(config) is not dict or type(metadata) is not dict:
        return None
    merged = cls(metadata)
    for name in ("metadata", "configurable"):
        found = PyDict_GetItemWithError(config, name)
        if found is not NULL and <object>found is not None and not _add_scalars(merged, <object>found, left_out):
            return None
    if not _is_json(<dict>merged, DEEPEST):
        return None
    for value in (<dict>merged).values():
        if Py_TYPE(value) is &PyUnicode_Type and PyUnicode_FindChar(value, 0, 0, PyUnicode_GET_LENGTH(value), 1) >= 0:
            return None
    try:
        merged.text = dumps(merged).decode()
    except TypeError:  # an int of more than 64 bits, or lone surrogates
        return None
    return merged


cdef bint _add_scalars(merged, part, frozenset left_out) except -1:
    """Add the entries of `config.config_metadata` for a part of a configuration. Returns whether all is as usual."""
    cdef Py_ssize_t position = 0, count
    cdef PyObject *key
    cdef PyObject *value
    cdef PyTypeObject *cls
    if type(part) is not dict:
        return False
    count = len(<dict>part)
    while PyDict_Next(part, &position, &key, &value):
        name, own = <object>key, <object>value
        if Py_TYPE(name) is not &PyUnicode_Type:
            return False
        if PySet_Contains(left_out, name) or (<str>name).startswith("__"):
            continue
        cls = Py_TYPE(own)
        if cls is &PyUnicode_Type or cls is &PyLong_Type or cls is &PyBool_Type or cls is &PyFloat_Type:
            (<dict>merged).setdefault(name, own)
        elif own is not None and cls is not &PyDict_Type and cls is not &PyList_Type:
            return False  # perhaps of a class that is a kind of text or number
        if len(<dict>part) != count:
            return False
    return True


cdef bint _is_json(value, int levels) except -1:
    """Whether a value is of the types that JSON gives back exactly, or a tuple. No other code runs during it."""
    cdef PyTypeObject *cls = Py_TYPE(value)
    cdef Py_ssize_t position = 0, index
    cdef PyObject *key
    cdef PyObject *item
    if cls is &PyUnicode_Type or cls is &PyLong_Type or cls is &PyBool_Type or value is None:
        return True
    if cls is &PyFloat_Type:
        return isfinite(PyFloat_AS_DOUBLE(value))
    if levels == 0:
        return False
    if isinstance(value, dict) and (cls is &PyDict_Type or levels == DEEPEST):
        while PyDict_Next(value, &position, &key, &item):
            if Py_TYPE(<object>key) is not &PyUnicode_Type or not _is_json(<object>item, levels - 1):
                return False
        return True
    if cls is &PyList_Type:
        for index in range(PyList_GET_SIZE(value)):
            if not _is_json((<list>value)[index], levels - 1):
                return False
        return True
    if cls is &PyTuple_Type:
        for index in range(PyTuple_GET_SIZE(value)):
            if not _is_json(<object>PyTuple_GET_ITEM(value, index), levels - 1):
                return False
        return True
    return False


def plain_writes(writes):
    """Return the writes if these are pairs of a channel and a value, in a list or a tuple, else None."""
    if type(writes) is not list and type(writes) is not tuple:
        return None
    for write in writes:
        if not _is_pair(write):
            return None
    return writes


cdef bint _is_pair(write):
    return (
        Py_TYPE(write) is &PyTuple_Type
        and PyTuple_GET_SIZE(write) == PAIR
        and Py_TYPE(<object>PyTuple_GET_ITEM(write, 0)) is &PyUnicode_Type
    )


def encoded_writes(dict special not None, str tag not None, encode, type serde_class not None, serde, writes):
    """Check and encode the writes of a task, as `storing.encode_writes` does.

    `tag` is that of plain values, and `encode(serde, where, value)` encodes one that is neither number nor text. Only a
    serializer of the class `serde_class` is known to encode those as it is done here.
    """
    cdef PyObject *found
    cdef dict encoded = {}
    cdef list own
    cdef Py_ssize_t position = 0, size = 0
    if type(serde) is not serde_class or (type(writes) is not list and type(writes) is not tuple):
        return None
    own = list(writes)  # to encode a value may change the other list
    for write in own:
        if not _is_pair(write):
            return None
    for write in own:
        channel, value = <object>PyTuple_GET_ITEM(write, 0), <object>PyTuple_GET_ITEM(write, 1)
        found = PyDict_GetItemWithError(special, channel)
        place = position if found is NULL else <object>found  # to encode a value may take it out of there
        data = scalar_bytes(value)
        both = (tag, data) if data is not None else encode(serde, f'channel "{channel}"', value)
        encoded[place] = channel, both
        position += 1
    for _, both in encoded.values():
        size += len(both[1])
    return encoded, size
