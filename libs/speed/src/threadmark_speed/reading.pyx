# cython: language_level=3
"""From a loaded checkpoint to the user's values, compiled: the counterpart of `threadmark.saver.decoding`.

To call a function each for a checkpoint's fields, its values, its metadata and its configuration takes longer than to
read a small one. Anything that is not plain (objects, a user's fields, damage) is left to the functions that are the
reference, one for each part of a checkpoint, in the order in which the reference calls them.
"""

from cpython.bytes cimport PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Copy
from cpython.object cimport PyObject
from cython cimport final

from threadmark_speed.plain cimport whole
from threadmark_speed.tuples cimport tracked_tuple

from json import JSONDecoder

from threadmark_speed.plain import NeedsReferenceError

cdef extern from "Python.h":
    PyObject *PyDict_GetItem(dict found, object key)
    PyObject *PyTuple_GET_ITEM(object items, Py_ssize_t index)
    bint PyTuple_Check(object found)
    Py_ssize_t PyTuple_GET_SIZE(object items)
    Py_UCS4 PyUnicode_READ_CHAR(object text, Py_ssize_t index)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)

cdef Py_UCS4 NONE = "n"  # `threadmark.serde.serializer.NONE`
cdef Py_UCS4 PLAIN = "m"  # `threadmark.serde.serializer.PLAIN`

cdef bytes NIL = b"\xc0"

cdef object scan = JSONDecoder().scan_once
"""Reads JSON from a place in a text. Returns the value and its end."""


cdef inline tuple fields(object named):
    """A named tuple as a tuple, so that it is unpacked without an iterator: by number, which is compared."""
    if not PyTuple_Check(named):
        raise TypeError("not a named tuple")
    return <tuple>named


cdef bytes plain_bytes(value, data, bint short):
    """The encoding of a value of builtin types, None for any other one, and with `short` for one that is no literal.

    `value` is a `threadmark.format.stored.Stored`, and `data` has the bytes of those that are no literals.
    """
    cdef PyObject *found
    tag, packed, digest, _ = fields(value)
    if type(tag) is not str or PyUnicode_GET_LENGTH(tag) != 1 or type(digest) is not bytes or type(packed) is not bytes:
        return None
    if PyUnicode_READ_CHAR(tag, 0) != PLAIN:
        is_none = PyUnicode_READ_CHAR(tag, 0) == NONE and not PyBytes_GET_SIZE(digest) and not PyBytes_GET_SIZE(packed)
        return NIL if is_none else None
    if not PyBytes_GET_SIZE(digest):
        return packed
    if short or type(data) is not dict:
        return None
    found = PyDict_GetItem(<dict>data, digest)
    return <bytes>found if found is not NULL and type(<object>found) is bytes else None


cdef dict json_object(text):
    """Read an object in JSON. Raises for anything else."""
    if type(text) is not str:
        raise NeedsReferenceError
    found, end = scan(text, 0)
    if type(found) is not dict or end != PyUnicode_GET_LENGTH(text):
        raise NeedsReferenceError
    return found


cdef dict config_of(thread_id, ns, checkpoint_id):
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}


@final
cdef class _Decoder:
    """Makes the user's values of a `threadmark.saver.loading.LoadedCheckpoint`, a tuple of the class `made`.

    The functions read the parts that are not plain: a checkpoint's fields that are no values, a channel's value, the
    metadata, and a pending write.
    """

    cdef type made
    cdef object read_fields, read_channel, read_metadata, read_write

    def __init__(self, type made not None, read_fields, read_channel, read_metadata, read_write):
        self.made = made
        self.read_fields, self.read_channel = read_fields, read_channel
        self.read_metadata, self.read_write = read_metadata, read_write

    def __call__(self, context, loaded, bint short):
        """`context` is the functions' first argument. With `short`, they read each value that is no literal."""
        cdef dict checkpoint
        _, outline, header, _, _, writes, data = fields(loaded)
        thread_id, ns, checkpoint_id, _, parent, _, metadata = fields(outline)
        versions, stored, plain, rest = fields(header)
        checkpoint = self.plain_fields(context, outline, header, plain, rest)
        checkpoint["id"] = checkpoint_id
        checkpoint["channel_values"] = self.values(context, outline, stored, data, short)
        checkpoint["channel_versions"] = PyDict_Copy(versions)
        return tracked_tuple(
            self.made,
            (
                config_of(thread_id, ns, checkpoint_id),
                checkpoint,
                self.metadata(outline, metadata),
                config_of(thread_id, ns, parent) if parent else None,
                self.pending_writes(context, thread_id, writes, data, short),
            ),
        )

    cdef dict plain_fields(self, context, outline, header, plain, rest):
        if rest is None and type(plain) is bytes:
            try:
                found = whole(plain)
                if type(found) is dict:
                    return found
            except (NeedsReferenceError, UnicodeDecodeError):
                pass
        return self.read_fields(context, outline, header)

    cdef dict values(self, context, outline, dict stored, data, bint short):
        cdef dict found = {}
        for channel, value in stored.items():
            encoded = plain_bytes(value, data, short)
            if encoded is not None:
                try:
                    found[channel] = whole(encoded)
                    continue
                except (NeedsReferenceError, UnicodeDecodeError):
                    pass
            found[channel] = self.read_channel(context, outline, channel, value, data)
        return found

    cdef dict metadata(self, outline, text):
        try:
            return json_object(text)
        except (NeedsReferenceError, StopIteration, ValueError, RecursionError, MemoryError):
            return self.read_metadata(outline)

    cdef list pending_writes(self, context, thread_id, list writes, data, bint short):
        """Return the tasks' writes as (task, channel, value).

        A write is a pair of its row, which begins with namespace, checkpoint, task, index, path and channel, and its
        value.
        """
        cdef list found = []
        for write in writes:
            row, value = fields(write)
            encoded = plain_bytes(value, data, short)
            if encoded is not None:
                try:
                    read = whole(encoded)
                    row = fields(row)
                    found.append((row[2], row[5], read))
                    continue
                except (NeedsReferenceError, UnicodeDecodeError):
                    pass
            found.append(self.read_write(context, thread_id, write, data))
        return found


def decoded(type made not None, read_fields, read_channel, read_metadata, read_write, context, loaded, bint short):
    """Return the user's values of a loaded checkpoint; see `_Decoder`."""
    return _Decoder(made, read_fields, read_channel, read_metadata, read_write)(context, loaded, short)
