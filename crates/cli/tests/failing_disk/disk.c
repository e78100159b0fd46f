/* Loaded into a server before the C library: while the file named by FAILING_DISK exists, the calls that it names fail as a
 * disk or a system would make them fail:
 *
 *   full   no write has room, ever
 *   room   a file becomes longer only by as much as others were cut or removed since: a disk that is exactly full
 *   sync   a sync that the device refuses
 *   files  no file can be made: too many are open
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static _Atomic long long room;

static int fails(const char *call) {
    char text[16] = {0};
    const char *path = getenv("FAILING_DISK");
    int saved = errno;
    int file = path ? open(path, O_RDONLY) : -1;
    if (file >= 0) {
        if (read(file, text, sizeof text - 1) < 0) text[0] = 0;
        close(file);
    }
    errno = saved;
    return strcmp(text, call) == 0;
}

static long long length(int file) {
    struct stat64 figures;
    return fstat64(file, &figures) == 0 && S_ISREG(figures.st_mode) ? figures.st_size : -1;
}

/* Whether a write up to `end` has room; takes what it needs. */
static int has_room(int file, long long end) {
    long long now = length(file);
    if (now < 0 || end <= now || !fails("room")) return 1;
    if (atomic_fetch_sub(&room, end - now) >= end - now) return 1;
    atomic_fetch_add(&room, end - now);
    errno = ENOSPC;
    return 0;
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
    if (fails("full")) {
        errno = ENOSPC;
        return -1;
    }
    return has_room(file, offset + (long long)count) ? real(file, bytes, count, offset) : -1;
}

ssize_t write(int file, const void *bytes, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    if (file > 2) {
        int saved = errno;
        long long place = lseek64(file, 0, SEEK_CUR);
        errno = saved;
        if (place >= 0 && !has_room(file, place + (long long)count)) return -1;
    }
    return real(file, bytes, count);
}

int fallocate64(int file, int mode, off64_t offset, off64_t size) {
    static int (*real)(int, int, off64_t, off64_t);
    if (!real) real = dlsym(RTLD_NEXT, "fallocate64");
    if (fails("full")) {
        errno = ENOSPC;
        return -1;
    }
    return has_room(file, offset + size) ? real(file, mode, offset, size) : -1;
}

int ftruncate64(int file, off64_t size) {
    static int (*real)(int, off64_t);
    if (!real) real = dlsym(RTLD_NEXT, "ftruncate64");
    long long before = length(file);
    int result = real(file, size);
    if (result == 0 && before > size && fails("room")) atomic_fetch_add(&room, before - size);
    return result;
}

int unlink(const char *path) {
    static int (*real)(const char *);
    if (!real) real = dlsym(RTLD_NEXT, "unlink");
    struct stat64 figures;
    long long before = stat64(path, &figures) == 0 ? figures.st_size : 0;
    int result = real(path);
    if (result == 0 && fails("room")) atomic_fetch_add(&room, before);
    return result;
}

int fdatasync(int file) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
    if (fails("sync")) {
        errno = EIO;
        return -1;
    }
    return real(file);
}

int open64(const char *path, int flags, ...) {
    static int (*real)(const char *, int, ...);
    if (!real) real = dlsym(RTLD_NEXT, "open64");
    va_list more;
    va_start(more, flags);
    mode_t mode = va_arg(more, mode_t);
    va_end(more);
    if ((flags & O_CREAT) && fails("files")) {
        errno = EMFILE;
        return -1;
    }
    return real(path, flags, mode);
}
