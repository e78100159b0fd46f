/* Loaded into a server before the C library: while the file named by FAILING_DISK exists, the calls that it names fail as a
 * disk would make them fail. "full" is a write without room, "sync" a sync that the device refuses. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

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

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
    if (fails("full")) {
        errno = ENOSPC;
        return -1;
    }
    return real(file, bytes, count, offset);
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
