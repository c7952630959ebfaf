"""Making named tuples, for which their classes would call a function in Python, and unpacking them."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

cdef extern from "Python.h":
    """
    /* With members added, or a dictionary, a class has more to make than the items of a tuple. */
    #define IS_NAMED_TUPLE(cls) (PyType_FastSubclass((PyTypeObject *)(cls), Py_TPFLAGS_TUPLE_SUBCLASS) && \\
        ((PyTypeObject *)(cls))->tp_basicsize == PyTuple_Type.tp_basicsize)
    #define ALLOCATED(cls, count) PyType_GenericAlloc((PyTypeObject *)(cls), count)
    /* A tuple of Python 3.14 remembers its hash, and -1 says that it is not known yet; memory begins with 0. */
    #if PY_VERSION_HEX >= 0x030E0000
    #define FORGET_HASH(made) (((PyTupleObject *)(made))->ob_hash = -1)
    #else
    #define FORGET_HASH(made) ((void)(made))
    #endif
    """
    bint IS_NAMED_TUPLE(type cls)
    object ALLOCATED(type cls, Py_ssize_t count)
    void FORGET_HASH(object made)
    void PyObject_GC_UnTrack(object found)
    Py_ssize_t PyTuple_GET_SIZE(object items)
    PyObject *PyTuple_GET_ITEM(object items, Py_ssize_t index)
    void PyTuple_SET_ITEM(object items, Py_ssize_t index, object item)  # takes over a reference
    bint PyTuple_Check(object found)


cdef inline tuple fields(object row):
    """A named tuple as a tuple, so that it is unpacked without an iterator: by number, which is compared."""
    if not PyTuple_Check(row):
        raise TypeError("not a row")
    return <tuple>row


cdef inline object tracked_tuple(type cls, tuple fields):
    """Return the result of `tuple.__new__(cls, fields)`."""
    cdef Py_ssize_t index, count = PyTuple_GET_SIZE(fields)
    if not IS_NAMED_TUPLE(cls):
        return tuple.__new__(cls, fields)
    made = ALLOCATED(cls, count)
    FORGET_HASH(made)
    for index in range(count):
        field = <object>PyTuple_GET_ITEM(fields, index)
        Py_INCREF(field)
        PyTuple_SET_ITEM(made, index, field)
    return made


cdef inline object named_tuple(type cls, tuple fields):
    """Return the same for text, bytes, numbers, None, and tuples of such.

    None of them refers to anything that leads back, so the collector need not look at it, as at such tuples in CPython.
    """
    made = tracked_tuple(cls, fields)
    if IS_NAMED_TUPLE(cls):
        PyObject_GC_UnTrack(made)
    return made
