cdef class ObjectWriter:
    cdef object reference, is_state, dictionary, fields_set, extra, private
    cdef tuple layouts

    cdef list items(self, value)
    cdef list record_items(self, value)
    cdef list model_items(self, model)
    cdef int learn(self, list items) except -1
