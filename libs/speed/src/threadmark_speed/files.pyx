# cython: language_level=3
"""Looking at files: the counterpart of `Looks` in `threadmark_sqlite.driver.database_files`. Not for Windows.

`os.stat` makes an object of nineteen fields, which takes longer than the kernel takes to answer.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.ref cimport Py_DECREF

cdef extern from "Python.h":
    int PyUnicode_FSConverter(object path, void *result) except 0

cdef extern from *:
    """
    #include <errno.h>
    #include <sys/stat.h>
    #if defined(__linux__)
    #include <fcntl.h>
    #include <sys/sysmacros.h>
    #endif

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

    /* Like `threadmark_look`, for the device and the inode alone. Linux gives a file whose times were asked for a new
       time at its next write, and a sync then waits for that as well: 40 us for each commit if it is the log. */
    static int threadmark_find(const char *path, threadmark_status *found) {
    #if defined(__linux__) && defined(STATX_INO)
        struct statx seen;
        if (statx(AT_FDCWD, path, 0, STATX_INO, &seen) == 0) {
            found->device = (long long)makedev(seen.stx_dev_major, seen.stx_dev_minor);
            found->inode = (unsigned long long)seen.stx_ino;
            return 0;
        }
        if (errno != ENOSYS && errno != EPERM) return -1;  /* an old kernel, or a sandbox that does not know it */
    #endif
        return threadmark_look(path, found);
    }
    """
    ctypedef struct threadmark_status:
        long long device
        unsigned long long inode
        long long modified
        long long size

    int threadmark_look(const char *path, threadmark_status *found) nogil
    int threadmark_find(const char *path, threadmark_status *found) nogil


cdef struct Place:
    const char *path
    long long device
    unsigned long long inode


cdef bint is_at(const Place *place, threadmark_status *seen) noexcept nogil:
    """Look at a place. Whether the file is there that is known to be."""
    return threadmark_look(place.path, seen) == 0 and seen.device == place.device and seen.inode == place.inode


cdef bint is_found(const Place *place) noexcept nogil:
    """Like `is_at`, without a look at the times and the size."""
    cdef threadmark_status seen
    return threadmark_find(place.path, &seen) == 0 and seen.device == place.device and seen.inode == place.inode


cdef class Looks:
    """The files of a database that is open."""

    cdef bytes path, log_path
    cdef Place database, its_log
    cdef bint has_log, has_stamp
    cdef long long modified, size

    def __init__(self, path, database, log_path):
        self.path, self.log_path = converted(path), converted(log_path)
        self.database.path, self.its_log.path = PyBytes_AS_STRING(self.path), PyBytes_AS_STRING(self.log_path)
        self.database.device, self.database.inode = database

    @property
    def log(self):
        return (self.its_log.device, self.its_log.inode) if self.has_log else None

    @log.setter
    def log(self, log):
        self.has_log = log is not None
        if self.has_log:
            self.its_log.device, self.its_log.inode = log

    @property
    def stamp(self):
        return (self.modified, self.size) if self.has_stamp else None

    @stamp.setter
    def stamp(self, stamp):
        self.has_stamp = stamp is not None
        if self.has_stamp:
            self.modified, self.size = stamp

    cpdef bint is_there(self):
        cdef threadmark_status seen
        cdef Place database = self.database
        path = self.path  # the place points to it, and others may be set while the interpreter is free
        with nogil:  # the file may be on another machine
            found = is_at(&database, &seen)
        return found

    cpdef bint is_untouched(self):
        cdef threadmark_status seen
        cdef Place database = self.database
        path = self.path
        with nogil:
            found = is_at(&database, &seen)
        return found and self.has_stamp and seen.modified == self.modified and seen.size == self.size

    cpdef bint is_kept(self):
        cdef threadmark_status seen
        cdef Place database = self.database, its_log = self.its_log
        cdef bint has_log = self.has_log
        paths = self.path, self.log_path
        with nogil:
            found = is_at(&database, &seen)
            found_log = not has_log or is_found(&its_log)
        if found:
            self.modified, self.size, self.has_stamp = seen.modified, seen.size, True
        return found and found_log


cdef bytes converted(object path):
    """The path as the operating system spells it. Raises ValueError for one with a NUL."""
    cdef void *made = NULL
    PyUnicode_FSConverter(path, &made)
    encoded = <bytes>made
    Py_DECREF(encoded)  # the converter's own reference
    return encoded
