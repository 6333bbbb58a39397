/* faults: makes one system call fail in an emitted program. Of the program's object, and of no
 * library, each NAME below is renamed: objcopy --redefine-sym NAME=fault_NAME.
 *
 *   FAULT="NAME N ERRNO"   the N-th call of NAME fails with ERRNO; ERRNO 0: it does half its work
 *   FAULT_HIT=PATH         a file that is made when this happens
 *   FAULT_NAMED=1          the system has no files without a name
 *   FAULT_LOG=PATH         what is done to files, a line each (order.awk reads it)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int fault_open(const char *path, int flags, ...);
int fault_close(int fd);
int fault_fsync(int fd);
int fault_fchmod(int fd, mode_t mode);
int fault_fstat(int fd, struct stat *info);
int fault_rename(const char *from, const char *to);
int fault_linkat(int from, const char *path, int to, const char *name, int flags);
ssize_t fault_write(int fd, const void *data, size_t bytes);
ssize_t fault_read(int fd, void *data, size_t bytes);
ssize_t fault_pread(int fd, void *data, size_t bytes, off_t offset);
void *fault_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int fault_mprotect(void *at, size_t bytes, int protection);

/* 1: this call fails, errno is set; 2: it does half. */
static int due(const char *name) {
    static int asked, left, error;
    static char wanted[32];
    if (!asked++) {
        const char *text = getenv("FAULT");
        left = text != NULL && sscanf(text, "%31s %d %d", wanted, &left, &error) == 3 ? left : 0;
    }
    if (left == 0 || strcmp(name, wanted) != 0 || --left > 0) {
        return 0;
    }
    const char *hit = getenv("FAULT_HIT");
    if (hit != NULL) {
        syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, hit, O_CREAT | O_WRONLY, 0666));
    }
    errno = error;
    return error != 0 ? 1 : 2;
}

/* A line of the log, by system calls alone; errno stays. */
static void note(const char *format, ...) {
    static int log = -2;
    int error = errno;
    if (log == -2) {
        const char *path = getenv("FAULT_LOG");
        log = path == NULL ? -1
                           : (int)syscall(SYS_openat, AT_FDCWD, path,
                                          O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0666);
    }
    if (log >= 0) {
        char line[8192];
        va_list list;
        va_start(list, format);
        int n = vsnprintf(line, sizeof line, format, list);
        va_end(list);
        syscall(SYS_write, log, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
    }
    errno = error;
}

int fault_open(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    mode_t mode = (mode_t)va_arg(list, unsigned);
    va_end(list);
    if (due("open") == 1) {
        return -1;
    }
#ifdef O_TMPFILE
    if ((flags & O_TMPFILE) == O_TMPFILE && getenv("FAULT_NAMED") != NULL) {
        errno = EOPNOTSUPP;
        return -1;
    }
#endif
    int fd = open(path, flags, mode);
    note("open %d %s\n", fd, path);
    return fd;
}
int fault_close(int fd) {
    int fails = due("close") == 1;
    note("close %d\n", fd);
    int error = errno, rc = close(fd);
    errno = fails ? error : errno;
    return fails ? -1 : rc;
}
int fault_fsync(int fd) {
    int rc = due("fsync") == 1 ? -1 : fsync(fd);
    note("%s %d\n", rc == 0 ? "fsync" : "failed", fd);
    return rc;
}
int fault_fchmod(int fd, mode_t mode) {
    return due("fchmod") == 1 ? -1 : fchmod(fd, mode);
}
int fault_fstat(int fd, struct stat *info) {
    return due("fstat") == 1 ? -1 : fstat(fd, info);
}
int fault_rename(const char *from, const char *to) {
    int rc = due("rename") == 1 ? -1 : rename(from, to);
    note("%s %s %s\n", rc == 0 ? "rename" : "failed", from, to);
    return rc;
}
int fault_linkat(int from, const char *path, int to, const char *name, int flags) {
    int rc = due("linkat") == 1 ? -1 : linkat(from, path, to, name, flags);
    note("%s %s %s\n", rc == 0 ? "link" : "failed", path, name);
    return rc;
}
ssize_t fault_write(int fd, const void *data, size_t bytes) {
    int fault = due("write");
    note("write %d\n", fd);
    return fault == 1 ? -1 : write(fd, data, fault == 2 && bytes > 1 ? bytes / 2 : bytes);
}
ssize_t fault_read(int fd, void *data, size_t bytes) {
    int fault = due("read");
    return fault == 1 ? -1 : read(fd, data, fault == 2 && bytes > 1 ? 1 : bytes);
}
ssize_t fault_pread(int fd, void *data, size_t bytes, off_t offset) {
    int fault = due("pread");
    return fault == 1 ? -1 : pread(fd, data, fault == 2 && bytes > 1 ? 1 : bytes, offset);
}
void *fault_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
    return due("mmap") == 1 ? MAP_FAILED : mmap(at, bytes, protection, flags, fd, offset);
}
int fault_mprotect(void *at, size_t bytes, int protection) {
    return due("mprotect") == 1 ? -1 : mprotect(at, bytes, protection);
}
