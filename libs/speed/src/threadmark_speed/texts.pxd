"""Texts that are columns as they are, and ids that are UUIDs. Whatever these functions refuse, a reference judges."""

from libc.string cimport memchr

cdef extern from "Python.h":
    bint PyUnicode_CheckExact(object found)
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    void *PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)

cdef enum:
    UUID_LENGTH = 36
    UUID_BYTES = 16


cdef inline const char *ascii_text(object text):
    """The characters of a text in ASCII, or NULL for any other object."""
    if PyUnicode_CheckExact(text) and PyUnicode_IS_COMPACT_ASCII(text):
        return <const char *>PyUnicode_DATA(text)
    return NULL


cdef inline bint is_column(object text):
    """Whether `threadmark.names.to_column` leaves this text unchanged. It says no for some such text, too."""
    cdef const char *start = ascii_text(text)
    cdef Py_ssize_t length
    if start is NULL:
        return False
    length = PyUnicode_GET_LENGTH(text)
    return memchr(start, 0, length) is NULL and memchr(start, 1, length) is NULL


cdef inline int digit(char character) noexcept:
    """The value of a hexadecimal digit as UUIDs are written, or -1."""
    if c'0' <= character <= c'9':
        return character - c'0'
    if c'a' <= character <= c'f':
        return character - c'a' + 10
    return -1


cdef inline bint pack_uuid(object text, char *packed):
    """Whether an id is a UUID as it is usually written. If so, its bytes have been packed (`UUID_BYTES`)."""
    cdef const char *start = ascii_text(text)
    cdef Py_ssize_t at = 0, made = 0
    cdef int high, low
    if start is NULL or PyUnicode_GET_LENGTH(text) != UUID_LENGTH:
        return False
    while at < UUID_LENGTH:
        if at == 8 or at == 13 or at == 18 or at == 23:
            if start[at] != c'-':
                return False
            at += 1
            continue
        high, low = digit(start[at]), digit(start[at + 1])  # groups have even lengths: the second is within the text
        if high < 0 or low < 0:
            return False
        packed[made] = <char>(high << 4 | low)
        made += 1
        at += 2
    return True
