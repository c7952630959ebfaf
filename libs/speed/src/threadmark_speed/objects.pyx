# cython: language_level=3, binding=False
"""Writing values as msgpack, taking their objects apart, and building them again: the serializer's inner loops.

The reference is `threadmark.serde`: `encoder.py` and `decoder.py`, and for each class the function that its family
returns. What is compiled here is the usual case: builtin types, and objects that look like one before them. Whatever
looks different in any way is given to the reference, which alone knows how marks are made, what is refused, and what
an error says.

No user's method is called here that the reference would not call. Where one may run (in a function of the reference,
when attributes are read, when sets are compared), nothing is held but references of our own: lists are read by index,
their length is looked at anew each time, and dictionaries are copied before their values are written.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Copy, PyDict_Next
from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        int (*tp_descr_set)(object descriptor, object instance, object value) except -1

    PyTypeObject *Py_TYPE(object found)
    PyObject *PyDict_GetItemWithError(object mapping, object key) except? NULL
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1
    unsigned long long PyLong_AsUnsignedLongLong(object number) except? 0xFFFFFFFFFFFFFFFF
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    void *PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    int PyUnicode_Compare(object one, object other) except? -1
    PyObject *new_bytes "PyBytes_FromStringAndSize"(const char *content, Py_ssize_t size) except NULL
    int _PyBytes_Resize(PyObject **content, Py_ssize_t size) except -1
    object PySet_New(object members)
    void Py_XDECREF(PyObject *found)


class CannotPackError(Exception):
    """The value holds something that only the reference can judge."""


cdef enum:
    DEEPEST = 128  # levels; each takes a few hundred bytes of the C stack
    FIRST_ROOM = 256  # bytes
    LONG = 65536  # bytes from which on room is made for as much as the last long value took
    MOST_GUESSED = 1 << 20  # bytes of room made for that reason
    MOST_LAYOUTS = 8  # of one class


cdef Py_ssize_t last_long = 0


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
        if len(state) != len(self.names):
            return None
        items = [self.shape]
        # Nothing in this loop can run other code: keys are compared only if they are of type str itself.
        while PyDict_Next(state, &position, &key, &value):
            name = self.names[index]
            if key != <PyObject *>name and (type(<object>key) is not str or PyUnicode_Compare(<object>key, name)):
                return None
            items.append(<object>value)
            index += 1
        return items


cdef class ObjectWriter:
    """Takes objects of one class apart, as a function of the reference does, which is asked about each new layout."""

    cdef object reference, is_state
    cdef bint are_models
    cdef tuple layouts

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
        if model.__pydantic_private__ is not None or type(state) is not dict or type(given) is not set:
            return None
        if extra is not None and (type(extra) is not dict or len(<dict>extra)):
            return None
        for layout in self.layouts:
            if layout.is_bare is (extra is None) and given == layout.fields_set:
                items = layout.items(<dict>state)
                if items is not None:
                    return items
        return None

    cdef int learn(self, list items) except -1:
        """Remember the layout of an object, from what the reference has made its shape of."""
        cdef Layout layout = Layout()
        shape = items[0]
        key = shape.key
        if key is None:
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


cdef class Packer:
    """Writes one value. `begin` returns what is needed once an object occurs (`encoder.new_objects`)."""

    cdef object begin, new_writer, new_mark
    cdef dict writers, marks
    cdef PyObject *out  # bytes that nobody else has seen
    cdef char *start
    cdef Py_ssize_t used, room

    def __cinit__(self, begin):
        self.begin = begin
        self.out = NULL
        self.resize(FIRST_ROOM)

    def __dealloc__(self):
        Py_XDECREF(self.out)

    cdef int resize(self, Py_ssize_t room) except -1:
        if self.out is NULL:
            self.out = new_bytes(NULL, room)
        else:
            _PyBytes_Resize(&self.out, room)
        self.start, self.room = PyBytes_AS_STRING(<object>self.out), room
        return 0

    cdef int reserve(self, Py_ssize_t more) except -1:
        """Make room for more bytes."""
        cdef Py_ssize_t room
        if self.room - self.used >= more:
            return 0
        room = max(2 * self.room, self.used + more)
        self.resize(room if room < LONG else max(room, min(last_long + last_long // 16, MOST_GUESSED)))
        return 0

    cdef bytes finished(self):
        global last_long
        self.resize(self.used)
        if self.used >= LONG:
            last_long = self.used
        return <bytes>self.out

    cdef int write(self, const char *content, Py_ssize_t size) except -1:
        self.reserve(size)
        memcpy(self.start + self.used, content, size)
        self.used += size
        return 0

    cdef int number(self, uint8_t header, uint64_t number, int width) except -1:
        """Write a header and a number of so many bytes, the most significant first."""
        cdef int index
        self.reserve(1 + width)
        self.start[self.used] = <char>header
        for index in range(width):
            self.start[self.used + width - index] = <char>(number >> (8 * index) & 0xFF)
        self.used += 1 + width
        return 0

    cdef int length(self, uint8_t short, Py_ssize_t below, uint8_t header, bint has_byte, Py_ssize_t length) except -1:
        """Write the header of something of this length. `header` is that of the least width."""
        if length < below:
            return self.number(short + <uint8_t>length, 0, 0)
        if has_byte:
            if length <= 0xFF:
                return self.number(header, length, 1)
            header += 1
        if length <= 0xFFFF:
            return self.number(header, length, 2)
        if length <= 0xFFFFFFFF:
            return self.number(header + 1, length, 4)
        raise CannotPackError

    cdef int text(self, text) except -1:
        cdef Py_ssize_t size
        cdef const char *content
        if PyUnicode_IS_COMPACT_ASCII(text):
            content, size = <const char *>PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text)
        else:
            try:
                content = PyUnicode_AsUTF8AndSize(text, &size)
            except UnicodeEncodeError:
                text = (<str>text).encode("utf-8", "surrogatepass")
                content, size = PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)
        self.length(0xA0, 32, 0xD9, True, size)
        return self.write(content, size)

    cdef int integer(self, value, int depth) except -1:
        cdef int overflow = 0
        cdef int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow < 0:
            return self.item(value, depth)
        if overflow > 0:
            try:
                return self.number(0xCF, PyLong_AsUnsignedLongLong(value), 8)
            except OverflowError:
                return self.item(value, depth)
        if number >= 0:
            if number < 0x80:
                return self.number(<uint8_t>number, 0, 0)
            if number <= 0xFF:
                return self.number(0xCC, number, 1)
            if number <= 0xFFFF:
                return self.number(0xCD, number, 2)
            return self.number(0xCE, number, 4) if number <= 0xFFFFFFFF else self.number(0xCF, number, 8)
        if number >= -32:
            return self.number(<uint8_t>number, 0, 0)
        if number >= -0x80:
            return self.number(0xD0, number, 1)
        if number >= -0x8000:
            return self.number(0xD1, number, 2)
        return self.number(0xD2, number, 4) if number >= -0x80000000LL else self.number(0xD3, number, 8)

    cdef int real(self, value) except -1:
        cdef double number = PyFloat_AS_DOUBLE(value)
        cdef uint64_t bits
        memcpy(&bits, &number, 8)
        return self.number(0xCB, bits, 8)

    cdef int array(self, list items, int depth, bint opaque) except -1:
        cdef Py_ssize_t count = PyList_GET_SIZE(items), index
        self.length(0x90, 16, 0xDC, False, count)
        for index in range(count):
            if index >= PyList_GET_SIZE(items):
                raise CannotPackError
            self.value(items[index], depth + 1, opaque)
        if count != PyList_GET_SIZE(items):
            raise CannotPackError
        return 0

    cdef int mapping(self, dict items, int depth, bint opaque) except -1:
        cdef Py_ssize_t position = 0, count = len(items), written = 0
        cdef PyObject *key
        cdef PyObject *value
        self.length(0x80, 16, 0xDE, False, count)
        while PyDict_Next(items, &position, &key, &value):
            own_key, own_value = <object>key, <object>value  # writing them may run code that changes the dictionary
            self.value(own_key, depth + 1, opaque)
            self.value(own_value, depth + 1, opaque)
            written += 1
            if len(items) != count:
                raise CannotPackError
        if written != count:
            raise CannotPackError
        return 0

    cdef int buffer(self, value) except -1:
        cdef Py_buffer view
        try:
            PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
        except BufferError:
            raise CannotPackError from None
        try:
            self.length(0, 0, 0xC4, True, view.len)
            self.write(<const char *>view.buf, view.len)
        finally:
            PyBuffer_Release(&view)
        return 0

    cdef int item(self, value, int depth) except -1:
        """Write an object: an array of its mark and its state."""
        cdef PyObject *found
        cdef Py_ssize_t index, count
        cdef bint opaque = False
        cdef list items
        if self.writers is None:
            self.writers, self.new_writer, self.marks, self.new_mark = self.begin()
        found = PyDict_GetItemWithError(self.writers, type(value))
        writer = self.new_writer(type(value)) if found is NULL else <object>found
        if type(writer) is ObjectWriter:
            items = (<ObjectWriter>writer).items(value)
        else:
            found_items = writer(value)
            if type(found_items) is not list or not found_items:
                raise CannotPackError
            items = found_items
        shape = items[0]
        if type(writer) is not ObjectWriter:
            opaque = shape.opaque
        count = PyList_GET_SIZE(items)
        self.length(0x90, 16, 0xDC, False, count)
        found = PyDict_GetItemWithError(self.marks, shape)
        mark = self.new_mark(shape) if found is NULL else <object>found
        self.write(PyBytes_AS_STRING(mark), PyBytes_GET_SIZE(mark))
        for index in range(1, count):
            if index >= PyList_GET_SIZE(items):
                raise CannotPackError
            self.value(items[index], depth + 1, opaque)
        return 0

    cdef int value(self, value, int depth, bint opaque) except -1:
        """Write any value. The state of an opaque shape may hold buffers, which are written as bytes."""
        cls = type(value)
        if depth > DEEPEST:
            raise CannotPackError
        if cls is str:
            return self.text(value)
        if cls is dict:
            return self.mapping(<dict>value, depth, opaque)
        if cls is list:
            return self.array(<list>value, depth, opaque)
        if value is None:
            return self.number(0xC0, 0, 0)
        if cls is int:
            return self.integer(value, depth)
        if cls is bool:
            return self.number(0xC3 if value is True else 0xC2, 0, 0)
        if cls is float:
            return self.real(value)
        if cls is bytes:
            self.length(0, 0, 0xC4, True, PyBytes_GET_SIZE(value))
            return self.write(PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
        if opaque and (cls is memoryview or cls is bytearray):
            return self.buffer(value)
        return self.item(value, depth)


def pack(value, begin):
    """Return the encoding, and whether there are marks in it. Raises CannotPackError if only the reference can tell."""
    packer = Packer(begin)
    packer.value(value, 0, False)
    return packer.finished(), packer.writers is not None


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
