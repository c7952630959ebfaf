# cython: language_level=3
"""Looking at a file: the counterpart of `status_of` in `threadmark_sqlite.driver.database_files`.

`os.stat` makes an object of nineteen fields, which takes longer than the kernel takes to answer.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.exc cimport PyErr_SetFromErrnoWithFilenameObject
from cpython.ref cimport Py_DECREF

cdef extern from "Python.h":
    int PyUnicode_FSConverter(object path, void *result) except 0

cdef extern from *:
    """
    #include <errno.h>
    #include <sys/stat.h>

    typedef struct { long long device; unsigned long long inode; long long modified; long long size; } threadmark_status;

    #if defined(_WIN32)
    static int threadmark_look(const char *path, threadmark_status *found) { errno = ENOSYS; return -1; }
    #else
    #if defined(__APPLE__)
    #define THREADMARK_MODIFIED st_mtimespec
    #else
    #define THREADMARK_MODIFIED st_mtim
    #endif
    static int threadmark_look(const char *path, threadmark_status *found) {
        struct stat seen;
        if (stat(path, &seen) != 0) return -1;
        found->device = (long long)seen.st_dev;
        found->inode = (unsigned long long)seen.st_ino;
        found->modified = (long long)seen.THREADMARK_MODIFIED.tv_sec * 1000000000 + seen.THREADMARK_MODIFIED.tv_nsec;
        found->size = (long long)seen.st_size;
        return 0;
    }
    #endif
    """
    ctypedef struct threadmark_status:
        long long device
        unsigned long long inode
        long long modified
        long long size

    int threadmark_look(const char *path, threadmark_status *found) nogil


def status_of(path):
    """Return the device, the inode, when the file was last written to and its size. Not for Windows."""
    cdef bytes encoded = converted(path)
    cdef threadmark_status seen
    cdef const char *start = PyBytes_AS_STRING(encoded)
    cdef int failed
    with nogil:  # the file may be on another machine
        failed = threadmark_look(start, &seen)
    if failed:
        PyErr_SetFromErrnoWithFilenameObject(OSError, path)
    return seen.device, seen.inode, seen.modified, seen.size


cdef bytes converted(object path):
    """The path as the operating system spells it. Raises ValueError for one with a NUL."""
    cdef void *made = NULL
    PyUnicode_FSConverter(path, &made)
    encoded = <bytes>made
    Py_DECREF(encoded)  # the converter's own reference
    return encoded
