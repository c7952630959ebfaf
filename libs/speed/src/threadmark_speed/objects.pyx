# cython: language_level=3
"""Taking objects apart, and building them again: the families' work for records and models, in the usual case.

The reference is the result of a family in `threadmark.serde.kinds` for each class. An object that looks like one before
it is handled here. Any other goes to the reference, which alone knows how its mark is made, the values it refuses, and
the text of an error.

No user's method is called here that the reference would not call. If one may run (when attributes are read, when
sets are compared), only our own references are held.
"""

from cpython.dict cimport PyDict_Copy, PyDict_Next
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        object (*tp_descr_get)(object descriptor, object instance, object owner)
        int (*tp_descr_set)(object descriptor, object instance, object value) except -1

    PyTypeObject *Py_TYPE(object found)
    PyObject *PyDict_GetItemWithError(object mapping, object key) except? NULL
    int PyUnicode_Compare(object one, object other) except? -1
    object PySet_New(object members)
    list PyList_New(Py_ssize_t length)
    void PyList_SET_ITEM(list items, Py_ssize_t index, object item)  # takes over a reference
    PyObject *PyTuple_GET_ITEM(tuple items, Py_ssize_t index)

cdef enum:
    MOST_LAYOUTS = 8  # of one class


cdef class Layout:
    """How the state of some objects of a class looks: the names in their dictionary, and the shape that follows."""

    cdef tuple names
    cdef frozenset fields_set
    cdef bint is_bare
    cdef object shape

    cdef list items(self, dict state):
        """Return the shape and the values if the names are these, in this order, or None."""
        cdef Py_ssize_t position = 0, index = 0
        cdef PyObject *key
        cdef PyObject *value
        cdef PyObject *name
        cdef list items
        cdef Py_ssize_t count = len(self.names)
        if len(state) != count:
            return None
        items = PyList_New(1 + count)
        Py_INCREF(self.shape)
        PyList_SET_ITEM(items, 0, self.shape)
        # From here on no other code can run: keys are compared only if they are of type str itself.
        if len(state) != count:
            return None
        while PyDict_Next(state, &position, &key, &value):
            name = PyTuple_GET_ITEM(self.names, index)
            if key != name and (type(<object>key) is not str or PyUnicode_Compare(<object>key, <object>name)):
                return None
            index += 1
            Py_INCREF(<object>value)
            PyList_SET_ITEM(items, index, <object>value)
        return items


cdef class ObjectWriter:
    """Takes objects of one class apart, as a function of the reference does, which is asked about each new layout."""

    def __init__(self, reference, slots, is_state=None):
        self.reference, self.is_state = reference, is_state
        self.dictionary, *of_models = slots
        for descriptor in slots:
            if Py_TYPE(descriptor).tp_descr_get is NULL:
                raise TypeError(f"{descriptor!r} cannot get anything")
        if of_models:
            self.fields_set, self.extra, self.private = of_models
        self.layouts = ()

    def __call__(self, value):
        return self.items(value)

    cdef list items(self, value):
        """Return the object's shape and state."""
        try:
            found = self.record_items(value) if self.private is None else self.model_items(value)
        except AttributeError:
            found = None  # a slot that is not set: the reference knows its meaning
        if found is not None:
            return found
        items = self.reference(value)
        self.learn(items)
        return items

    cdef list record_items(self, value):
        """Return the items of an object that has nothing but its dictionary, or None if it has a new layout."""
        cdef Layout layout
        state = got(self.dictionary, value)
        if type(state) is dict:
            for layout in self.layouts:
                items = layout.items(<dict>state)
                if items is not None:
                    return items
        return None

    cdef list model_items(self, model):
        """Return the items of a pydantic model without extra values and private attributes, or None."""
        cdef Layout layout
        state, set_fields, extra = got(self.dictionary, model), got(self.fields_set, model), got(self.extra, model)
        if type(state) is not dict or type(set_fields) is not set:
            return None
        if extra is not None and (type(extra) is not dict or len(<dict>extra)):
            return None
        for layout in self.layouts:
            if layout.is_bare is (extra is None) and set_fields == layout.fields_set:
                items = layout.items(<dict>state)
                if items is not None:
                    return items if got(self.private, model) is None else None
        return None

    cdef int learn(self, list items) except -1:
        """Remember the layout of an object, from the items that the reference has made its shape of."""
        cdef Layout known, layout = Layout()
        shape = items[0]
        key = shape.key
        if key is None or shape in [known.shape for known in self.layouts]:
            return 0
        if self.private is not None:
            names, layout.fields_set, extra, private = key
            if private or extra > 1:  # there is a state besides the model's dictionary, or may be
                return 0
            layout.is_bare = not extra
        else:
            names = key
        if len(items) != 1 + len(names) or not (self.is_state is None or self.is_state(names)):
            return 0
        for name in names:
            if type(name) is not str:
                return 0
        layout.names, layout.shape = names, shape
        self.layouts = (layout, *self.layouts[: MOST_LAYOUTS - 1])
        return 0


