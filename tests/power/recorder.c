/* Records everything that changes the files of one folder, in order: loaded before libc into a process under test.

   POWER_FOLDER is the folder, POWER_TRACE the file to write, POWER_SYNC the microseconds that a sync takes. Nothing is
   really synced: the trace decides afterwards which bytes a power cut would have left. tests/power/trace.py reads it. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define LARGEST 65536

struct __attribute__((packed)) record {
    uint8_t kind;
    uint64_t file;
    uint64_t number;
    uint32_t length;
};

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static const char *folder;
static size_t folder_length;
static int trace = -1;
static useconds_t sync_takes;
static uint64_t syncs;
static unsigned char is_ours[LARGEST];

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("POWER_TRACE"), *takes = getenv("POWER_SYNC");
    folder = getenv("POWER_FOLDER");
    if (path && folder) {
        folder_length = strlen(folder);
        sync_takes = takes ? (useconds_t)atoi(takes) : 0;
        trace = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
}

static void note(char kind, uint64_t file, uint64_t number, const void *data, size_t length) {
    struct record head = {(uint8_t)kind, file, number, (uint32_t)length};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)data, length}};
    if (syscall(SYS_writev, trace, parts, 2) != (long)(sizeof head + length))
        abort();
}

/* The name of a path in the folder, an empty one for the folder itself, NULL for anything else. */
static const char *name_in(const char *path) {
    if (trace < 0 || !path || strncmp(path, folder, folder_length))
        return NULL;
    path += folder_length;
    return *path == '/' ? path + 1 : *path ? NULL : path;
}

static int ours(int file) { return trace >= 0 && file >= 0 && file < LARGEST && is_ours[file]; }

static uint64_t identity(int file, int *is_folder) {
    struct stat found;
    if (fstat(file, &found))
        abort();
    if (is_folder)
        *is_folder = S_ISDIR(found.st_mode);
    return found.st_ino;
}

static int opened(int at, const char *path, int flags, mode_t mode) {
    const char *name = name_in(path);
    if (!name)
        return (int)syscall(SYS_openat, at, path, flags, mode);
    pthread_mutex_lock(&turn);
    struct stat before;
    int is_new = *name && lstat(path, &before) != 0;
    int file = (int)syscall(SYS_openat, at, path, flags, mode);
    if (file >= 0) {
        if (file >= LARGEST)
            abort();
        is_ours[file] = 1;
        if (is_new)
            note('C', identity(file, NULL), 0, name, strlen(name));
        else if (flags & O_TRUNC)
            note('T', identity(file, NULL), 0, NULL, 0);
    }
    pthread_mutex_unlock(&turn);
    return file;
}

#define MODE(flags, mode)                                                                                              \
    mode_t mode = 0;                                                                                                   \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                                             \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode = (mode_t)va_arg(rest, int);                                                                              \
        va_end(rest);                                                                                                  \
    }

int open(const char *path, int flags, ...) {
    MODE(flags, mode)
    return opened(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(flags, mode)
    return opened(AT_FDCWD, path, flags, mode);
}

int openat(int at, const char *path, int flags, ...) {
    MODE(flags, mode)
    return opened(at, path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...) {
    MODE(flags, mode)
    return opened(at, path, flags, mode);
}

int close(int file) {
    if (file >= 0 && file < LARGEST)
        is_ours[file] = 0;
    return (int)syscall(SYS_close, file);
}

static ssize_t written(int file, const void *data, size_t length, off_t offset) {
    pthread_mutex_lock(&turn);
    ssize_t done = syscall(SYS_pwrite64, file, data, length, offset);
    if (done > 0)
        note('W', identity(file, NULL), (uint64_t)offset, data, (size_t)done);
    pthread_mutex_unlock(&turn);
    return done;
}

ssize_t pwrite(int file, const void *data, size_t length, off_t offset) {
    return ours(file) ? written(file, data, length, offset) : syscall(SYS_pwrite64, file, data, length, offset);
}

ssize_t pwrite64(int file, const void *data, size_t length, off64_t offset) {
    return pwrite(file, data, length, offset);
}

ssize_t write(int file, const void *data, size_t length) {
    if (!ours(file))
        return syscall(SYS_write, file, data, length);
    ssize_t done = written(file, data, length, lseek(file, 0, SEEK_CUR));
    if (done > 0)
        lseek(file, done, SEEK_CUR);
    return done;
}

int ftruncate(int file, off_t length) {
    if (!ours(file))
        return (int)syscall(SYS_ftruncate, file, length);
    pthread_mutex_lock(&turn);
    int failed = (int)syscall(SYS_ftruncate, file, length);
    if (!failed)
        note('T', identity(file, NULL), (uint64_t)length, NULL, 0);
    pthread_mutex_unlock(&turn);
    return failed;
}

int ftruncate64(int file, off64_t length) { return ftruncate(file, length); }

static int synced(int file, long call) {
    if (!ours(file))
        return (int)syscall(call, file);
    int is_folder;
    uint64_t found = identity(file, &is_folder);
    if (is_folder)
        found = 0;
    pthread_mutex_lock(&turn);
    uint64_t number = ++syncs;
    note('S', found, number, NULL, 0);
    pthread_mutex_unlock(&turn);
    if (sync_takes)
        usleep(sync_takes);
    pthread_mutex_lock(&turn);
    note('E', found, number, NULL, 0);
    pthread_mutex_unlock(&turn);
    return 0;
}

int fsync(int file) { return synced(file, SYS_fsync); }

int fdatasync(int file) { return synced(file, SYS_fdatasync); }

static int removed(int at, const char *path, int flags) {
    const char *name = name_in(path);
    if (!name)
        return (int)syscall(SYS_unlinkat, at, path, flags);
    pthread_mutex_lock(&turn);
    int failed = (int)syscall(SYS_unlinkat, at, path, flags);
    if (!failed)
        note('U', 0, 0, name, strlen(name));
    pthread_mutex_unlock(&turn);
    return failed;
}

int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }

int unlinkat(int at, const char *path, int flags) { return removed(at, path, flags); }

static int moved(int at, const char *path, int to, const char *other) {
    const char *old = name_in(path), *new = name_in(other);
    if (!old && !new)
        return (int)syscall(SYS_renameat2, at, path, to, other, 0);
    if (!old || !new)
        abort();
    pthread_mutex_lock(&turn);
    int failed = (int)syscall(SYS_renameat2, at, path, to, other, 0);
    if (!failed) {
        char both[8192];
        size_t length = strlen(old) + 1 + strlen(new);
        if (length > sizeof both)
            abort();
        strcpy(both, old);
        strcpy(both + strlen(old) + 1, new);
        note('R', 0, 0, both, length);
    }
    pthread_mutex_unlock(&turn);
    return failed;
}

int rename(const char *path, const char *other) { return moved(AT_FDCWD, path, AT_FDCWD, other); }

int renameat(int at, const char *path, int to, const char *other) { return moved(at, path, to, other); }

/* Called by the program: an operation has begun, or was acknowledged. */
void power_mark(const char *text) {
    pthread_mutex_lock(&turn);
    note('M', 0, 0, text, strlen(text));
    pthread_mutex_unlock(&turn);
}
