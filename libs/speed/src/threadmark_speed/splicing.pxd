"""What other modules need of the splicing of headers."""

cdef bytes spliced_header(dict versions, dict values, bytes plain, dict held, dict stored, bytes encoding)
cdef object stored_field(stored, int index)
