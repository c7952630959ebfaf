# cython: language_level=3
"""Packed fields and the checks of rows, compiled: the counterparts of functions of `threadmark.format.digests`.

A row's check is BLAKE2b of its fields, packed as msgpack. Here they are packed into one buffer and hashed there, without
an object in between. Fields only the reference can pack (text with surrogates, numbers of more than 64 bits, lists in
lists) are left to it.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy

from threadmark_speed.plain import NeedsReferenceError

cdef extern from *:
    """
    /* BLAKE2b (RFC 7693) without a key, as the checks of rows use it: 12 bytes of it. */
    static const uint64_t blake2b_iv[8] = {
        0x6A09E667F3BCC908ULL, 0xBB67AE8584CAA73BULL, 0x3C6EF372FE94F82BULL, 0xA54FF53A5F1D36F1ULL,
        0x510E527FADE682D1ULL, 0x9B05688C2B3E6C1FULL, 0x1F83D9ABFB41BD6BULL, 0x5BE0CD19137E2179ULL};
    #define ROTATED(x, n) (((x) >> (n)) | ((x) << (64 - (n))))
    #define MIX(a, b, c, d, x, y) \\
        a += b + m[x]; d = ROTATED(d ^ a, 32); c += d; b = ROTATED(b ^ c, 24); \\
        a += b + m[y]; d = ROTATED(d ^ a, 16); c += d; b = ROTATED(b ^ c, 63);
    #define ROUND(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, aa, ab, ac, ad, ae, af) \\
        MIX(v0, v4, v8, vc, a0, a1) MIX(v1, v5, v9, vd, a2, a3) MIX(v2, v6, va, ve, a4, a5) MIX(v3, v7, vb, vf, a6, a7) \\
        MIX(v0, v5, va, vf, a8, a9) MIX(v1, v6, vb, vc, aa, ab) MIX(v2, v7, v8, vd, ac, ad) MIX(v3, v4, v9, ve, ae, af)
    static uint64_t little_endian(const unsigned char *p) {
        return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
            (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
    }
    static void blake2b_block(uint64_t *h, const unsigned char *block, uint64_t count, uint64_t last) {
        uint64_t m[16];
        uint64_t v0 = h[0], v1 = h[1], v2 = h[2], v3 = h[3], v4 = h[4], v5 = h[5], v6 = h[6], v7 = h[7];
        uint64_t v8 = blake2b_iv[0], v9 = blake2b_iv[1], va = blake2b_iv[2], vb = blake2b_iv[3];
        uint64_t vc = blake2b_iv[4] ^ count, vd = blake2b_iv[5], ve = blake2b_iv[6] ^ last, vf = blake2b_iv[7];
        int i;
        for (i = 0; i < 16; i++) m[i] = little_endian(block + 8 * i);
        ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
        ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3)
        ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4)
        ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8)
        ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13)
        ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9)
        ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11)
        ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10)
        ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5)
        ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0)
        ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
        ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3)
        h[0] ^= v0 ^ v8; h[1] ^= v1 ^ v9; h[2] ^= v2 ^ va; h[3] ^= v3 ^ vb;
        h[4] ^= v4 ^ vc; h[5] ^= v5 ^ vd; h[6] ^= v6 ^ ve; h[7] ^= v7 ^ vf;
    }
    static void blake2b_check(const unsigned char *data, size_t size, unsigned char *check) {
        uint64_t h[8];
        unsigned char last[128];
        size_t done = 0;
        int i;
        memcpy(h, blake2b_iv, sizeof h);
        h[0] ^= 0x01010000 ^ 12; /* no key, one leaf, 12 bytes */
        for (; size - done > 128; done += 128) blake2b_block(h, data + done, done + 128, 0);
        memset(last, 0, sizeof last);
        if (size > done) memcpy(last, data + done, size - done);
        blake2b_block(h, last, size, ~(uint64_t)0);
        for (i = 0; i < 12; i++) check[i] = (unsigned char)(h[i / 8] >> (8 * (i % 8)));
    }
    """
    void blake2b_check(const unsigned char *data, size_t size, unsigned char *check) nogil

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass

    PyTypeObject PyUnicode_Type, PyLong_Type, PyBytes_Type
    PyTypeObject *Py_TYPE(PyObject *found)
    long long PyLong_AsLongLongAndOverflow(PyObject *number, int *overflow) except? -1
    const char *PyUnicode_AsUTF8AndSize(PyObject *text, Py_ssize_t *size) except NULL

cdef enum:
    WIDEST = 9  # bytes in front of a text, or of a number
    FEW_FIELDS = 15  # of a list whose header is one byte


cdef class Packer:
    """The packed fields of one row after the other, and their check."""

    def __cinit__(self):
        self.start = NULL

    def __dealloc__(self):
        free(self.start)

    cdef int reserve(self, Py_ssize_t more) except -1:
        cdef void *grown
        if self.room - self.used < more:
            grown = realloc(self.start, 2 * (self.used + more))
            if grown is NULL:
                raise MemoryError
            self.start, self.room = <unsigned char *>grown, 2 * (self.used + more)
        return 0

    cdef int header(self, unsigned char first, uint64_t number, int width) except -1:
        """Write a byte and a number of so many bytes, the most significant first. There is room."""
        cdef int index
        self.start[self.used] = first
        for index in range(width):
            self.start[self.used + width - index] = <unsigned char>(number >> (8 * index) & 0xFF)
        self.used += 1 + width
        return 0

    cdef int integer(self, int64_t number) except -1:
        if number >= 0:
            if number < 0x80:
                return self.header(<unsigned char>number, 0, 0)
            if number <= 0xFF:
                return self.header(0xCC, number, 1)
            if number <= 0xFFFF:
                return self.header(0xCD, number, 2)
            return self.header(0xCE, number, 4) if number <= 0xFFFFFFFF else self.header(0xCF, number, 8)
        if number >= -32:
            return self.header(<unsigned char>number, 0, 0)
        if number >= -0x80:
            return self.header(0xD0, number, 1)
        if number >= -0x8000:
            return self.header(0xD1, number, 2)
        return self.header(0xD2, number, 4) if number >= -0x80000000LL else self.header(0xD3, number, 8)

    cdef int field(self, PyObject *value) except -1:
        """Write text, bytes, an integer or None. Raises NeedsReferenceError for anything else."""
        cdef PyTypeObject *cls = Py_TYPE(value)
        cdef Py_ssize_t size = 0
        cdef const char *content
        cdef int overflow = 0
        cdef int64_t number
        if cls is &PyLong_Type:
            number = PyLong_AsLongLongAndOverflow(value, &overflow)
            if overflow:
                raise NeedsReferenceError
            self.reserve(WIDEST)
            return self.integer(number)
        if cls is &PyUnicode_Type:
            content = PyUnicode_AsUTF8AndSize(value, &size)
            self.reserve(size + WIDEST)
            if size < 32:
                self.header(<unsigned char>(0xA0 | size), 0, 0)
            else:
                self.length(0xD9, size)
        elif cls is &PyBytes_Type:
            content, size = PyBytes_AS_STRING(<object>value), PyBytes_GET_SIZE(<object>value)
            self.reserve(size + WIDEST)
            self.length(0xC4, size)
        elif value is <PyObject *>None:
            self.reserve(WIDEST)
            return self.header(0xC0, 0, 0)
        else:
            raise NeedsReferenceError
        memcpy(self.start + self.used, content, size)
        self.used += size
        return 0

    cdef int length(self, unsigned char first, Py_ssize_t size) except -1:
        if size <= 0xFF:
            return self.header(first, size, 1)
        if size <= 0xFFFF:
            return self.header(first + 1, size, 2)
        if size <= 0xFFFFFFFF:
            return self.header(first + 2, size, 4)
        raise NeedsReferenceError

    cdef int begin(self, int count) except -1:
        """Begin a list. Raises NeedsReferenceError for a very long one."""
        self.used = 0
        self.reserve(WIDEST)
        if count <= FEW_FIELDS:
            return self.header(<unsigned char>(0x90 | count), 0, 0)
        if count > 0xFFFF:
            raise NeedsReferenceError
        return self.header(0xDC, count, 2)

    cdef bint hold(self, list fields) except -1:
        """Pack these fields and nothing else. Returns whether that could be done here."""
        try:
            self.begin(<int>min(len(fields), 0x10000))
            for field in fields:
                self.field(<PyObject *>field)
        except (NeedsReferenceError, UnicodeEncodeError):
            return False
        return True

    cdef bint agrees(self, PyObject *check) except -1:
        """Whether these 12 bytes are the check of the packed fields."""
        if Py_TYPE(check) is not &PyBytes_Type or PyBytes_GET_SIZE(<object>check) != CHECK:
            return False
        blake2b_check(self.start, self.used, self.check)
        return memcmp(self.check, PyBytes_AS_STRING(<object>check), CHECK) == 0


def check_of(list fields not None):
    """Return the check of a row with these fields, or None if the reference has to compute it."""
    cdef Packer packer = Packer()
    return check_of_bytes(packer.start, packer.used) if packer.hold(fields) else None


def pack_plain(value):
    """Return a list of text, bytes, numbers and None as msgpack. None for any other value."""
    cdef Packer packer = Packer()
    if type(value) is not list or not packer.hold(value):
        return None
    return PyBytes_FromStringAndSize(<char *>packer.start, packer.used)


cdef bytes check_of_bytes(const unsigned char *data, Py_ssize_t size):
    """Return the check of a row whose fields are packed already."""
    cdef unsigned char check[CHECK]
    blake2b_check(data, size, check)
    return PyBytes_FromStringAndSize(<char *>check, CHECK)
