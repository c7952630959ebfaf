# cython: language_level=3
"""Taking objects apart, and building them again: what the families do for records and models, for the usual case.

The reference is what a family in `threadmark.serde.kinds` returns for each class. An object that looks like one before
it is dealt with here. Any other is given to the reference, which alone knows how its mark is made, what is refused, and
what an error says.

No user's method is called here that the reference would not call. Where one may run (when attributes are read, when
sets are compared), nothing is held but references of our own.
"""

from cpython.dict cimport PyDict_Copy, PyDict_Next
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        int (*tp_descr_set)(object descriptor, object instance, object value) except -1

    PyTypeObject *Py_TYPE(object found)
    PyObject *PyDict_GetItemWithError(object mapping, object key) except? NULL
    int PyUnicode_Compare(object one, object other) except? -1
    object PySet_New(object members)

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
        items = [self.shape]
        # From here on no other code can run: keys are compared only if they are of type str itself.
        if len(state) != len(self.names):
            return None
        while PyDict_Next(state, &position, &key, &value):
            name = self.names[index]
            if key != <PyObject *>name and (type(<object>key) is not str or PyUnicode_Compare(<object>key, name)):
                return None
            items.append(<object>value)
            index += 1
        return items


cdef class ObjectWriter:
    """Takes objects of one class apart, as a function of the reference does, which is asked about each new layout."""

    def __init__(self, reference, is_state=None, *, bint are_models=False):
        self.reference, self.is_state, self.are_models = reference, is_state, are_models
        self.layouts = ()

    def __call__(self, value):
        return self.items(value)

    cdef list items(self, value):
        """Return the object's shape and state."""
        found = self.model_items(value) if self.are_models else self.record_items(value)
        if found is not None:
            return found
        items = self.reference(value)
        self.learn(items)
        return items

    cdef list record_items(self, value):
        """Return the items of an object that has nothing but its dictionary, or None if it has a new layout."""
        cdef Layout layout
        state = value.__dict__
        if type(state) is dict:
            for layout in self.layouts:
                items = layout.items(<dict>state)
                if items is not None:
                    return items
        return None

    cdef list model_items(self, model):
        """Return the items of a pydantic model without extra values and private attributes, or None."""
        cdef Layout layout
        state, given, extra = model.__dict__, model.__pydantic_fields_set__, model.__pydantic_extra__
        if type(state) is not dict or type(given) is not set:
            return None
        if extra is not None and (type(extra) is not dict or len(<dict>extra)):
            return None
        for layout in self.layouts:
            if layout.is_bare is (extra is None) and given == layout.fields_set:
                items = layout.items(<dict>state)
                if items is not None:
                    return items if model.__pydantic_private__ is None else None
        return None

    cdef int learn(self, list items) except -1:
        """Remember the layout of an object, from what the reference has made its shape of."""
        cdef Layout known, layout = Layout()
        shape = items[0]
        key = shape.key
        if key is None or shape in [known.shape for known in self.layouts]:
            return 0
        if self.are_models:
            names, layout.fields_set, extra, private = key
            if private or extra > 1:  # there is a state beside the model's dictionary, or may be
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


cdef int set_by(descriptor, instance, value) except -1:
    """Do what the descriptor's `__set__` does, without making a method of it."""
    return Py_TYPE(descriptor).tp_descr_set(descriptor, instance, value)


cdef object new = object.__new__


def hooks(int mark_code, reader_class, dict known, new_reader):
    """Return what reads an array, what reads a mark, and how many marks were read that no array began with."""
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