cdef class ObjectReader:
    """Builds objects of one class from their items, as a function of the reference does.

    Other attributes that are set are slots of models: the set of the fields that were set, of which each gets a copy,
    and dictionaries, which are empty here, or None.
    """

    cdef object reference, cls, dictionary
    cdef tuple names
    cdef dict template
    cdef list slots

    def __init__(self, reference, cls, dictionary, names, slots=()):
        self.reference, self.cls, self.dictionary = reference, cls, dictionary
        self.names, self.template, self.slots = tuple(names), dict.fromkeys(names), list(slots)
        for descriptor in [dictionary, *[descriptor for descriptor, _ in self.slots]]:
            if Py_TYPE(descriptor).tp_descr_set is NULL:
                raise TypeError(f"{descriptor!r} cannot set anything")

    def __call__(self, items):
        return self.built([None, *items])

    cdef built(self, list items):
        """Return the object. The items begin behind the first one, in whose place the mark stood."""
        cdef Py_ssize_t index, count = len(self.names)
        if PyList_GET_SIZE(items) != 1 + count:
            return self.reference(items[1:])
        state = PyDict_Copy(self.template)
        for index in range(count):
            state[self.names[index]] = items[index + 1]
        built = new(self.cls)
        set_by(self.dictionary, built, state)
        for descriptor, content in self.slots:
            if content is not None:
                content = PySet_New(content) if type(content) is frozenset else {}
            set_by(descriptor, built, content)
        return built


cdef got(descriptor, instance):
    """Call the descriptor's `__get__`, without making a method of it."""
    return Py_TYPE(descriptor).tp_descr_get(descriptor, instance, type(instance))


cdef int set_by(descriptor, instance, value) except -1:
    """Call the descriptor's `__set__`."""
    return Py_TYPE(descriptor).tp_descr_set(descriptor, instance, value)


cdef object new = object.__new__


def hooks(int mark_code, reader_class, dict known, new_reader):
    """Return the reader of arrays, the reader of marks, and the count of marks that no array began with."""
    cdef Reading reading = Reading()
    reading.mark_code, reading.reader_class, reading.known, reading.new_reader = (
        mark_code, reader_class, known, new_reader,
    )
    return reading.array, reading.mark, reading.unread


cdef class Reading:
    """The functions that msgpack's unpacker calls, as `decoder.decode` makes them."""

    cdef int mark_code
    cdef Py_ssize_t marks
    cdef dict known
    cdef object new_reader, reader_class

    def unread(self):
        return self.marks

    def mark(self, int code, payload):
        cdef PyObject *found = PyDict_GetItemWithError(self.known, payload) if code == self.mark_code else NULL
        self.marks += 1
        return self.new_reader(code, payload) if found is NULL else <object>found

    def array(self, list items):
        if not PyList_GET_SIZE(items) or type(items[0]) is not self.reader_class:
            return items
        self.marks -= 1
        reconstruct = items[0].reconstruct
        if type(reconstruct) is ObjectReader:
            return (<ObjectReader>reconstruct).built(items)
        del items[0]
        return reconstruct(items)
